//! A tiny shop: four of τ²-bench retail's tools over canned data.
//!
//! User `user_N` has the email `cN@example.com` and the orders `#WNa` and `#WNb`, both pending,
//! for every N of one or more digits. N is kept as text, so `007` is a user beside `7`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{World, annotations, text};
use crate::cli::Hint;

const NO_USER: &str = "Error: User not found";
const NO_ORDER: &str = "Error: Order not found";
const NO_REASON: &str = "Error: Invalid reason";

/// The shop, perhaps without some of its tools or with other hints.
#[derive(Debug)]
pub(crate) struct Retail {
    hide: Vec<String>,
    hint: BTreeMap<String, Hint>,
}

impl Retail {
    /// A shop without the hidden tools, with the changed hints. Names it does not know change nothing.
    pub(crate) fn new(hide: Vec<String>, hint: BTreeMap<String, Hint>) -> Self {
        Self { hide, hint }
    }

    fn tool(&self, name: &str, description: &str, reads: bool, arguments: &[&str]) -> Value {
        let hint = self.hint.get(name).copied();
        let properties: BTreeMap<&str, Value> = arguments
            .iter()
            .map(|&name| (name, json!({"type": "string"})))
            .collect();
        json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": arguments},
            "annotations": annotations(hint.unwrap_or(if reads { Hint::True } else { Hint::False })),
        })
    }
}

impl World for Retail {
    fn tools(&self) -> Vec<Value> {
        let mut tools = vec![
            self.tool("find_user_id_by_email", "Finds the id of the user with an email.", true, &["email"]),
            self.tool("get_user_details", "Reads a user's email, orders and payment methods.", true, &["user_id"]),
            self.tool("get_order_details", "Reads an order's status, items and payments.", true, &["order_id"]),
            self.tool(
                "cancel_pending_order",
                "Cancels a pending order, for the reason 'no longer needed' or 'ordered by mistake'.",
                false,
                &["order_id", "reason"],
            ),
        ];
        tools.retain(|tool| !self.hide.iter().any(|hidden| tool["name"] == **hidden));
        tools
    }

    fn call(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        match tool {
            "find_user_id_by_email" => {
                let n = number(text(arguments, "email"), "c", &["@example.com"]).ok_or(NO_USER)?;
                Ok(format!("user_{n}"))
            }
            "get_user_details" => {
                let user = text(arguments, "user_id");
                let n = number(user, "user_", &[""]).ok_or(NO_USER)?;
                let card = format!("credit_card_{n}");
                Ok(json!({
                    "user_id": user,
                    "email": format!("c{n}@example.com"),
                    "orders": [format!("#W{n}a"), format!("#W{n}b")],
                    "payment_methods": {card: {"source": "credit_card"}},
                })
                .to_string())
            }
            "get_order_details" => {
                let order = text(arguments, "order_id");
                let n = owner(order).ok_or(NO_ORDER)?;
                Ok(json!({
                    "order_id": order,
                    "user_id": format!("user_{n}"),
                    "status": "pending",
                    "items": [{"item_id": "1", "product_id": "p1", "name": "Desk lamp"}],
                    "payment_history": [{"payment_method_id": format!("credit_card_{n}")}],
                })
                .to_string())
            }
            _ => {
                let order = text(arguments, "order_id");
                owner(order).ok_or(NO_ORDER)?;
                match text(arguments, "reason") {
                    "no longer needed" | "ordered by mistake" => {
                        Ok(json!({"order_id": order, "status": "cancelled"}).to_string())
                    }
                    _ => Err(NO_REASON.to_owned()),
                }
            }
        }
    }

    fn instructions(&self) -> &'static str {
        "A tiny shop with canned users and orders; nothing that is changed stays changed."
    }
}

/// The number of an order's user.
fn owner(order: &str) -> Option<&str> {
    number(order, "#W", &["a", "b"])
}

