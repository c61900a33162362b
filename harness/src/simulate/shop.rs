//! A shop that keeps state: customers, orders and products drawn from a seed, and the tools that
//! read and change them.
//!
//! The shop's tools trust their caller, as many do: they know whether records are there, but
//! nothing of who asks, of statuses or of reasons. What the written policy allows is
//! [`Shop::objection`], which sees the records as they are *now*. That is the truth that calls and
//! refusals are judged by.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::draws::Draws;

pub(crate) const BY_EMAIL: &str = "find_user_id_by_email";
pub(crate) const BY_NAME: &str = "find_user_id_by_name_zip";
pub(crate) const USER: &str = "get_user_details";
pub(crate) const ORDER: &str = "get_order_details";
pub(crate) const PRODUCT: &str = "get_product_details";
pub(crate) const CANCEL: &str = "cancel_pending_order";
pub(crate) const ADDRESS: &str = "modify_pending_order_address";
pub(crate) const ITEMS: &str = "modify_pending_order_items";
pub(crate) const RETURN: &str = "return_delivered_order_items";

/// A tool, as a row of the table.
type Tool = (
    &'static str,
    &'static str,
    bool,
    &'static [&'static str],
    &'static [&'static str],
);

/// The tools: name, what it does, whether it only reads, its arguments of text and of lists.
const TOOLS: [Tool; 9] = [
    (
        BY_EMAIL,
        "Finds the id of the user with an email.",
        true,
        &["email"],
        &[],
    ),
    (
        BY_NAME,
        "Finds the id of the user with a name and a zip code.",
        true,
        &["first_name", "last_name", "zip"],
        &[],
    ),
    (
        USER,
        "Reads a user's address, orders and payment methods.",
        true,
        &["user_id"],
        &[],
    ),
    (
        ORDER,
        "Reads an order's status, items and payments.",
        true,
        &["order_id"],
        &[],
    ),
    (
        PRODUCT,
        "Reads a product's variants.",
        true,
        &["product_id"],
        &[],
    ),
    (
        CANCEL,
        "Cancels a pending order.",
        false,
        &["order_id", "reason"],
        &[],
    ),
    (
        ADDRESS,
        "Changes where a pending order goes.",
        false,
        &["order_id", "address1", "zip"],
        &[],
    ),
    (
        ITEMS,
        "Replaces items of a pending order by other variants.",
        false,
        &["order_id", "payment_method_id"],
        &["item_ids", "new_item_ids"],
    ),
    (
        RETURN,
        "Takes items of a delivered order back.",
        false,
        &["order_id", "payment_method_id"],
        &["item_ids"],
    ),
];

/// The tools that change something.
pub(crate) const WRITES: [&str; 4] = [CANCEL, ADDRESS, ITEMS, RETURN];

/// The reasons for which an order may be cancelled.
pub(crate) const REASONS: [&str; 2] = ["no longer needed", "ordered by mistake"];

const GOODS: [&str; 8] = [
    "desk lamp",
    "kettle",
    "backpack",
    "headphones",
    "office chair",
    "water bottle",
    "keyboard",
    "jacket",
];
const COLOURS: [&str; 4] = ["black", "blue", "green", "white"];
const FIRST: [&str; 8] = [
    "Ana", "Ben", "Chloe", "Dario", "Emma", "Farid", "Gita", "Hugo",
];
const LAST: [&str; 8] = [
    "Ito", "Jones", "Khan", "Lopez", "Moore", "Novak", "Okafor", "Patel",
];
const STREETS: [&str; 4] = ["Elm Street", "Hill Road", "Lake View", "Mill Lane"];

/// Everything that the shop knows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Shop {
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) orders: BTreeMap<String, Order>,
    pub(crate) products: BTreeMap<String, Product>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the record's member is named so")]
