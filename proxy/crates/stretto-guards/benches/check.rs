//! What a check costs early and late in a session, and what taking in a result costs.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use stretto_guards::{Facts, Guards, Listings};
use stretto_trace::ToolCall;

fn call(id: usize, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_string(),
        name: name.to_owned(),
        arguments,
    }
}

/// A user with two payment methods and two orders, and one of the orders.
fn records(n: usize) -> [Value; 2] {
    let user = json!({
        "user_id": format!("user_{n}"),
        "payment_methods": {format!("card_{n}"): {"last_four": "1234"}, "gift_card_1": {}},
        "orders": [format!("#W{n}a"), format!("#W{n}b")],
    });
    let order = json!({
        "order_id": format!("#W{n}a"),
        "user_id": format!("user_{n}"),
        "status": "delivered",
        "items": [{"item_id": "1", "product_id": "A"}, {"item_id": "2", "product_id": "A"}],
        "payment_history": [{"payment_method_id": format!("card_{n}")}],
    });
    [user, order]
}

/// A session of so many calls, all about different customers.
fn session(calls: usize) -> (Facts, Listings) {
    let mut facts = Facts::default();
    let mut listings = Listings::default();
    facts.agent_said("Shall I exchange item 1 of order #W0a?");
    facts.user_said("Yes, please go ahead with #W0a.");
    let product = json!({"product_id": "A", "variants": {"1": {}, "2": {}, "3": {}}});
    facts.returned(
        "product",
        "get_product_details",
        false,
        &product.to_string(),
    );
    for id in 0..calls {
        let n = id / 4;
        let [user, order] = records(n);
        let (tool, content) = match id % 4 {
            0 => ("find_user_id_by_email", format!("user_{n}")),
            1 => ("get_user_details", user.to_string()),
            2 => ("get_order_details", order.to_string()),
            _ => ("exchange_delivered_order_items", order.to_string()),
        };
        let arguments = json!({"order_id": format!("#W{n}b"), "user_id": format!("user_{n}")});
        facts.called(&call(id, tool, arguments));
        facts.returned(&id.to_string(), tool, false, &content);
        listings.returned(false, &content);
    }
    (facts, listings)
}

fn exchange() -> ToolCall {
    let arguments = json!({
        "order_id": "#W0a",
        "item_ids": ["1"],
        "new_item_ids": ["3"],
        "payment_method_id": "card_0",
    });
    call(1_000_000, "exchange_delivered_order_items", arguments)
}

fn checks(criterion: &mut Criterion) {
    let guards = Guards::for_domain("retail").expect("retail has guards");
    let call = exchange();
    let mut group = criterion.benchmark_group("after calls");
    for calls in [10, 20_000] {
        let (facts, listings) = session(calls);
        assert_eq!(guards.check(&facts, &call).refusal(), None);
        group.bench_function(BenchmarkId::new("check", calls), |bencher| {
            bencher.iter(|| guards.check(black_box(&facts), black_box(&call)));
        });
        group.bench_function(BenchmarkId::new("proposal check", calls), |bencher| {
            bencher.iter(|| listings.check(facts.exchange(), black_box(&call)));
        });
    }
    group.finish();
}

fn results(criterion: &mut Criterion) {
    let [user, _] = records(7);
    let content = user.to_string();
    let mut group = criterion.benchmark_group("a result");
    for calls in [10, 20_000] {
        let (mut facts, _) = session(calls);
        group.bench_function(BenchmarkId::new("taken in after", calls), |bencher| {
            bencher.iter(|| facts.returned("x", "get_user_details", false, black_box(&content)));
        });
    }
    group.finish();
}

criterion_group!(benches, checks, results);
criterion_main!(benches);