/// The digits between a prefix and one of the suffixes.
fn number<'a>(text: &'a str, prefix: &str, suffixes: &[&str]) -> Option<&'a str> {
    let rest = text.strip_prefix(prefix)?;
    let digits = suffixes
        .iter()
        .find_map(|suffix| rest.strip_suffix(suffix))?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: &Value) -> Result<Value, String> {
        let shop = Retail::new(Vec::new(), BTreeMap::new());
        shop.call(tool, arguments)
            .map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    #[test]
    fn an_email_finds_its_user() {
        assert_eq!(
            call("find_user_id_by_email", &json!({"email": "c7@example.com"})),
            Ok(json!("user_7"))
        );
        assert_eq!(
            call(
                "find_user_id_by_email",
                &json!({"email": "c007@example.com"})
            ),
            Ok(json!("user_007"))
        );
    }

    #[test]
    fn any_other_email_finds_nobody() {
        for email in [
            json!("c@example.com"),
            json!("c7@example.org"),
            json!("C7@example.com"),
            json!("c٣@example.com"),
            json!("c7@example.com "),
            json!(7),
        ] {
            assert_eq!(
                call("find_user_id_by_email", &json!({"email": email})),
                Err(NO_USER.into()),
                "{email}"
            );
        }
        assert_eq!(
            call("find_user_id_by_email", &json!({})),
            Err(NO_USER.into())
        );
    }

    #[test]
    fn a_user_has_two_orders_and_a_card() {
        let details = json!({
            "user_id": "user_12",
            "email": "c12@example.com",
            "orders": ["#W12a", "#W12b"],
            "payment_methods": {"credit_card_12": {"source": "credit_card"}},
        });
        assert_eq!(
            call("get_user_details", &json!({"user_id": "user_12"})),
            Ok(details)
        );
        assert_eq!(
            call("get_user_details", &json!({"user_id": "user_"})),
            Err(NO_USER.into())
        );
    }

    #[test]
    fn an_order_is_pending() {
        let details = json!({
            "order_id": "#W7b",
            "user_id": "user_7",
            "status": "pending",
            "items": [{"item_id": "1", "product_id": "p1", "name": "Desk lamp"}],
            "payment_history": [{"payment_method_id": "credit_card_7"}],
        });
        assert_eq!(
            call("get_order_details", &json!({"order_id": "#W7b"})),
            Ok(details)
        );
        for order in ["#W7c", "W7a", "#Wa", "#W7"] {
            assert_eq!(
                call("get_order_details", &json!({"order_id": order})),
                Err(NO_ORDER.into()),
                "{order}"
            );
        }
    }

    #[test]
    fn an_order_is_cancelled_for_two_reasons_only() {
        for reason in ["no longer needed", "ordered by mistake"] {
            let cancelled = json!({"order_id": "#W7a", "status": "cancelled"});
            assert_eq!(
                call(
                    "cancel_pending_order",
                    &json!({"order_id": "#W7a", "reason": reason})
                ),
                Ok(cancelled)
            );
        }
        assert_eq!(
            call(
                "cancel_pending_order",
                &json!({"order_id": "#W7a", "reason": "found it cheaper"})
            ),
            Err(NO_REASON.into())
        );
        assert_eq!(
            call("cancel_pending_order", &json!({"order_id": "#W7a"})),
            Err(NO_REASON.into())
        );
    }

    #[test]
    fn an_unknown_order_is_found_out_before_its_reason() {
        assert_eq!(
            call(
                "cancel_pending_order",
                &json!({"order_id": "7", "reason": "x"})
            ),
            Err(NO_ORDER.into())
        );
    }

    #[test]
    fn hidden_tools_and_changed_hints_show_in_the_list() {
        let hint = BTreeMap::from([
            ("get_user_details".into(), Hint::False),
            ("get_order_details".into(), Hint::None),
            ("nobody".into(), Hint::None),
        ]);
        let tools = Retail::new(vec!["cancel_pending_order".into(), "nobody".into()], hint).tools();
        let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(
            names,
            [
                "find_user_id_by_email",
                "get_user_details",
                "get_order_details"
            ]
        );
        assert_eq!(tools[0]["annotations"], json!({"readOnlyHint": true}));
        assert_eq!(tools[1]["annotations"], json!({"readOnlyHint": false}));
        assert_eq!(tools[2]["annotations"], json!({}));
    }
}
