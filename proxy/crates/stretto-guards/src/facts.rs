//! What a session has shown so far, kept as it goes on.
//!
//! Facts are read from results that came back without an error, and from what was said. Each
//! event is taken in once; a check then only looks things up, so a call late in a long session
//! costs what an early one does. Of each record only what some rule reads is kept.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use stretto_trace::{Event, ToolCall};

use crate::exchange::Exchange;
use crate::json::{Content, text};

pub(crate) mod records;

use records::{Bookings, Order, Product, Profile, Reservation, Wallet};

/// The tools that tell who the customer is.
const IDENTIFYING: [&str; 2] = ["find_user_id_by_email", "find_user_id_by_name_zip"];

/// The tools that change an order's items, which may be done once per order.
const ITEM_CHANGES: [&str; 2] = [
    "modify_pending_order_items",
    "exchange_delivered_order_items",
];

/// What a session has shown so far.
///
/// Feed it everything that happens, in order: either whole [events](Event) with
/// [`observe`](Facts::observe), or calls, results and words as they come. A call is checked
/// before it is fed.
///
/// The newest result about a record is all that is known of it: what only an older one held is
/// forgotten.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What calls that have not returned asked for, by call id, where a result alone does not tell.
    asked: HashMap<String, Asked>,
    authenticated: HashSet<String>,
    users: HashMap<String, Profile>,
    products: HashMap<String, Product>,
    orders: HashMap<String, Order>,
    reservations: HashMap<String, Reservation>,
    /// The last read status of a flight, by number and then date.
    flights: HashMap<String, HashMap<String, String>>,
    /// The orders whose items a successful call changed.
    item_changes: HashSet<String>,
    /// The payment methods of every profile that was read.
    every_wallet: Wallet,
    /// The payment methods of the profiles of identified users.
    customers_wallet: Wallet,
    /// What is known of each user's reservations together.
    bookings: HashMap<String, Bookings>,
    exchange: Exchange,
}

/// What a call asked for, as far as its result will need it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    Profile { user: String },
    Flight { number: String, date: String },
    ItemChange { order: String },
}

impl Asked {
    fn by(call: &ToolCall) -> Option<Self> {
        let argument = |name| text(&call.arguments, name).map(str::to_owned);
        match call.name.as_str() {
            "get_user_details" => Some(Self::Profile {
                user: argument("user_id")?,
            }),
            "get_flight_status" => Some(Self::Flight {
                number: argument("flight_number")?,
                date: argument("date")?,
            }),
            tool if ITEM_CHANGES.contains(&tool) => Some(Self::ItemChange {
                order: argument("order_id")?,
            }),
            _ => None,
        }
    }
}

