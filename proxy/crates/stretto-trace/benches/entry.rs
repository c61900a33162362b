//! How long the log's entry for one line of the wire takes to make.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use stretto_trace::mcp::{Who, encode_entry};

const MB: usize = 1024 * 1024;

fn lines() -> Vec<(&'static str, Vec<u8>)> {
    let result = |text: String| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"jsonrpc": "2.0", "id": 7, "result": {"content": content, "isError": false}})
            .to_string()
            .into_bytes()
    };
    let record =
        r#"{"order_id":"W1234567","status":"pending","items":[{"name":"Desk lamp","price":12.5}]}"#;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "get_order_details",
        "arguments": {"order_id": "#W1234567", "fields": ["status", "items", "address"], "limit": 10},
        "_meta": {"progressToken": 7},
    }});
    vec![
        ("call of 200 bytes", call.to_string().into_bytes()),
        (
            "text of 1 MB",
            result("All work and no play. ".repeat(MB / 22)),
        ),
        (
            "text of 64 MB",
            result("All work and no play. ".repeat(64 * MB / 22)),
        ),
        (
            "text of 1 MB, other scripts",
            result("Привет, мир, 世界! ".repeat(MB / 32)),
        ),
        (
            "JSON as text, 1 MB",
            result(record.repeat(MB / record.len())),
        ),
        (
            "records, 1 MB",
            format!("[{}]", vec![record; MB / record.len()].join(",")).into_bytes(),
        ),
        (
            "no JSON, 1 MB",
            "All work and no play. ".repeat(MB / 22).into_bytes(),
        ),
    ]
}

fn entry(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("entry");
    for (name, line) in lines() {
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.sample_size(if line.len() > MB * 2 { 10 } else { 50 });
        let mut out = Vec::new();
        group.bench_with_input(BenchmarkId::from_parameter(name), &line, |bench, line| {
            bench.iter(|| {
                out.clear();
                encode_entry(&mut out, 123_456, Who::Client, black_box(line));
                out.len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, entry);
criterion_main!(benches);
