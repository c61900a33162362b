//! The rules of τ²-bench's retail policy: one customer per conversation, identified first, who
//! may change orders of their own.

use serde_json::Value;
use stretto_trace::ToolCall;

use crate::Facts;
use crate::confirmed;
use crate::facts::records::Order;
use crate::json::{text, texts};
use crate::rule::{Objection, Rule, Ruling, require};

const CANCEL: &str = "cancel_pending_order";
const ADDRESS: &str = "modify_pending_order_address";
const ITEMS: &str = "modify_pending_order_items";
const PAYMENT: &str = "modify_pending_order_payment";
const RETURN: &str = "return_delivered_order_items";
const EXCHANGE: &str = "exchange_delivered_order_items";
const USER_ADDRESS: &str = "modify_user_address";

const ORDER_WRITES: &[&str] = &[CANCEL, ADDRESS, ITEMS, PAYMENT, RETURN, EXCHANGE];
const WRITES: &[&str] = &[
    CANCEL,
    ADDRESS,
    ITEMS,
    PAYMENT,
    RETURN,
    EXCHANGE,
    USER_ADDRESS,
];

/// The only reasons to cancel for.
const REASONS: [&str; 2] = ["no longer needed", "ordered by mistake"];

/// The rules, in the order in which a refusal names them.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        id: "retail.authenticated",
        policy: "identify the customer by email, or by name and zip code, before any change",
        enforced: true,
        tools: WRITES,
        check: authenticated,
    },
    Rule {
        id: "retail.own_order",
        policy: "change only the customer's own orders",
        enforced: true,
        tools: ORDER_WRITES,
        check: own_order,
    },
    Rule {
        id: "retail.status_checked",
        policy: "read an order's status before changing it",
        enforced: true,
        tools: ORDER_WRITES,
        check: status_checked,
    },
    Rule {
        id: "retail.pending",
        policy: "cancel and modify pending orders only",
        enforced: true,
        tools: &[CANCEL, ADDRESS, ITEMS, PAYMENT],
        check: pending,
    },
    Rule {
        id: "retail.delivered",
        policy: "return and exchange items of delivered orders only",
        enforced: true,
        tools: &[RETURN, EXCHANGE],
        check: delivered,
    },
    Rule {
        id: "retail.cancel_reason",
        policy: "cancel for one of the two accepted reasons",
        enforced: true,
        tools: &[CANCEL],
        check: cancel_reason,
    },
    Rule {
        id: "retail.items_in_order",
        policy: "name only items that the order holds",
        enforced: true,
        tools: &[ITEMS, RETURN, EXCHANGE],
        check: items_in_order,
    },
    Rule {
        id: "retail.same_product",
        policy: "replace an item by another available variant of its product",
        enforced: true,
        tools: &[ITEMS, EXCHANGE],
        check: same_product,
    },
    Rule {
        id: "retail.once",
        policy: "change or exchange an order's items once",
        enforced: true,
        tools: &[ITEMS, EXCHANGE],
        check: once,
    },
    Rule {
        id: "retail.own_payment",
        policy: "use only payment methods of the customer's profile",
        enforced: true,
        tools: &[ITEMS, PAYMENT, RETURN, EXCHANGE],
        check: own_payment,
    },
    Rule {
        id: "retail.refund_method",
        policy: "refund to the original payment method or to a gift card",
        enforced: true,
        tools: &[RETURN],
        check: refund_method,
    },
    Rule {
        id: "retail.confirmed",
        policy: "get the customer's explicit yes to each change",
        enforced: false,
        tools: WRITES,
        check: confirmed,
    },
];

fn authenticated(facts: &Facts, _: &ToolCall) -> Ruling {
    require(!facts.nobody_is_identified(), || {
        "nobody has been identified by email, or by name and zip code, in this session".to_owned()
    })
}

fn own_order(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, order) = the_order(facts, call)?;
    let Some(owner) = &order.owner else {
        return Err(Objection::unknown(format!("order {id} names no owner")));
    };
    if facts.nobody_is_identified() {
        return Err(Objection::unknown("nobody has been identified"));
    }
    require(facts.is_identified(owner), || {
        format!("order {id} belongs to another user")
    })
}

fn status_checked(facts: &Facts, call: &ToolCall) -> Ruling {
    let id = order_id(call)?;
    require(facts.order(id).is_some(), || {
        format!("the status of order {id} was never read")
    })
}

