//! What the changed files look like, and what is not changed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use stretto_hosts::{
    EditError, Entry, Host, Proxy, Server, add, check_name, undo, without_values, wrap,
};

fn proxy() -> Proxy {
    Proxy {
        command: "stretto-proxy".to_owned(),
        options: vec!["--domain".to_owned(), "orders".to_owned()],
    }
}

fn entry() -> Entry {
    Entry {
        proxy: proxy(),
        server: Server::Command(vec!["npx".to_owned(), "s".to_owned()]),
    }
}

fn added(text: &str, host: Host) -> String {
    add(text, host, "orders", &entry()).unwrap()
}

fn refused(text: &str) -> String {
    wrap(text, Host::Plain, "orders", &proxy())
        .unwrap_err()
        .to_string()
}

fn server(entry: &str) -> String {
    format!(r#"{{"mcpServers": {{"orders": {entry}}}}}"#)
}

#[test]
fn a_whole_file_has_the_command_before_its_arguments_which_stand_on_one_line() {
    assert_eq!(
        entry().file(Host::VsCode, "orders"),
        r#"{
  "servers": {
    "orders": {
      "type": "stdio",
      "command": "stretto-proxy",
      "args": ["--domain", "orders", "--", "npx", "s"]
    }
  }
}
"#
    );
}

#[test]
fn a_new_server_is_laid_out_as_its_neighbours() {
    let tabs = "{\n\t\"mcpServers\": {\n\t\t\"a\": {} // the first\n\t}\n}";
    assert_eq!(
        added(tabs, Host::Cursor),
        "{\n\t\"mcpServers\": {\n\t\t\"a\": {}, // the first\n\t\t\"orders\": {\n\t\t\t\"command\": \
         \"stretto-proxy\",\n\t\t\t\"args\": [\"--domain\", \"orders\", \"--\", \"npx\", \"s\"]\n\t\t}\n\t}\n}"
    );
    let trailing =
        "{\r\n    \"servers\": {\r\n        \"a\": {}, /* b */\r\n        // c\r\n    },\r\n}";
    assert_eq!(
        added(trailing, Host::VsCode),
        "{\r\n    \"servers\": {\r\n        \"a\": {}, /* b */\r\n        \"orders\": {\r\n            \
         \"type\": \"stdio\",\r\n            \"command\": \"stretto-proxy\",\r\n            \"args\": \
         [\"--domain\", \"orders\", \"--\", \"npx\", \"s\"]\r\n        },\r\n        // c\r\n    },\r\n}"
    );
    assert_eq!(
        added(r#"{"mcpServers": {"a": {}}}"#, Host::Plain),
        r#"{"mcpServers": {"a": {}, "orders": {"command": "stretto-proxy", "args": ["--domain", "orders", "--", "npx", "s"]}}}"#
    );
}

#[test]
fn a_file_without_servers_gets_them() {
    let whole = entry().file(Host::Plain, "orders");
    assert_eq!(added("{}\n", Host::Plain), whole);
    assert_eq!(added("{\n  \"mcpServers\": {}\n}\n", Host::Plain), whole);
    let other = "{\n  \"theme\": \"dark\"\n}\n";
    assert_eq!(
        added(other, Host::Plain),
        whole.replacen("{\n", "{\n  \"theme\": \"dark\",\n", 1)
    );
    let commented = added("{ // none\n}", Host::Plain);
    assert_eq!(commented, whole.replacen('{', "{ // none", 1).trim_end());
}

#[test]
fn a_command_moves_behind_the_proxys_arguments() {
    let text = "{\"mcpServers\": {\n  \"orders\": {\n    \"command\": \"np\\u0078\",\n    \"args\": [\n      \"-y\", // yes\n      \"s\"\n    ],\n    \"env\": {\"KEY\": \"k\"}\n  }\n}}";
    let wrapped = wrap(text, Host::Plain, "orders", &proxy()).unwrap();
    assert_eq!(
        wrapped,
        text.replacen("\"np\\u0078\"", "\"stretto-proxy\"", 1)
            .replacen(
                "\"-y\"",
                "\"--domain\", \"orders\", \"--\", \"np\\u0078\", \"-y\"",
                1
            )
    );
    assert_eq!(undo(&wrapped, Host::Plain, "orders").unwrap(), text);
}

#[test]
fn an_entry_without_arguments_gets_some_on_a_line_of_their_own() {
    let text = "{\"mcpServers\": {\"orders\": {\n    \"command\": \"s\"\n}}}";
    assert_eq!(
        wrap(text, Host::Plain, "orders", &proxy()).unwrap(),
        "{\"mcpServers\": {\"orders\": {\n    \"command\": \"stretto-proxy\",\n    \"args\": [\"--domain\", \"orders\", \"--\", \"s\"]\n}}}"
    );
}

#[test]
fn no_value_of_a_header_gets_into_an_argument() {
    let text = server(
        r#"{"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer secret"}}"#,
    );
    let wrapped = wrap(&text, Host::Plain, "orders", &proxy()).unwrap();
    assert_eq!(
        wrapped,
        server(
            r#"{"type": "stdio", "command": "stretto-proxy", "args": ["--domain", "orders", "--upstream", "https://h/mcp", "--upstream-header", "Authorization=ORDERS_AUTHORIZATION"], "env": {"ORDERS_AUTHORIZATION": "Bearer secret"}}"#
        )
    );
    assert_eq!(undo(&wrapped, Host::Plain, "orders").unwrap(), text);
}

#[test]
fn a_formatter_in_between_costs_spaces_alone() {
    let formatted = r#"{"mcpServers": {"orders": {
        "args": [
            "--domain",
            "orders",
            "--",
            "npx",
            "s",
        ],
        "command": "/usr/bin/stretto-proxy",
    }}}"#;
    let undone = undo(formatted, Host::Plain, "orders").unwrap();
    assert_eq!(
        undone,
        "{\"mcpServers\": {\"orders\": {\n        \"args\": [\n            \"s\",\n        ],\n        \"command\": \"npx\",\n    }}}"
    );
    let alone = server(
        r#"{"args": ["--upstream", "http://h"], "command": "stretto-proxy", "type": "stdio"}"#,
    );
    assert_eq!(
        undo(&alone, Host::Plain, "orders").unwrap(),
        server(r#"{"url": "http://h", "type": "http"}"#)
    );
}

