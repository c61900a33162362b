//! Flows shown, and compared.

mod support;

use std::sync::Arc;

use stretto_flow::{Flow, FlowFile, Topic, diff, show};
use support::flow;

#[test]
fn what_the_habit_alone_does_is_shown_with_its_product() {
    let page = show(&flow("retail-5-sessions.flow.json"), 0.3);
    for part in [
        "`get_order_details` 67%, `get_product_details` 22%, `respond` 11% of 9 | looks up `get_order_details` 0.67 × 0.90 = 0.60 |",
        "looks up `get_user_details` 1.00 × 0.75 = 0.75 |",
        "| `get_product_details` | 0.50 (0/0) | 0.60 (2/3) |",
        "| `get_order_details` | `order_id` | `get_user_details` at `$.orders[*]` 8 of 9 |",
        "| `find_user_id_by_email` | `email` | no result: the flow never makes this lookup |",
        "The standard run.",
        "- no arbiter\n- reach is not counted",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
}

#[test]
fn promotion_contracts_and_an_arbiter_are_shown() {
    let page = show(&flow("shop.promoted.flow.json"), 0.3);
    assert!(
        page.contains("| `get_user_details` | 3 | 3 | 3 | 0.53 | 3 | yes |"),
        "{page}"
    );
    assert!(
        page.contains("- `get_user_details`: user_id:string!"),
        "{page}"
    );
    let page = show(&flow("retail-5-sessions-shipped-arbiter.flow.json"), 0.3);
    assert!(
        page.contains("- an arbiter fitted on 4513 decisions, which asks jev-latest"),
        "{page}"
    );
    assert!(
        page.contains("**list_pending**, for the same lookup: "),
        "{page}"
    );
}

#[test]
fn four_changes_from_five_to_ten_sessions_need_review() {
    let changed = diff(
        &flow("retail-5-sessions.flow.json"),
        &flow("retail-10-sessions.flow.json"),
        0.05,
        0.3,
    );
    let to_review: Vec<&str> = changed
        .to_review()
        .map(|change| change.text.as_str())
        .collect();
    assert_eq!(
        to_review,
        [
            "`get_user_details` is now on offer after `find_user_id_by_name_zip`",
            "`get_product_details` is now on offer after `get_item_details`",
            "`get_product_details` is now on offer after `get_product_details`",
            "`user_id` of `get_user_details` may now come from `find_user_id_by_name_zip` at `$`",
        ]
    );
    assert!(changed.markdown().starts_with("# Needs review: 4\n"));
}

#[test]
fn an_arbiter_that_is_added_is_one_change_to_review() {
    let changed = diff(
        &flow("retail-5-sessions.flow.json"),
        &flow("retail-5-sessions-shipped-arbiter.flow.json"),
        0.05,
        0.3,
    );
    let to_review: Vec<&str> = changed
        .to_review()
        .map(|change| change.text.as_str())
        .collect();
    assert_eq!(
        to_review,
        ["an arbiter was added: it asks `jev-latest`, with 3 predicates"]
    );
}

#[test]
fn a_flow_does_not_differ_from_itself() {
    for name in [
        "shop.promoted.flow.json",
        "retail-5-sessions-shipped-arbiter.flow.json",
    ] {
        let changed = diff(&flow(name), &flow(name), 0.05, 0.3);
        assert_eq!(changed.changes, []);
        assert_eq!(changed.markdown(), "The flows are the same.\n");
    }
}

fn shop_with(change: impl FnOnce(&mut FlowFile)) -> Arc<Flow> {
    let mut file = flow("shop.flow.json").file().clone();
    change(&mut file);
    Arc::new(Flow::new(file))
}

#[test]
fn a_site_that_was_kept_from_acting_needs_review_when_it_acts() {
    let held = shop_with(|file| {
        file.thresholds.insert("get_user_details".to_owned(), 1.5);
    });
    let page = show(&held, 0.3);
    assert!(
        page.contains("- after `get_user_details` 1.5: switched off\n"),
        "{page}"
    );
    assert!(
        page.contains("| hands back: switched off (`get_order_details` 1.00 × 0.93 = 0.93) |"),
        "{page}"
    );
    let free = flow("shop.flow.json");
    let to_review: Vec<_> = diff(&held, &free, 0.05, 0.3)
        .to_review()
        .map(|change| change.topic)
        .collect();
    assert_eq!(to_review, [Topic::Promotion]);
    assert_eq!(diff(&free, &held, 0.05, 0.3).to_review().count(), 0);
    // What the habit alone does is no matter: a low threshold changes that only.
    assert_eq!(diff(&free, &free, 0.05, 0.99).to_review().count(), 0);
}

#[test]
fn tools_programs_and_constants_need_review() {
    let shop = flow("shop.flow.json");
    let other = shop_with(|file| {
        let write = file.manifest.tools.get_mut("cancel_pending_order").unwrap();
        *write = stretto_trace::ToolKind::Read;
        file.program.body.clear();
        file.sites.every_read = true;
        let arg = ("get_user_details".to_owned(), "locale".to_owned());
        file.bindings.constants.insert(arg, "en".into());
    });
    let changed = diff(&shop, &other, 0.05, 0.3);
    let topics: Vec<Topic> = changed.to_review().map(|change| change.topic).collect();
    for topic in [Topic::Tools, Topic::Program, Topic::Sites, Topic::Bindings] {
        assert!(topics.contains(&topic), "{topic}");
    }
    let back: Vec<Topic> = diff(&other, &shop, 0.05, 0.3)
        .to_review()
        .map(|change| change.topic)
        .collect();
    assert_eq!(back, [Topic::Program]);
}