impl Facts {
    /// Takes in an event of an episode.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::User { text } => self.user_said(text),
            Event::Assistant { text, calls, .. } => {
                if let Some(text) = text {
                    self.agent_said(text);
                }
                for call in calls {
                    self.called(call);
                }
            }
            Event::ToolResult {
                call_id,
                name,
                error,
                content,
            } => {
                self.returned(call_id, name, *error, content);
            }
        }
    }

    /// Takes in a message of the customer's.
    pub fn user_said(&mut self, text: &str) {
        self.exchange.user_said(text);
    }

    /// Takes in what the agent said in a turn.
    pub fn agent_said(&mut self, text: &str) {
        self.exchange.agent_said(text);
    }

    /// Takes in a call, which need not have been checked. A later call of the same id takes
    /// the place of one that has not returned.
    pub fn called(&mut self, call: &ToolCall) {
        match Asked::by(call) {
            Some(asked) => self.asked.insert(call.id.clone(), asked),
            None => self.asked.remove(&call.id),
        };
    }

    /// Takes in the first response to a call: the call's id and tool, whether it is an error,
    /// and its text. A refused call is one that returned an error.
    ///
    /// The result of a call that was never fed still shows records; it counts as no write, and
    /// its status of a flight as no flight's.
    pub fn returned(&mut self, call_id: &str, tool: &str, error: bool, content: &str) {
        let asked = self.asked.remove(call_id);
        if error {
            return;
        }
        if let Some(Asked::ItemChange { order }) = &asked {
            self.item_changes.insert(order.clone());
        }
        match Content::read(content) {
            Content::Text(text) => self.text_returned(tool, asked, &text),
            Content::Json(value) if value.is_object() => self.record_returned(tool, asked, &value),
            Content::Json(_) => {}
        }
    }

    fn text_returned(&mut self, tool: &str, asked: Option<Asked>, text: &str) {
        if IDENTIFYING.contains(&tool) {
            // An error that is told as plain text has blanks in it, an id has none.
            let id = text.trim_matches('"');
            if !id.is_empty() && !id.contains(char::is_whitespace) {
                self.identified(id);
            }
        } else if tool == "get_flight_status"
            && let Some(Asked::Flight { number, date }) = asked
        {
            self.flights
                .entry(number)
                .or_default()
                .insert(date, text.to_owned());
        }
    }

    fn record_returned(&mut self, tool: &str, asked: Option<Asked>, record: &Value) {
        match tool {
            "get_user_details" => {
                let named = match (record.get("user_id"), asked) {
                    (Some(id), _) => id.as_str().map(str::to_owned),
                    (None, Some(Asked::Profile { user })) => Some(user),
                    (None, _) => None,
                };
                if let Some(id) = named {
                    self.profile_read(id, Profile::read(record));
                }
            }
            "get_product_details" => {
                if let Some(id) = text(record, "product_id") {
                    self.products.insert(id.to_owned(), Product::read(record));
                }
            }
            _ => {}
        }
        if let Some(id) = text(record, "order_id") {
            self.orders.insert(id.to_owned(), Order::read(record));
        }
        if let Some(id) = text(record, "reservation_id") {
            self.reservation_read(id, Reservation::read(record));
        }
    }

    fn identified(&mut self, user: &str) {
        let is_new = self.authenticated.insert(user.to_owned());
        if is_new && let Some(profile) = self.users.get(user) {
            self.customers_wallet.add(profile);
        }
    }

    fn profile_read(&mut self, user: String, profile: Profile) {
        let is_customer = self.authenticated.contains(&user);
        self.every_wallet.add(&profile);
        if is_customer {
            self.customers_wallet.add(&profile);
        }
        if let Some(old) = self.users.insert(user, profile) {
            self.every_wallet.remove(&old);
            if is_customer {
                self.customers_wallet.remove(&old);
            }
        }
    }

    fn reservation_read(&mut self, id: &str, reservation: Reservation) {
        if let Some(owner) = &reservation.owner {
            self.bookings
                .entry(owner.clone())
                .or_default()
                .add(&reservation);
        }
        if let Some(old) = self.reservations.insert(id.to_owned(), reservation)
            && let Some(owner) = &old.owner
        {
            self.bookings.entry(owner.clone()).or_default().remove(&old);
        }
    }
}

/// What rules ask.
impl Facts {
    /// What the customer said last, and what it answers.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    pub(crate) fn nobody_is_identified(&self) -> bool {
        self.authenticated.is_empty()
    }

    pub(crate) fn is_identified(&self, user: &str) -> bool {
        self.authenticated.contains(user)
    }

    pub(crate) fn user(&self, id: &str) -> Option<&Profile> {
        self.users.get(id)
    }

    pub(crate) fn order(&self, id: &str) -> Option<&Order> {
        self.orders.get(id)
    }

    pub(crate) fn product(&self, id: &str) -> Option<&Product> {
        self.products.get(id)
    }

    pub(crate) fn reservation(&self, id: &str) -> Option<&Reservation> {
        self.reservations.get(id)
    }

    /// The last read status of a flight, if it was read.
    pub(crate) fn flight_status(&self, number: &str, date: &str) -> Option<&str> {
        Some(self.flights.get(number)?.get(date)?)
    }

    pub(crate) fn items_were_changed(&self, order: &str) -> bool {
        self.item_changes.contains(order)
    }

    /// The payment methods of every profile that was read.
    pub(crate) fn every_wallet(&self) -> &Wallet {
        &self.every_wallet
    }

    /// The payment methods of the identified users whose profiles were read.
    pub(crate) fn customers_wallet(&self) -> &Wallet {
        &self.customers_wallet
    }

    /// What is known of a user's reservations together.
    pub(crate) fn bookings(&self, user: &str) -> Bookings {
        self.bookings.get(user).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