#[test]
fn an_entry_that_was_written_behind_the_proxy_becomes_the_servers_own() {
    let file = entry().file(Host::Cursor, "orders");
    let undone = undo(&file, Host::Cursor, "orders").unwrap();
    assert!(
        undone.contains("\"command\": \"npx\",\n      \"args\": [\"s\"]\n"),
        "{undone}"
    );
}

#[test]
fn what_cannot_be_wrapped_says_why() {
    for (entry, says) in [
        (
            r#"{"command": "stretto-proxy", "args": ["--", "s"]}"#,
            "behind stretto-proxy already",
        ),
        (
            r#"{"command": "C:\\bin\\stretto-proxy.exe"}"#,
            "behind stretto-proxy already",
        ),
        (
            r#"{"command": "s", "command": "t"}"#,
            "has \"command\" more than once",
        ),
        (
            r#"{"command": "s", "url": "http://h"}"#,
            "both a command and a url",
        ),
        ("{}", "neither a command nor a url"),
        ("[]", "orders is not a JSON object"),
        (
            r#"{"command": ["s"]}"#,
            "command of orders is not a JSON string",
        ),
        (
            r#"{"command": "s", "args": "a"}"#,
            "args of orders is not a JSON array",
        ),
        (
            r#"{"url": "http://h", "type": "sse"}"#,
            "has the type \"sse\"",
        ),
        (r#"{"url": "http://h", "env": {}}"#, "a url and env"),
        (
            r#"{"url": "http://h", "oauth": {}}"#,
            "has the host sign in",
        ),
        (
            r#"{"url": "http://h", "headers": {"a b": "c"}}"#,
            "for a header's name",
        ),
        (
            r#"{"url": "http://h", "headers": {"a-b": "c", "A_B": "d"}}"#,
            "too alike",
        ),
        (
            r#"{"url": "http://h", "headers": {"a": 1}}"#,
            "is not a JSON string",
        ),
        (r#"{"\u0075rl": "http://h"}"#, "spell it plainly first"),
    ] {
        let said = refused(&server(entry));
        assert!(said.contains(says), "{entry}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn a_file_that_is_no_hosts_says_why() {
    for (text, says) in [
        ("", "it is empty"),
        ("[]", "it is not a JSON object"),
        ("{", "it is not JSON: "),
        ("{'mcpServers': {}}", "it is not JSON: "),
        ("{\"mcpServers\": []}", "mcpServers is not a JSON object"),
        ("{}", "it has no server \"orders\"; it has none at all"),
        (
            r#"{"mcpServers": {"a": {}, "b": {}}}"#,
            "it has no server \"orders\"; it has a, b",
        ),
        (
            r#"{"mcpServers": {}, "mcpServers": {}}"#,
            "has \"mcpServers\" more than once",
        ),
    ] {
        let said = refused(text);
        assert!(said.contains(says), "{text}: {said}");
    }
    let deep = "[".repeat(200_000);
    assert!(refused(&deep).contains("depth"), "{}", refused(&deep));
}

#[test]
fn a_server_that_is_there_is_not_overwritten() {
    let text = server("{}");
    assert_eq!(
        add(&text, Host::Plain, "orders", &entry()),
        Err(EditError::Exists {
            name: "orders".to_owned()
        })
    );
}

#[test]
fn what_is_not_behind_the_proxy_has_nothing_to_undo() {
    for (entry, says) in [
        (
            r#"{"command": "npx", "args": ["--", "s"]}"#,
            "not behind stretto-proxy",
        ),
        (r#"{"url": "http://h"}"#, "not behind stretto-proxy"),
        (
            r#"{"command": "stretto-proxy", "args": ["--record", "--"]}"#,
            "without a server",
        ),
        (
            r#"{"command": "stretto-proxy", "args": ["--upstream", "u"], "env": {"K": "v"}}"#,
            "has K in env",
        ),
        (
            r#"{"command": "stretto-proxy", "args": ["--upstream", "u", "--upstream-header", "A=B"]}"#,
            "from a variable that is not in its env",
        ),
    ] {
        let error = undo(&server(entry), Host::Plain, "orders").unwrap_err();
        assert!(error.to_string().contains(says), "{entry}: {error}");
    }
}

#[test]
fn names_are_fit_for_files() {
    for name in ["orders", "a.b-c_1", "7"] {
        assert_eq!(check_name(name), Ok(()));
    }
    for name in ["", ".a", "-a", "a b", "a/b", "é", "a\n"] {
        assert!(check_name(name).is_err(), "{name:?}");
    }
}

#[test]
fn values_of_variables_and_headers_are_not_shown() {
    let text =
        server(r#"{"url": "u", "headers": {"A": "secret", "B": "x"}, "env": {"K": "secret"}}"#);
    assert_eq!(
        without_values(&text, Host::Plain).unwrap(),
        server(r#"{"url": "u", "headers": {"A": "…", "B": "…"}, "env": {"K": "…"}}"#)
    );
}
