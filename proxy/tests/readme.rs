//! The README's commands do what it says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// The README's blocks of that language, without their fences.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let readme = readme();
    readme
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

fn run(command: &str) -> Output {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", command])
        .current_dir(root())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command}: {}\n{stderr}",
        output.status
    );
    output
}

/// The text without what changes from run to run.
fn steady(text: &str) -> Vec<String> {
    let changing = [
        (r"\d{8}T\d{6}\.\d{3}Z-\d+", "SESSION"),
        (r"\S*/stretto-logs\.\w+", "LOGS"),
        (r"\S*debug/stretto-mcp-demo", "DEMO"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DAY"),
        (r" +\+\d+ ms", " +N ms"),
        (r"\b\d+ ms", "N ms"),
        (r"for \d\.\d s", "for N s"),
        (r"at \d\.\d{3}", "at TIME"),
        (r" +\d+\.\d{3} ", " TIME "),
    ];
    let steady = changing
        .iter()
        .fold(text.to_owned(), |text, (pattern, name)| {
            Regex::new(pattern)
                .unwrap()
                .replace_all(&text, *name)
                .into_owned()
        });
    steady
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// Runs the command of the n-th text block, and holds what it prints against the rest of the block.
fn prints_what_is_shown(block: usize, command: &str) {
    let output = run(command);
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    let shown = blocks("text").swap_remove(block);
    let shown = shown.strip_prefix(&format!("$ {command}\n")).unwrap();
    assert_eq!(steady(&printed), steady(shown));
}

#[test]
fn the_first_command_prints_what_the_first_screen_shows() {
    prints_what_is_shown(0, "scripts/try.sh");
}

#[test]
fn the_active_session_goes_as_it_is_shown() {
    prints_what_is_shown(1, "scripts/try.sh active");
}

#[test]
fn the_commands_are_those_that_are_tested() {
    let commands: Vec<String> = blocks("sh")
        .iter()
        .flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let (installs, scripts): (Vec<&String>, Vec<&String>) = commands
        .iter()
        .partition(|command| command.starts_with("cargo install"));
    assert_eq!(scripts, ["scripts/try.sh", "scripts/check.sh"]);
    assert_eq!(installs.len(), 3);
    let ci = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(
        ci.contains("exec scripts/check.sh\n"),
        "CI is the second command"
    );
}

#[test]
fn the_install_commands_bring_the_programs_that_are_named_and_a_suite_runs_with_them() {
    let folder = tempfile::tempdir().unwrap();
    for install in blocks("sh")
        .iter()
        .flat_map(|block| block.lines())
        .filter(|line| line.starts_with("cargo install"))
    {
        // Into a folder of our own, and without the optimiser, which changes nothing about what is installed.
        run(&format!(
            "{install} --quiet --debug --root {}",
            folder.path().display()
        ));
    }
    let programs = folder.path().join("bin");
    for program in [
        "stretto-proxy",
        "stretto-mcp-demo",
        "stretto-procedure",
        "stretto",
        "stretto-harness",
    ] {
        let version = run(&format!("{}/{program} --version", programs.display()));
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        assert_eq!(
            version.trim_end(),
            format!("{program} {}", env!("CARGO_PKG_VERSION"))
        );
    }
    a_suite_of_ones_own_runs_as_the_workflow_runs_it(&programs);
}

/// A server of the reader's, as small as one can be.
const ORDERS: &str = r#"
const lines = require("readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = method === "initialize"
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "orders", version: "1" } }
    : { content: [{ type: "text", text: `${params.arguments.number} is pending since ${new Date().toISOString()}` }] };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
});
"#;

/// The scenario that the format's page shows, in a folder far from any checkout, by the
/// command of the workflow that it tells people to copy.
fn a_suite_of_ones_own_runs_as_the_workflow_runs_it(programs: &Path) {
    let page = std::fs::read_to_string(root().join("harness/FORMAT.md")).unwrap();
    let (_, page) = page.split_once("## Your own server").unwrap();
    let (_, scenario) = page.split_once("```toml\n").unwrap();
    let (scenario, _) = scenario.split_once("```").unwrap();
    let workflow = std::fs::read_to_string(root().join("scripts/scenarios-workflow.yml")).unwrap();
    let command = workflow
        .lines()
        .find_map(|line| line.trim().strip_prefix("- run: stretto-harness "))
        .unwrap();

    let project = tempfile::tempdir().unwrap();
    for folder in ["scenarios", "dist"] {
        std::fs::create_dir(project.path().join(folder)).unwrap();
    }
    std::fs::write(project.path().join("dist/server.js"), ORDERS).unwrap();
    let file = project.path().join("scenarios/order.toml");
    std::fs::write(&file, scenario).unwrap();
    let harness = |words: &str, ci: bool| {
        let path = std::env::var("PATH").unwrap();
        Command::new(programs.join("stretto-harness"))
            .args(words.split(' '))
            .current_dir(project.path())
            .env("PATH", format!("{}:{path}", programs.display()))
            .env_remove("CI")
            .envs(ci.then_some(("CI", "true")))
            .output()
            .unwrap()
    };

    let accepted = harness("run --accept", false);
    assert!(accepted.status.success(), "{accepted:?}");
    let passed = harness(command, true);
    assert!(passed.status.success(), "{passed:?}");
    let report = std::fs::read_to_string(project.path().join("scenarios-junit.xml")).unwrap();
    assert!(report.contains("order"), "{report}");

    std::fs::write(&file, scenario.replace("\"pending\"", "\"shipped\"")).unwrap();
    let failed = harness(command, true);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        said.contains("expected the text to hold: shipped"),
        "{said}"
    );
}

#[test]
fn the_host_configuration_is_json_that_starts_the_proxy() {
    let configuration: serde_json::Value = serde_json::from_str(&blocks("json")[0]).unwrap();
    let server = &configuration["mcpServers"]["orders"];
    assert_eq!(server["command"], "stretto-proxy");
    let args: Vec<&str> = server["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap())
        .collect();
    let own = args.split(|arg| *arg == "--").next().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_stretto-proxy"))
        .args(own)
        .args(["--", "sh", "-c", "exit 7"])
        .env("HOME", tempfile::tempdir().unwrap().path())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(7),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
