//! Files of many layouts: what is put in comes out again, and nothing else moves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use stretto_hosts::{Entry, Host, Proxy, Server, add, undo, wrap};

/// A text in parts: what a JSON text has to hold, and between any two parts a place for blanks
/// and comments.
#[derive(Clone, Debug, Default)]
struct Parts(Vec<String>);

impl Parts {
    fn word(mut self, word: &str) -> Self {
        self.0.push(word.to_owned());
        self
    }

    fn list(mut self, open: &str, items: Vec<Self>, close: &str, trailing: bool) -> Self {
        self = self.word(open);
        let last = items.len().saturating_sub(1);
        let any = !items.is_empty();
        for (place, item) in items.into_iter().enumerate() {
            self.0.extend(item.0);
            if place < last || (any && trailing) {
                self = self.word(",");
            }
        }
        self.word(close)
    }

    fn member(name: &str, value: Self) -> Self {
        let mut parts = Self::default().word(name).word(":");
        parts.0.extend(value.0);
        parts
    }
}

fn word(word: &str) -> Parts {
    Parts::default().word(word)
}

/// Texts as people spell them: the same string in several ways.
fn spelled() -> impl Strategy<Value = Parts> {
    select(vec![
        r#""npx""#,
        r#""\u006epx""#,
        r#""C:\\Program Files\\s.exe""#,
        r#""--""#,
        r#""-y""#,
        r#""""#,
        r#""a \"b\" \/ é 漢 \ud83d\ude42""#,
        r#""{\"mcpServers\":{\"orders\":[""#,
        r#""// no comment""#,
    ])
    .prop_map(word)
}

fn trailing() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.2)
}

fn array() -> impl Strategy<Value = Parts> {
    (prop::collection::vec(spelled(), 0..4), trailing())
        .prop_map(|(items, trailing)| Parts::default().list("[", items, "]", trailing))
}

fn object(members: Vec<Parts>, trailing: bool) -> Parts {
    Parts::default().list("{", members, "}", trailing)
}

/// A server with a command.
fn command() -> impl Strategy<Value = Parts> {
    let environment = select(vec![
        "{}",
        r#"{"A": "b", "command": "x", "args": ["--", 1]}"#,
    ]);
    (
        spelled(),
        prop::option::of(array()),
        prop::option::of(environment),
        any::<bool>(),
        any::<u64>(),
        trailing(),
    )
        .prop_map(
            |(program, arguments, environment, typed, order, trailing)| {
                let mut members = vec![Parts::member("\"command\"", program)];
                members.extend(arguments.map(|array| Parts::member("\"args\"", array)));
                members.extend(environment.map(|object| Parts::member("\"env\"", word(object))));
                members.extend(typed.then(|| Parts::member("\"type\"", word("\"stdio\""))));
                object(shuffled(members, order), trailing)
            },
        )
}

