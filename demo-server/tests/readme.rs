//! The README is kept true: its scripts can be read, and it names every member there is.

#![expect(clippy::unwrap_used, reason = "these are tests, and their helpers")]

use stretto_demo_server::check_script;

const README: &str = include_str!("../README.md");

/// The blocks of JSON.
fn scripts() -> Vec<&'static str> {
    let blocks = README.split("```json\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

/// The faults of the tables.
fn faults() -> Vec<&'static str> {
    let rows = README.lines().filter_map(|line| line.strip_prefix("| `{"));
    rows.map(|row| row.split('`').next().unwrap()).collect()
}

/// The members that may stand where a script has an unknown one.
fn members(script: &str) -> Vec<String> {
    let said = check_script(script).unwrap_err().to_string();
    let (_, expected) = said.split_once("expected").unwrap();
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn its_scripts_can_be_read() {
    let scripts = scripts();
    assert_eq!(scripts.len(), 4);
    for script in scripts {
        assert!(
            check_script(script).is_ok(),
            "{:?}\n{script}",
            check_script(script)
        );
    }
}

#[test]
fn its_faults_can_be_read() {
    let faults = faults();
    assert_eq!(faults.len(), 28);
    for fault in faults {
        let script = format!(r#"{{"answers": [{{"tool": "*", "fault": {{{fault}}}]}}"#);
        assert!(
            check_script(&script).is_ok(),
            "{script}: {:?}",
            check_script(&script)
        );
    }
}

#[test]
fn it_names_every_member() {
    for script in [
        r#"{"?": 1}"#,
        r#"{"server": {"?": 1}}"#,
        r#"{"answers": [{"?": 1}]}"#,
        r#"{"answers": [{"rpc_error": {"?": 1}}]}"#,
        r#"{"timeline": [{"?": 1}]}"#,
        r#"{"listings": {"a": {"?": 1}}}"#,
        r#"{"http": {"?": 1}}"#,
        r#"{"http": {"answers": "?"}}"#,
        r#"{"http": {"session": "?"}}"#,
        r#"{"http": {"version": "?"}}"#,
        r#"{"http": {"get": "?"}}"#,
    ] {
        let members = members(script);
        assert!(members.len() > 1, "{script}");
        for member in members {
            let is_named = README.contains(&format!("`{member}`"))
                || README.contains(&format!("\"{member}\""));
            assert!(is_named, "{member} of {script}");
        }
    }
}

#[test]
fn it_has_an_example_of_every_fault() {
    let all = faults().join(" ");
    for member in members(r#"{"answers": [{"fault": {"?": 1}}]}"#) {
        assert!(all.contains(&format!("\"{member}\":")), "{member}");
    }
}
