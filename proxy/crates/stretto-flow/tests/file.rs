//! Flow files: those that are published, and those that are wrong.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something unexpected happens"
)]

use stretto_flow::{Flow, FlowError, FlowFile};

fn text(name: &str) -> String {
    let path = format!("{}/tests/data/flows/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// The shop's flow with one change.
fn shop_with(change: impl FnOnce(&mut serde_json::Value)) -> Result<FlowFile, FlowError> {
    let mut flow = serde_json::from_str(&text("shop.flow.json")).unwrap();
    change(&mut flow);
    FlowFile::parse(&flow.to_string())
}

fn error_of(change: impl FnOnce(&mut serde_json::Value)) -> String {
    shop_with(change).unwrap_err().to_string()
}

#[test]
fn a_flow_read_and_written_again_has_the_same_bytes() {
    for name in [
        "shop.flow.json",
        "shop.promoted.flow.json",
        "worked-example/expected.flow.json",
    ] {
        let text = text(name);
        assert_eq!(
            FlowFile::parse(&text).unwrap().to_text(),
            text.trim_end(),
            "{name}"
        );
    }
}

#[test]
fn a_flow_without_a_program_gains_the_standard_one_and_nothing_else() {
    let program = format!(
        ",\"program\":{}}}",
        stretto_flow::standard_run().to_json().unwrap()
    );
    for name in [
        "retail-5-sessions.flow.json",
        "retail-10-sessions.flow.json",
        "retail-5-sessions-shipped-arbiter.flow.json",
        "cold-start-2026-09-24-live.flow.json",
    ] {
        let text = text(name);
        let expected = text.strip_suffix('}').unwrap().to_owned() + &program;
        assert_eq!(
            FlowFile::parse(&text).unwrap().to_text(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn the_standard_run_reads_and_prints_as_its_text() {
    let run = stretto_flow::standard_run();
    assert_eq!(
        run.to_string().trim_end(),
        stretto_flow::STANDARD_RUN.trim_end()
    );
    let shop = Flow::parse(&text("shop.flow.json")).unwrap();
    assert!(stretto_flow::is_standard(&shop.file().program));
}

#[test]
fn the_optional_parts_of_both_formats_are_kept() {
    let mut shop: serde_json::Value = serde_json::from_str(&text("shop.flow.json")).unwrap();
    shop["stretto_flow"] = 2.into();
    shop["thresholds"] = serde_json::json!({"get_user_details": 1.5});
    shop["surprise"] = serde_json::json!({"window": 5, "threshold": 2.5, "quantile": 0.9});
    shop["sites"]["every_read"] = true.into();
    shop["sites"]["feeds"] =
        serde_json::json!({"get_user_details": [[["cancel_pending_order", "order_id"], 4]]});
    shop["bindings"]["described_read"] = serde_json::json!({"get_user_details": [1, 2]});
    shop["bindings"]["named_other"] = serde_json::json!({"get_user_details": [0, 2]});
    shop["bindings"]["site_sources"] = serde_json::json!([
        {"tool": "a", "arg": "b", "site": "c", "source": ["d", "$"], "values": 3}
    ]);
    shop["bindings"]["lists"] =
        serde_json::json!([[["a", "b"], {"values": 2, "found": [[["c", "$"], 2]]}]]);
    shop["bindings"]["bare"] = serde_json::json!({"a": 0});
    shop["bindings"]["constants"] = serde_json::json!([[["a", "b"], {"x": 1}]]);
    shop["map"] = serde_json::json!({
        "fields": {"a": [{"Scalar": "x.y"}, {"Len": ""}]},
        "ids": [[["a", ["1", "2+"]], 1]]
    });
    let read = FlowFile::parse(&shop.to_string()).unwrap();
    let written: serde_json::Value = serde_json::from_str(&read.to_text()).unwrap();
    assert_eq!(written, shop);
}

#[test]
fn members_that_are_not_known_are_no_error() {
    shop_with(|flow| {
        flow["later"] = 1.into();
        flow["provenance"]["later"] = 1.into();
    })
    .unwrap();
}

#[test]
fn what_is_no_flow_says_so() {
    for text in [
        "",
        "[]",
        "{}",
        "{\"stretto_flow\": \"1\"}",
        "{\"stretto_flow\": 1.5}",
        "nonsense",
    ] {
        let error = FlowFile::parse(text).unwrap_err().to_string();
        assert!(error.starts_with("not a stretto flow: "), "{text}: {error}");
    }
    for format in ["0", "3", "-1", "99999999999999999999"] {
        let text = format!("{{\"stretto_flow\": {format}}}");
        let error = FlowFile::parse(&text).unwrap_err().to_string();
        assert!(
            error.contains("is not supported (this build reads 1 and 2)")
                || error.starts_with("not a stretto flow: "),
            "{error}"
        );
    }
}

#[test]
fn a_wrong_field_is_named() {
    assert_eq!(
        error_of(|flow| flow["habit"]["base"]["alpha"] = "much".into()),
        "`habit.base.alpha`: invalid type: string \"much\", expected f64 at line 1 column 1107"
            .replace("line 1 column 1107", &column_of("\"much\""))
    );
    let error = error_of(|flow| flow["bindings"]["agreed"]["get_user_details"][0][1] = "6".into());
    assert!(
        error.starts_with("`bindings.agreed.get_user_details[0]"),
        "{error}"
    );
    let error = error_of(|flow| {
        flow.as_object_mut().unwrap().remove("group");
    });
    assert!(error.contains("missing field `group`"), "{error}");
}

/// Where serde says that something wrong ended.
fn column_of(wrong: &str) -> String {
    let mut flow: serde_json::Value = serde_json::from_str(&text("shop.flow.json")).unwrap();
    flow["habit"]["base"]["alpha"] = "much".into();
    let text = flow.to_string();
    format!("line 1 column {}", text.find(wrong).unwrap() + wrong.len())
}

#[test]
fn the_first_format_has_none_of_the_seconds_fields() {
    let error = error_of(|flow| flow["thresholds"] = serde_json::json!({"a": 0.5}));
    assert_eq!(error, "a flow with per-site thresholds is format 2");
    let error =
        error_of(|flow| flow["surprise"] = serde_json::json!({"window": 5, "threshold": 1.0}));
    assert_eq!(error, "a flow with a surprise gate is format 2");
    for (field, value) in [
        ("named_other", serde_json::json!({"a": [0, 1]})),
        ("described_read", serde_json::json!({"a": [0, 1]})),
        ("bare", serde_json::json!({"a": 0})),
        (
            "lists",
            serde_json::json!([[["a", "b"], {"values": 0, "found": []}]]),
        ),
        ("constants", serde_json::json!([[["a", "b"], 1]])),
    ] {
        let error = error_of(|flow| flow["bindings"][field] = value);
        assert_eq!(
            error,
            format!("a flow whose bindings count `{field}` is format 2")
        );
    }
}

#[test]
fn the_format_follows_the_contents() {
    let mut flow = FlowFile::parse(&text("shop.flow.json")).unwrap();
    flow.thresholds.insert("get_user_details".to_owned(), 0.5);
    flow.set_format();
    assert_eq!(flow.stretto_flow, 2);
    flow.thresholds.clear();
    flow.set_format();
    assert_eq!(flow.stretto_flow, 1);
}

#[test]
fn what_would_fail_later_fails_when_it_is_read() {
    let error = error_of(|flow| {
        flow["program"]["body"][2]["body"][0]["dist"]["name"] = "Nowhere".into();
    });
    assert_eq!(error, "the flow's program: unknown distribution `Nowhere`");
    let error = error_of(|flow| {
        flow["stretto_flow"] = 2.into();
        flow["surprise"] = serde_json::json!({"window": 0, "threshold": 1.0});
    });
    assert_eq!(error, "a surprise gate averages over one step or more");
    for (field, change) in [
        (
            "`folds`",
            (|flow| flow["folds"] = serde_json::json!([fit(5)])) as fn(&mut serde_json::Value),
        ),
        ("`folds[0].weights`", |flow| {
            flow["folds"] = serde_json::json!([fit(4), fit(5), fit(5), fit(5), fit(5)]);
        }),
        ("`habit.base.levels`", |flow| {
            flow["habit"]["base"]["order"] = 3.into();
        }),
        ("`habit.base.levels`", |flow| {
            flow["habit"]["base"]["order"] = u64::MAX.into();
        }),
        ("`habit.base.levels[1]`", |flow| {
            flow["habit"]["base"]["levels"][1][0][0] = serde_json::json!([]);
        }),
        ("`habit.base.vocab_size`", |flow| {
            flow["habit"]["base"]["vocab_size"] = 7.into();
        }),
        ("`reach.vocab_size`", |flow| {
            flow["reach"]["vocab_size"] = 0.into();
        }),
        ("`habit.base.alpha`", |flow| {
            flow["habit"]["base"]["alpha"] = 0.0.into();
        }),
        ("`habit.beta`", |flow| flow["habit"]["beta"] = (-1.0).into()),
        ("`habit.top of group 1`", |flow| {
            flow["habit"]["top"][0][0][1] = serde_json::json!([1]);
        }),
        ("`vocab`", |flow| flow["vocab"][1] = "Respond".into()),
    ] {
        let error = error_of(change);
        assert!(error.starts_with(field), "{field}: {error}");
    }
    let error = error_of(|flow| {
        let first = flow["sites"]["next"][0].clone();
        flow["sites"]["next"].as_array_mut().unwrap().push(first);
    });
    assert!(
        error.starts_with("`sites.next") && error.contains("comes twice"),
        "{error}"
    );
}

fn fit(weights: usize) -> serde_json::Value {
    serde_json::json!({"weights": vec![0.5; weights], "rates": {"sites": [], "agree": 0.5, "cover": 1.0}})
}

#[test]
fn an_error_of_loading_names_the_file() {
    let missing = Flow::load(std::path::Path::new("no-such.flow.json")).unwrap_err();
    assert_eq!(missing.to_string(), "reading the flow no-such.flow.json");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let wrong = Flow::load(std::path::Path::new(path)).unwrap_err();
    assert_eq!(wrong.to_string(), format!("loading the flow {path}"));
    assert!(
        std::error::Error::source(&wrong)
            .unwrap()
            .to_string()
            .starts_with("not a stretto flow")
    );
}