/// A server that is reached over HTTP.
fn url() -> impl Strategy<Value = Parts> {
    let names = [r#""Authorization""#, r#""X-Api\u002dKey""#, r#""x_2""#];
    (
        select(vec![
            r#""https://example.com/mcp""#,
            r#""http:\/\/127.0.0.1:1\/?a=\u0062&c=d""#,
        ]),
        prop::option::of((0..4_usize, spelled(), trailing())),
        any::<bool>(),
        any::<u64>(),
        trailing(),
    )
        .prop_map(move |(url, headers, typed, order, trailing)| {
            let mut members = vec![Parts::member("\"url\"", word(url))];
            members.extend(headers.map(|(count, value, trailing)| {
                let headers = names[..count]
                    .iter()
                    .map(|name| Parts::member(name, value.clone()));
                Parts::member("\"headers\"", object(headers.collect(), trailing))
            }));
            members.extend(typed.then(|| Parts::member("\"type\"", word("\"http\""))));
            members.push(Parts::member("\"gallery\"", word("[true, null, 1.50e+3]")));
            object(shuffled(members, order), trailing)
        })
}

fn shuffled(mut members: Vec<Parts>, mut order: u64) -> Vec<Parts> {
    for place in (1..members.len()).rev() {
        let many = place as u64 + 1;
        members.swap(place, usize::try_from(order % many).unwrap());
        order /= many;
    }
    members
}

#[derive(Clone, Debug)]
struct File {
    host: Host,
    before: String,
    entry: String,
    after: String,
}

impl File {
    fn text(&self) -> String {
        format!("{}{}{}", self.before, self.entry, self.after)
    }
}

/// A whole file with the server `orders` in it, among things that look like it.
fn file() -> impl Strategy<Value = File> {
    let blanks = vec!["", " ", "", " ", "\n  ", "\n\t\t", "\r\n    ", "\n\n", "\t"];
    let comments = vec![
        "",
        " ",
        "\n  ",
        "\r\n\t",
        "/* \"orders\": { */",
        " // },]\n",
        "// \"mcpServers\"\r\n  ",
        "/**/",
        "\n/* é\n */ ",
    ];
    let gaps = prop_oneof![
        prop::collection::vec(select(blanks), 200),
        prop::collection::vec(select(comments), 200),
    ];
    let name = select(vec![r#""orders""#, r#""\u006frders""#]);
    let entry = prop_oneof![command(), url()];
    (
        (select(Host::ALL.to_vec()), name, entry, command()),
        (any::<u64>(), any::<u64>(), trailing(), trailing()),
        (gaps, any::<bool>(), any::<bool>()),
    )
        .prop_map(|((host, name, entry, other), orders, (gaps, mark, ends))| {
            let (order, outer, trailing, outer_trailing) = orders;
            let marker = "\u{1}";
            let decoy = r#"{"orders": {"command": "stretto-proxy", "args": []}}"#;
            let servers = vec![
                Parts::member(name, word(marker)),
                Parts::member("\"Orders\"", other),
                Parts::member("\"other\"", word(decoy)),
            ];
            let servers = object(shuffled(servers, order), trailing);
            let container = format!("\"{}\"", host.container());
            let root = vec![
                Parts::member(&container, servers),
                Parts::member(
                    "\"inputs\"",
                    word(r#"[{"mcpServers": {"orders": {}}}, 1e5, {}]"#),
                ),
                Parts::member("\"orders\"", word(decoy)),
            ];
            let root = object(shuffled(root, outer), outer_trailing);
            let mut gaps = gaps.into_iter().cycle();
            let mut before = String::from(if mark { "\u{feff}" } else { "" });
            let mut text = String::new();
            for part in &root.0 {
                text += gaps.next().unwrap();
                if part == marker {
                    before += &std::mem::take(&mut text);
                } else {
                    text += part;
                }
            }
            if ends {
                text += "\n";
            }
            let entry: Vec<String> = entry
                .0
                .iter()
                .enumerate()
                .map(|(place, part)| {
                    let gap = if place == 0 { "" } else { gaps.next().unwrap() };
                    format!("{gap}{part}")
                })
                .collect();
            File {
                host,
                before,
                entry: entry.concat(),
                after: text,
            }
        })
}

fn proxy() -> Proxy {
    Proxy {
        command: "/opt/my tools/stretto-proxy".to_owned(),
        options: ["--record", "~/.stretto/logs/orders", "--domain", "orders"]
            .map(str::to_owned)
            .to_vec(),
    }
}

fn entry() -> Entry {
    Entry {
        proxy: proxy(),
        server: Server::Command(["npx", "-y", "it's \"new\""].map(str::to_owned).to_vec()),
    }
}

fn value(text: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    jsonc_parser::parse_to_serde_value::<Value>(text, &jsonc_parser::ParseOptions::default())
        .unwrap()
}

/// What an entry has to be once the proxy stands before it.
fn expected(old: &Value) -> Value {
    let mut new = old.as_object().unwrap().clone();
    let Proxy { command, options } = proxy();
    let mut arguments: Vec<Value> = options.into_iter().map(Value::from).collect();
    if let Some(url) = new.remove("url") {
        arguments.extend(["--upstream".into(), url]);
        if let Some(headers) = new.remove("headers") {
            let mut variables = serde_json::Map::new();
            for (name, value) in headers.as_object().unwrap() {
                let variable = format!("ORDERS_{}", name.to_uppercase().replace('-', "_"));
                arguments.push("--upstream-header".into());
                arguments.push(format!("{name}={variable}").into());
                variables.insert(variable, value.clone());
            }
            new.insert("env".to_owned(), variables.into());
        }
        if new.contains_key("type") {
            new.insert("type".to_owned(), "stdio".into());
        }
    } else {
        arguments.extend(["--".into(), new["command"].clone()]);
        let old = new.remove("args").unwrap_or_else(|| json!([]));
        arguments.extend(old.as_array().unwrap().clone());
    }
    new.insert("command".to_owned(), command.into());
    new.insert("args".to_owned(), arguments.into());
    new.into()
}

/// The order of headers among the arguments is the file's, and a map has none.
fn sorted(mut entry: Value) -> Value {
    if let Some(arguments) = entry["args"].as_array_mut()
        && arguments.iter().any(|word| word == "--upstream")
    {
        arguments.sort_by_key(ToString::to_string);
    }
    entry
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_wrapped_and_undone_is_byte_for_byte_what_it_was(file in file()) {
        let text = file.text();
        let wrapped = wrap(&text, file.host, "orders", &proxy()).unwrap();
        prop_assert_eq!(undo(&wrapped, file.host, "orders").unwrap(), text);
    }

    #[test]
    fn wrapping_changes_the_entry_alone_and_to_what_it_should_be(file in file()) {
        let wrapped = wrap(&file.text(), file.host, "orders", &proxy()).unwrap();
        let rest = wrapped.strip_prefix(&file.before).unwrap();
        let entry = rest.strip_suffix(&file.after).unwrap();
        prop_assert_eq!(sorted(value(entry)), sorted(expected(&value(&file.entry))));
        for comment in ["/* \"orders\": { */", "// },]\n", "// \"mcpServers\"\r\n", "/**/", "/* é\n */"] {
            prop_assert_eq!(entry.matches(comment).count(), file.entry.matches(comment).count());
        }
    }

    #[test]
    fn a_file_that_was_edited_elsewhere_keeps_the_edits(file in file(), other in file()) {
        let wrapped = wrap(&file.text(), file.host, "orders", &proxy()).unwrap();
        let entry = wrapped.strip_prefix(&file.before).unwrap().strip_suffix(&file.after).unwrap();
        // The same container, with everything around the entry replaced.
        prop_assume!(file.host.container() == other.host.container());
        let edited = format!("{}{entry}{}", other.before, other.after);
        let undone = undo(&edited, file.host, "orders").unwrap();
        prop_assert_eq!(undone, format!("{}{}{}", other.before, file.entry, other.after));
    }

    #[test]
    fn an_added_server_is_there_and_nothing_else_has_changed(file in file()) {
        let text = file.text();
        let added = add(&text, file.host, "new", &entry()).unwrap();
        let mut wanted = value(&text);
        let arguments = entry().arguments().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let mut new = json!({"command": entry().proxy.command, "args": arguments});
        if file.host.has_type() {
            new["type"] = "stdio".into();
        }
        wanted[file.host.container()]["new"] = new;
        prop_assert_eq!(value(&added), wanted);
        // Taking the lines or the words of the new server out again leaves the old text.
        prop_assert!(is_subsequence(text.as_bytes(), added.as_bytes()));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{},:\"/* \\\\a1\u{feff}\n]{0,40}") {
        for host in Host::ALL {
            drop(wrap(&text, host, "a", &proxy()));
            drop(undo(&text, host, "a"));
            drop(add(&text, host, "a", &entry()));
        }
    }
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|byte| whole.any(|other| other == byte))
}
