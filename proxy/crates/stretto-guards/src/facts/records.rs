//! Records as the rules need them: of each, the members that some rule reads.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json::{integer, length, list, text};

/// A user's profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    /// The ids of the user's payment methods.
    pub(crate) payment_methods: HashSet<String>,
    pub(crate) membership: Option<String>,
}

impl Profile {
    pub(crate) fn read(record: &Value) -> Self {
        let methods = record.get("payment_methods").and_then(Value::as_object);
        Self {
            payment_methods: methods
                .into_iter()
                .flat_map(|m| m.keys().cloned())
                .collect(),
            membership: owned(record, "membership"),
        }
    }
}

/// The payment methods of several profiles, so that one is found without going through them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wallet {
    /// Whether any profile was read. A profile may be read again, but never is unread.
    is_filled: bool,
    /// How many of the profiles have each method.
    holders: HashMap<String, usize>,
}

impl Wallet {
    pub(crate) fn add(&mut self, profile: &Profile) {
        self.is_filled = true;
        for method in &profile.payment_methods {
            *self.holders.entry(method.clone()).or_default() += 1;
        }
    }

    /// Takes out a profile that another one has taken the place of.
    pub(crate) fn remove(&mut self, profile: &Profile) {
        for method in &profile.payment_methods {
            if let Some(holders) = self.holders.get_mut(method) {
                *holders -= 1;
                if *holders == 0 {
                    self.holders.remove(method);
                }
            }
        }
    }

    /// Whether no profile is in it, which is not the same as no method.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_filled
    }

    pub(crate) fn holds(&self, method: &str) -> bool {
        self.holders.contains_key(method)
    }
}

/// A shop's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) owner: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) items: Vec<Item>,
    /// The method of the first payment.
    pub(crate) paid_with: Option<String>,
}

/// An item of an order. An order may hold several of the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) product: Option<String>,
}

impl Order {
    pub(crate) fn read(record: &Value) -> Self {
        let item = |item: &Value| {
            let id = owned(item, "item_id")?;
            Some(Item {
                id,
                product: owned(item, "product_id"),
            })
        };
        let payment = list(record, "payment_history").first();
        Self {
            owner: owned(record, "user_id"),
            status: owned(record, "status"),
            items: list(record, "items").iter().filter_map(item).collect(),
            paid_with: payment.and_then(|payment| owned(payment, "payment_method_id")),
        }
    }

    pub(crate) fn holds(&self, item: &str) -> bool {
        self.items.iter().any(|held| held.id == item)
    }

    /// The product of an item of the order.
    pub(crate) fn product_of(&self, item: &str) -> Option<&str> {
        let mut same = self.items.iter().filter(|held| held.id == item);
        same.find_map(|held| held.product.as_deref())
    }
}

/// A shop's product.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Product {
    /// Whether each variant can be had, by its item id.
    pub(crate) variants: HashMap<String, bool>,
}

impl Product {
    pub(crate) fn read(record: &Value) -> Self {
        // A variant that does not say is taken to be there.
        let available = |variant: &Value| variant.get("available") != Some(&Value::Bool(false));
        let variants = record.get("variants").and_then(Value::as_object);
        let variants = variants.into_iter().flatten();
        Self {
            variants: variants
                .map(|(id, variant)| (id.clone(), available(variant)))
                .collect(),
        }
    }
}

/// An airline's reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) owner: Option<String>,
    pub(crate) cabin: Option<String>,
    pub(crate) insurance: Option<String>,
    pub(crate) created_at: Option<String>,
    pub(crate) legs: Vec<Leg>,
    pub(crate) bags: Option<i128>,
    /// How many passengers travel.
    pub(crate) passengers: Option<usize>,
}

impl Reservation {
    pub(crate) fn read(record: &Value) -> Self {
        Self {
            owner: owned(record, "user_id"),
            cabin: owned(record, "cabin"),
            insurance: owned(record, "insurance"),
            created_at: owned(record, "created_at"),
            legs: legs(record),
            bags: integer(record, "total_baggages"),
            passengers: length(record, "passengers"),
        }
    }

    pub(crate) fn is_insured(&self) -> bool {
        self.insurance.as_deref() == Some("yes")
    }

    pub(crate) fn is_business(&self) -> bool {
        self.cabin.as_deref() == Some("business")
    }
}

/// A flight of a reservation or of a call. Both members are JSON, so that two legs are the same
/// only when they are written the same, whatever types a server uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg {
    number: Value,
    date: Value,
}

impl Leg {
    fn read(flight: &Value) -> Self {
        let member = |name| flight.get(name).cloned().unwrap_or_default();
        if flight.is_object() {
            Self {
                number: member("flight_number"),
                date: member("date"),
            }
        } else {
            Self {
                number: flight.clone(),
                date: Value::Null,
            }
        }
    }

    pub(crate) fn number(&self) -> Option<&str> {
        self.number.as_str()
    }

    pub(crate) fn date(&self) -> Option<&str> {
        self.date.as_str()
    }
}

/// The flights that a reservation or a call names.
pub(crate) fn legs(value: &Value) -> Vec<Leg> {
    list(value, "flights").iter().map(Leg::read).collect()
}

/// What is known of all reservations of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bookings {
    /// How many were read.
    pub(crate) seen: usize,
    /// How many of them are insured or in business class.
    pub(crate) covered: usize,
}

impl Bookings {
    pub(crate) fn add(&mut self, reservation: &Reservation) {
        self.seen += 1;
        self.covered += usize::from(reservation.is_insured() || reservation.is_business());
    }

    /// Takes out a reservation that was added.
    pub(crate) fn remove(&mut self, reservation: &Reservation) {
        self.seen -= 1;
        self.covered -= usize::from(reservation.is_insured() || reservation.is_business());
    }
}

fn owned(value: &Value, name: &str) -> Option<String> {
    text(value, name).map(str::to_owned)
}