fn pending(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, order) = the_order(facts, call)?;
    let status = status(id, order)?;
    // The tools let the address and the payment of an order change after its items did, when
    // the status reads `pending (item modified)`.
    let qualifies = match call.name.as_str() {
        ADDRESS | PAYMENT => status.contains("pending"),
        _ => status == "pending",
    };
    require(qualifies, || {
        format!("order {id} is {status}, and only a pending order qualifies")
    })
}

fn delivered(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, order) = the_order(facts, call)?;
    let status = status(id, order)?;
    require(status == "delivered", || {
        format!("order {id} is {status}, and only a delivered order qualifies")
    })
}

fn cancel_reason(_: &Facts, call: &ToolCall) -> Ruling {
    let Some(reason) = text(&call.arguments, "reason") else {
        return Err(Objection::fails("a reason is required"));
    };
    require(REASONS.contains(&reason), || {
        format!("'{reason}' is not an accepted reason")
    })
}

fn items_in_order(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, order) = the_order(facts, call)?;
    let mut held: Vec<&str> = order.items.iter().map(|item| item.id.as_str()).collect();
    for item in texts(&call.arguments, "item_ids") {
        if let Some(place) = held.iter().position(|&other| other == item) {
            held.swap_remove(place);
        } else {
            let further = if order.holds(item) { "further " } else { "" };
            return Err(Objection::fails(format!(
                "order {id} holds no {further}item {item}"
            )));
        }
    }
    Ok(())
}

fn same_product(facts: &Facts, call: &ToolCall) -> Ruling {
    let (id, order) = the_order(facts, call)?;
    let old_ids = texts(&call.arguments, "item_ids");
    let new_ids = texts(&call.arguments, "new_item_ids");
    require(old_ids.len() == new_ids.len(), || {
        "the two item lists differ in length".to_owned()
    })?;
    for (old, new) in old_ids.into_iter().zip(new_ids) {
        let Some(product_id) = order.product_of(old) else {
            return Err(Objection::unknown(format!(
                "order {id} shows no product of item {old}"
            )));
        };
        let Some(product) = facts.product(product_id) else {
            return Err(Objection::unknown(format!(
                "product {product_id} has not been read"
            )));
        };
        let Some(&available) = product.variants.get(new) else {
            return Err(Objection::fails(format!(
                "{new} is no variant of the product of {old}"
            )));
        };
        require(available, || format!("{new} is out of stock"))?;
        require(old != new, || format!("{new} is what it would replace"))?;
    }
    Ok(())
}

fn once(facts: &Facts, call: &ToolCall) -> Ruling {
    let Some(id) = text(&call.arguments, "order_id") else {
        return Ok(());
    };
    require(!facts.items_were_changed(id), || {
        format!("the items of order {id} were already changed in this session")
    })
}

fn own_payment(facts: &Facts, call: &ToolCall) -> Ruling {
    let method = payment_method(&call.arguments)?;
    let wallet = facts.customers_wallet();
    if wallet.is_empty() {
        return Err(Objection::unknown(
            "the customer's profile has not been read",
        ));
    }
    require(wallet.holds(method), || {
        format!("{method} is not among the user's payment methods")
    })
}

fn refund_method(facts: &Facts, call: &ToolCall) -> Ruling {
    let (_, order) = the_order(facts, call)?;
    let method = payment_method(&call.arguments)?;
    let is_original = order.paid_with.as_deref() == Some(method);
    require(is_original || method.starts_with("gift_card"), || {
        format!(
            "a refund goes to the method the order was paid with or to a gift card, \
             and {method} is neither"
        )
    })
}

fn order_id(call: &ToolCall) -> Result<&str, Objection> {
    text(&call.arguments, "order_id").ok_or_else(|| Objection::unknown("the call names no order"))
}

/// The order that the call is about, with its id; unknown when the session has not shown it.
fn the_order<'a>(facts: &'a Facts, call: &'a ToolCall) -> Result<(&'a str, &'a Order), Objection> {
    let id = order_id(call)?;
    let order = facts.order(id);
    let order = order.ok_or_else(|| Objection::unknown(format!("order {id} has not been read")))?;
    Ok((id, order))
}

fn status<'a>(id: &str, order: &'a Order) -> Result<&'a str, Objection> {
    let status = order.status.as_deref();
    status.ok_or_else(|| Objection::unknown(format!("order {id} shows no status")))
}

fn payment_method(arguments: &Value) -> Result<&str, Objection> {
    let method = text(arguments, "payment_method_id");
    method.ok_or_else(|| Objection::unknown("the call names no payment method"))
}

#[cfg(test)]
mod tests;
