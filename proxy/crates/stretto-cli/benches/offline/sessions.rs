//! Recorded sessions of a shop, as many and as long as wanted, and the same each time.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
};

use serde_json::{Value, json};

/// How many calls each session has.
pub(crate) const CALLS: usize = 20;

/// Calls that read an order; the others find the customer, read their record, and cancel.
const ORDERS: usize = CALLS - 3;

/// What a good is called, so that texts look like a shop's.
const GOODS: [&str; 8] = [
    "desk lamp",
    "wool blanket",
    "hiking boots",
    "water bottle",
    "mechanical keyboard",
    "office chair",
    "garden hose",
    "wireless earbuds",
];

/// Writes `count` session logs of about `size` bytes each into `folder`, which is made. Returns
/// how many bytes they have together.
pub(crate) fn write(folder: &Path, count: usize, size: usize) -> u64 {
    fs::create_dir_all(folder).expect("the folder can be made");
    (0..count)
        .map(|number| {
            let name = format!("20261201T000000.{:03}Z-{number}", number % 1000);
            let path = folder.join(format!("{name}.jsonl"));
            let file = File::create(&path).expect("a log can be made");
            let mut log = Log {
                file: BufWriter::new(file),
                now: 0,
                last_id: 0,
            };
            log.session(&name, number, size);
            log.file.flush().expect("the disk has room");
            fs::metadata(&path).expect("it was just written").len()
        })
        .sum()
}

/// A log that is being written.
struct Log {
    file: BufWriter<File>,
    /// Milliseconds since the session's start.
    now: u64,
    last_id: u64,
}

impl Log {
    fn session(&mut self, name: &str, number: usize, size: usize) {
        self.line(&json!({
            "stretto_mcp_log": 2, "session": name, "started_unix_ms": 1_796_083_200_000_u64,
            "server_command": ["shop"], "domain": "shop", "agent_model": "an agent",
        }));
        self.entry(
            "client",
            &json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list"}),
        );
        self.entry(
            "server",
            &json!({"jsonrpc": "2.0", "id": 0, "result": {"tools": tools()}}),
        );
        let email = format!("c{number}@example.com");
        self.say(
            "user",
            &format!("I am {email}. Please cancel my last order."),
        );

        let user = format!("user_{number}");
        self.call("find_user_id_by_email", &json!({"email": email}), &user);
        let orders: Vec<String> = (0..ORDERS)
            .map(|order| format!("#W{number}-{order}"))
            .collect();
        let details = json!({"user_id": user, "email": email, "orders": orders});
        self.call(
            "get_user_details",
            &json!({"user_id": user}),
            &details.to_string(),
        );
        let mut draws = Draws(number as u64);
        for order in &orders {
            let record = record(order, &user, size / ORDERS, &mut draws);
            self.call("get_order_details", &json!({"order_id": order}), &record);
        }
        let last = &orders[ORDERS - 1];
        self.say(
            "assistant",
            &format!("Shall I cancel {last} as no longer needed?"),
        );
        self.say("user", "Yes, please.");
        self.call(
            "cancel_pending_order",
            &json!({"order_id": last, "reason": "no longer needed"}),
            &json!({"order_id": last, "status": "cancelled"}).to_string(),
        );
        self.say("assistant", "Done.");
    }

    fn say(&mut self, role: &str, content: &str) {
        self.entry("context", &json!({"role": role, "content": content}));
    }

    /// A call, once the model has thought, and its result.
    fn call(&mut self, tool: &str, arguments: &Value, text: &str) {
        self.now += 1_500;
        self.last_id += 1;
        let id = self.last_id;
        let params = json!({"name": tool, "arguments": arguments});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.entry("client", &request);
        self.now += 20;
        let result = json!({"content": [{"type": "text", "text": text}], "isError": false});
        self.entry(
            "server",
            &json!({"jsonrpc": "2.0", "id": id, "result": result}),
        );
    }

    fn entry(&mut self, from: &str, message: &Value) {
        self.line(&json!({"t_ms": self.now, "from": from, "message": message}));
    }

    fn line(&mut self, line: &Value) {
        writeln!(self.file, "{line}").expect("the disk has room");
    }
}

fn tools() -> Value {
    let tool = |name: &str, arguments: &[&str], reads: bool| {
        let properties: serde_json::Map<String, Value> = arguments
            .iter()
            .map(|argument| ((*argument).to_owned(), json!({"type": "string"})))
            .collect();
        json!({
            "name": name,
            "inputSchema": {"type": "object", "properties": properties, "required": arguments},
            "annotations": {"readOnlyHint": reads},
        })
    };
    json!([
        tool("find_user_id_by_email", &["email"], true),
        tool("get_user_details", &["user_id"], true),
        tool("get_order_details", &["order_id"], true),
        tool("cancel_pending_order", &["order_id", "reason"], false),
    ])
}

/// An order of about `size` bytes, as a log spells it: as text in JSON, with its quotes escaped.
fn record(order: &str, user: &str, size: usize, draws: &mut Draws) -> String {
    /// What an item has on disk.
    const ITEM: usize = 205;
    let items: Vec<Value> = (0..size / ITEM)
        .map(|_| {
            let good = draws.draw();
            json!({
                "name": GOODS[usize::try_from(good % 8).unwrap_or_default()],
                "item_id": (draws.draw() % 10_000_000_000).to_string(),
                "product_id": (good % 1_000).to_string(),
                "price": f64::from(u16::try_from(draws.draw() % 60_000).unwrap_or_default()) / 100.0,
                "options": {"color": "blue", "size": "M", "warehouse": format!("w{}", draws.draw() % 50)},
                "status": if good.is_multiple_of(3) { "delivered" } else { "pending" },
            })
        })
        .collect();
    json!({"order_id": order, "user_id": user, "status": "pending", "items": items}).to_string()
}

/// The generator splitmix64.
struct Draws(u64);

impl Draws {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