pub(crate) struct User {
    pub(crate) user_id: String,
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) email: String,
    pub(crate) address: Address,
    pub(crate) orders: Vec<String>,
    pub(crate) payment_methods: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Address {
    pub(crate) address1: String,
    pub(crate) zip: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the record's member is named so")]
pub(crate) struct Order {
    pub(crate) order_id: String,
    pub(crate) user_id: String,
    pub(crate) status: String,
    pub(crate) address: Address,
    pub(crate) items: Vec<Item>,
    pub(crate) payment_history: Vec<Payment>,
    /// Whether the parcel is at the door: the status says so from the second read on.
    #[serde(skip)]
    pub(crate) arrives: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the record's member is named so")]
pub(crate) struct Item {
    pub(crate) item_id: String,
    pub(crate) product_id: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Payment {
    pub(crate) payment_method_id: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the record's member is named so")]
pub(crate) struct Product {
    pub(crate) product_id: String,
    pub(crate) name: String,
    pub(crate) variants: BTreeMap<String, Variant>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Variant {
    pub(crate) item_id: String,
    pub(crate) colour: String,
    pub(crate) available: bool,
}

impl Shop {
    /// The shop of a seed: a customer, who is the first user in `users_in_order`, and a neighbour.
    pub(crate) fn new(seed: u64) -> (Self, Vec<String>) {
        let mut draws = Draws::new(seed, "shop", 0);
        let mut shop = Self {
            users: BTreeMap::new(),
            orders: BTreeMap::new(),
            products: BTreeMap::new(),
        };
        for name in GOODS {
            let product_id = draws.digits(10);
            let variants = COLOURS.iter().map(|colour| {
                let item_id = draws.digits(10);
                let variant = Variant {
                    item_id: item_id.clone(),
                    colour: (*colour).to_owned(),
                    available: draws.happens(70),
                };
                (item_id, variant)
            });
            let product = Product {
                product_id: product_id.clone(),
                name: name.to_owned(),
                variants: variants.collect(),
            };
            shop.products.insert(product_id, product);
        }
        let users = (0..2)
            .map(|number| shop.add_user(number, &mut draws))
            .collect();
        (shop, users)
    }

    fn add_user(&mut self, number: usize, draws: &mut Draws) -> String {
        // Of two users, each has names of their own.
        let name = |from: &[&str], draws: &mut Draws| {
            from[draws.below(from.len() / 2) * 2 + number].to_owned()
        };
        let (first_name, last_name) = (name(&FIRST, draws), name(&LAST, draws));
        let user_id = format!("{}_{}_{}", first_name, last_name, draws.digits(4)).to_lowercase();
        let card = format!("credit_card_{}", draws.digits(7));
        let mut payment_methods =
            BTreeMap::from([(card.clone(), json!({"source": "credit_card"}))]);
        if draws.happens(40) {
            payment_methods.insert(
                format!("gift_card_{}", draws.digits(7)),
                json!({"source": "gift_card"}),
            );
        }
        let address = address(draws);
        let mut statuses = vec!["pending", "delivered"];
        for _ in 0..draws.below(3) {
            statuses.push(["pending", "delivered", "processed"][draws.below(3)]);
        }
        if draws.happens(50) {
            statuses.reverse();
        }
        let mut goods: Vec<Product> = self.products.values().cloned().collect();
        let mut orders = Vec::new();
        for status in statuses {
            let order_id = format!("#W{}", draws.digits(7));
            let mut items = Vec::new();
            for _ in 0..=draws.below(2) {
                // No two of a user's orders hold the same product, so a product tells which is meant.
                let product = goods.swap_remove(draws.below(goods.len()));
                let variants: Vec<&String> = product.variants.keys().collect();
                let item_id = variants[draws.below(variants.len())].clone();
                items.push(Item {
                    item_id,
                    product_id: product.product_id,
                    name: product.name,
                });
            }
            let order = Order {
                order_id: order_id.clone(),
                user_id: user_id.clone(),
                status: status.to_owned(),
                address: address.clone(),
                items,
                payment_history: vec![Payment {
                    payment_method_id: card.clone(),
                }],
                arrives: status == "processed",
            };
            self.orders.insert(order_id.clone(), order);
            orders.push(order_id);
        }
        let user = User {
            user_id: user_id.clone(),
            email: format!("{first_name}.{last_name}@example.com").to_lowercase(),
            first_name,
            last_name,
            address,
            orders,
            payment_methods,
        };
        self.users.insert(user_id.clone(), user);
        user_id
    }

    /// The tools, as `tools/list` gives them.
    pub(crate) fn tools() -> Vec<Value> {
        let tool = |(name, description, reads, texts, lists): &(
            &str,
            &str,
            bool,
            &[&str],
            &[&str],
        )| {
            let mut properties = BTreeMap::new();
            for text in *texts {
                properties.insert(*text, json!({"type": "string"}));
            }
            for list in *lists {
                properties.insert(*list, json!({"type": "array", "items": {"type": "string"}}));
            }
            let required: Vec<&&str> = texts.iter().chain(lists.iter()).collect();
            json!({
                "name": name,
                "description": description,
                "inputSchema": {"type": "object", "properties": properties, "required": required},
                "annotations": {"readOnlyHint": reads},
            })
        };
        TOOLS.iter().map(tool).collect()
    }

    /// Runs a call: the text of its result, or of its failure.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<String, String> {
        let text = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let json = |record: Value| Ok(record.to_string());
        match tool {
            BY_EMAIL => {
                let mut users = self.users.values();
                let found = users.find(|user| user.email == text("email"));
                found
                    .map(|user| user.user_id.clone())
                    .ok_or_else(|| "Error: user not found".to_owned())
            }
            BY_NAME => {
                let mut users = self.users.values();
                let found = users.find(|user| {
                    user.first_name == text("first_name")
                        && user.last_name == text("last_name")
                        && user.address.zip == text("zip")
                });
                found
                    .map(|user| user.user_id.clone())
                    .ok_or_else(|| "Error: user not found".to_owned())
            }
            USER => match self.users.get(text("user_id")) {
                Some(user) => json(json!(user)),
                None => Err("Error: user not found".to_owned()),
            },
            PRODUCT => match self.products.get(text("product_id")) {
                Some(product) => json(json!(product)),
                None => Err("Error: product not found".to_owned()),
            },
            ORDER | CANCEL | ADDRESS | ITEMS | RETURN => {
                let Some(order) = self.orders.get_mut(text("order_id")) else {
                    return Err("Error: order not found".to_owned());
                };
                if tool == ORDER {
                    let seen = json!(order);
                    if order.arrives {
                        order.arrives = false;
                        "delivered".clone_into(&mut order.status);
                    }
                    return json(seen);
                }
                match tool {
                    CANCEL => "cancelled".clone_into(&mut order.status),
                    ADDRESS => {
                        order.address = Address {
                            address1: text("address1").to_owned(),
                            zip: text("zip").to_owned(),
                        }
                    }
                    ITEMS => {
                        let (old, new) = (
                            texts(arguments, "item_ids"),
                            texts(arguments, "new_item_ids"),
                        );
                        for (old, new) in old.iter().zip(new) {
                            if let Some(item) =
                                order.items.iter_mut().find(|item| item.item_id == *old)
                            {
                                new.clone_into(&mut item.item_id);
                            }
                        }
                        "pending (item modified)".clone_into(&mut order.status);
                    }
                    _ => "return requested".clone_into(&mut order.status),
                }
                json(json!(order))
            }
            _ => Err(format!("Error: unknown tool {tool}")),
        }
    }

    /// Why the policy forbids this write for this customer, with the records as they are; nothing
    /// when it does not. Whether the customer agreed is not the shop's to know.
    pub(crate) fn objection(
        &self,
        customer: &str,
        tool: &str,
        arguments: &Value,
    ) -> Option<&'static str> {
        let text = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let Some(order) = self.orders.get(text("order_id")) else {
            return Some("no such order");
        };
        if order.user_id != customer {
            return Some("somebody else's order");
        }
        let status_wanted = if tool == RETURN {
            "delivered"
        } else {
            "pending"
        };
        let fits = match tool {
            ADDRESS => order.status.contains(status_wanted),
            _ => order.status == status_wanted,
        };
        if !fits {
            return Some("the order's status");
        }
        if tool == CANCEL && !REASONS.contains(&text("reason")) {
            return Some("no accepted reason");
        }
        if tool == ITEMS || tool == RETURN {
            let wallet = self.users.get(customer).map(|user| &user.payment_methods);
            if !wallet.is_some_and(|wallet| wallet.contains_key(text("payment_method_id"))) {
                return Some("somebody else's payment method");
            }
            let held = |item: &&str| order.items.iter().find(|held| held.item_id == **item);
            let items = texts(arguments, "item_ids");
            if !items.iter().all(|item| held(item).is_some()) {
                return Some("no item of the order");
            }
            for (old, new) in items.iter().zip(texts(arguments, "new_item_ids")) {
                let product = held(old).and_then(|item| self.products.get(&item.product_id));
                let variant = product.and_then(|product| product.variants.get(new));
                if *old == new || !variant.is_some_and(|variant| variant.available) {
                    return Some("no available variant");
                }
            }
        }
        None
    }
}

/// An address that is drawn.
pub(crate) fn address(draws: &mut Draws) -> Address {
    let street = STREETS[draws.below(STREETS.len())];
    Address {
        address1: format!("{} {street}", 1 + draws.below(99)),
        zip: draws.digits(5),
    }
}

fn texts<'a>(arguments: &'a Value, name: &str) -> Vec<&'a str> {
    let list = arguments.get(name).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> (Shop, String, Order) {
        let (shop, users) = Shop::new(3);
        let order = |order: &&Order| order.user_id == users[0] && order.status == "pending";
        let order = shop.orders.values().find(order).unwrap().clone();
        (shop, users[0].clone(), order)
    }

    #[test]
    fn a_cancelled_order_stays_cancelled() {
        let (mut shop, user, order) = shop();
        let cancel = json!({"order_id": order.order_id, "reason": REASONS[0]});
        assert_eq!(shop.objection(&user, CANCEL, &cancel), None);
        shop.call(CANCEL, &cancel).unwrap();
        let read = shop
            .call(ORDER, &json!({"order_id": order.order_id}))
            .unwrap();
        assert!(read.contains(r#""status":"cancelled""#), "{read}");
        assert_eq!(
            shop.objection(&user, CANCEL, &cancel),
            Some("the order's status")
        );
    }

    #[test]
    fn the_truth_knows_owner_reason_and_wallet_where_the_tools_do_not() {
        let (mut shop, user, order) = shop();
        let cheaper = json!({"order_id": order.order_id, "reason": "found it cheaper"});
        assert_eq!(
            shop.objection(&user, CANCEL, &cheaper),
            Some("no accepted reason")
        );
        assert_eq!(
            shop.objection("another", CANCEL, &cheaper),
            Some("somebody else's order")
        );
        let swap = json!({"order_id": order.order_id, "item_ids": [], "new_item_ids": [],
            "payment_method_id": "credit_card_0"});
        assert_eq!(
            shop.objection(&user, ITEMS, &swap),
            Some("somebody else's payment method")
        );
        assert!(
            shop.call(CANCEL, &cheaper).is_ok(),
            "the tool trusts its caller"
        );
    }

    #[test]
    fn a_parcel_at_the_door_is_delivered_from_the_second_read_on() {
        let parcel = |shop: &Shop| shop.orders.values().find(|order| order.arrives).cloned();
        let (mut shop, parcel) = (0..)
            .find_map(|seed| {
                let (shop, _) = Shop::new(seed);
                let parcel = parcel(&shop)?;
                Some((shop, parcel))
            })
            .unwrap();
        let mut read = || {
            shop.call(ORDER, &json!({"order_id": parcel.order_id}))
                .unwrap()
        };
        assert!(read().contains(r#""status":"processed""#));
        assert!(read().contains(r#""status":"delivered""#));
    }

    #[test]
    fn the_same_seed_stocks_the_same_shop() {
        assert_eq!(Shop::new(5), Shop::new(5));
        assert_ne!(Shop::new(5), Shop::new(6));
    }
}
