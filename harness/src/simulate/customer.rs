//! Customers, drawn from a seed: what they ask for, how they answer a proposal, and what the agent
//! that serves them is careless about.
//!
//! Everything is drawn before the session begins, so that the same seed is the same customer with
//! the same agent in each arm, however the session goes.

use serde_json::{Value, json};

use super::draws::Draws;
use super::shop::{self, Address, Order, REASONS, Shop};

/// A customer, and the habits of the agent that serves them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Customer {
    pub(crate) user_id: String,
    /// Whether they tell their email; otherwise their name and zip code.
    pub(crate) tells_email: bool,
    pub(crate) wishes: Vec<Wish>,
    /// Whether the agent reads all orders before it speaks of one.
    pub(crate) reads_all: bool,
    /// Whether the agent reads an order again after it changed it.
    pub(crate) checks_after: bool,
}

/// One thing that a customer wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wish {
    pub(crate) request: Request,
    pub(crate) reply: Reply,
    pub(crate) slip: Slip,
    /// Whether they know the order's number; otherwise they say what was in it.
    pub(crate) names_order: bool,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    Status {
        order: String,
    },
    Cancel {
        order: String,
        reason: String,
    },
    Move {
        order: String,
        to: Address,
    },
    Swap {
        order: String,
        item: String,
        variant: String,
    },
    Return {
        order: String,
        item: String,
        just_arrived: bool,
    },
}

/// How a customer answers the proposal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Agrees,
    Refuses,
    /// Means another order or detail, and agrees to that.
    Corrects(Request),
    /// Wants something else after all, and agrees to that.
    ChangesMind(Request),
    /// Asks a question first, and then agrees.
    AsksBack,
}

/// What the agent does wrong with a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    Careful,
    /// Takes the customer's word, and holds nothing against the records that it read.
    Careless,
    /// Writes without reading the order, where the customer names it.
    Unread,
    /// Does not ask before it writes.
    Unasked,
    /// Pays back to a card that is not in the profile.
    WrongCard,
}

impl Customer {
    /// The customer of a seed, in the shop of that seed.
    pub(crate) fn new(seed: u64) -> Self {
        let (shop, users) = Shop::new(seed);
        let mut draws = Draws::new(seed, "customer", 0);
        let (user_id, neighbour) = (users[0].clone(), users[1].clone());
        let mut wishes: Vec<Wish> = Vec::new();
        for _ in 0..=usize::from(draws.happens(50)) {
            let wish = Wish::draw(&shop, &user_id, &neighbour, &mut draws);
            // A second wish for the same order would hang on how the first one went.
            if wishes.iter().all(|other| !other.touches(&wish)) {
                wishes.push(wish);
            }
        }
        Self {
            user_id,
            tells_email: draws.happens(70),
            wishes,
            reads_all: draws.happens(35),
            checks_after: draws.happens(50),
        }
    }
}

impl Wish {
    fn draw(shop: &Shop, user: &str, neighbour: &str, draws: &mut Draws) -> Self {
        let owner = if draws.happens(12) { neighbour } else { user };
        let request = Request::draw(shop, owner, draws);
        let slip = match draws.below(100) {
            0..45 => Slip::Careful,
            45..65 => Slip::Careless,
            65..80 => Slip::Unread,
            80..90 => Slip::Unasked,
            _ => Slip::WrongCard,
        };
        let takes_word = matches!(
            request,
            Request::Return {
                just_arrived: true,
                ..
            }
        );
        let reply = match draws.below(100) {
            0..50 => Reply::Agrees,
            50..65 => Reply::Refuses,
            65..77 => Reply::Corrects(request.corrected(shop, user, draws)),
            77..88 => Reply::ChangesMind(Request::draw(shop, user, draws)),
            _ => Reply::AsksBack,
        };
        Self {
            // A neighbour's order is not in the customer's profile: only its number finds it.
            names_order: draws.happens(55) || owner == neighbour,
            slip: if takes_word { Slip::Careless } else { slip },
            reply,
            request,
        }
    }

    fn touches(&self, other: &Self) -> bool {
        let orders = |wish: &Self| {
            let later = match &wish.reply {
                Reply::Corrects(request) | Reply::ChangesMind(request) => {
                    Some(request.order().to_owned())
                }
                Reply::Agrees | Reply::Refuses | Reply::AsksBack => None,
            };
            [Some(wish.request.order().to_owned()), later]
        };
        let mine = orders(self);
        orders(other)
            .iter()
            .flatten()
            .any(|order| mine.iter().flatten().any(|own| own == order))
    }
}

impl Request {
    fn draw(shop: &Shop, owner: &str, draws: &mut Draws) -> Self {
        let orders: Vec<&Order> = shop.users.get(owner).map_or_else(Vec::new, |user| {
            user.orders
                .iter()
                .filter_map(|order| shop.orders.get(order))
                .collect()
        });
        let any = orders[draws.below(orders.len())];
        let kind = draws.below(100);
        // Most customers ask for what an order's status allows, some do not.
        let knows = draws.happens(80);
        let wanted = if kind >= 70 { "delivered" } else { "pending" };
        let fitting: Vec<&Order> = orders
            .iter()
            .copied()
            .filter(|order| order.status == wanted || (kind >= 70 && order.arrives))
            .collect();
        let order = match draws.pick(&fitting) {
            Some(order) if knows => order,
            _ => any,
        };
        let id = order.order_id.clone();
        let item = order.items[draws.below(order.items.len())].clone();
        match kind {
            0..10 => Self::Status { order: id },
            10..35 => {
                let reason = if draws.happens(80) {
                    REASONS[draws.below(REASONS.len())]
                } else {
                    "found it cheaper elsewhere"
                };
                Self::Cancel {
                    order: id,
                    reason: reason.to_owned(),
                }
            }
            35..50 => Self::Move {
                order: id,
                to: shop::address(draws),
            },
            50..70 => {
                let product = &shop.products[&item.product_id];
                let others: Vec<&String> = product
                    .variants
                    .keys()
                    .filter(|id| **id != item.item_id)
                    .collect();
                let stocked: Vec<&String> = others
                    .iter()
                    .copied()
                    .filter(|id| product.variants[*id].available)
                    .collect();
                let from = if draws.happens(80) && !stocked.is_empty() {
                    stocked
                } else {
                    others
                };
                let variant = from[draws.below(from.len())].clone();
                Self::Swap {
                    order: id,
                    item: item.item_id,
                    variant,
                }
            }
            _ => Self::Return {
                order: id,
                item: item.item_id,
                just_arrived: order.arrives,
            },
        }
    }

    /// What the customer meant instead: the same for another order, or with another detail.
    fn corrected(&self, shop: &Shop, user: &str, draws: &mut Draws) -> Self {
        let same_kind =
            |other: &Self| std::mem::discriminant(other) == std::mem::discriminant(self);
        let others = (0..40).map(|_| Self::draw(shop, user, draws));
        others
            .into_iter()
            .find(|other| same_kind(other) && other != self)
            .unwrap_or_else(|| self.clone())
    }

    /// The order that it is about.
    pub(crate) fn order(&self) -> &str {
        match self {
            Self::Status { order }
            | Self::Cancel { order, .. }
            | Self::Move { order, .. }
            | Self::Swap { order, .. }
            | Self::Return { order, .. } => order,
        }
    }

    /// The write that does it, paid or refunded with `card`; nothing for a question.
    pub(crate) fn write(&self, card: &str) -> Option<(&'static str, Value)> {
        Some(match self {
            Self::Status { .. } => return None,
            Self::Cancel { order, reason } => {
                (shop::CANCEL, json!({"order_id": order, "reason": reason}))
            }
            Self::Move { order, to } => (
                shop::ADDRESS,
                json!({"order_id": order, "address1": to.address1, "zip": to.zip}),
            ),
            Self::Swap {
                order,
                item,
                variant,
            } => (
                shop::ITEMS,
                json!({"order_id": order, "item_ids": [item], "new_item_ids": [variant],
                    "payment_method_id": card}),
            ),
            Self::Return { order, item, .. } => (
                shop::RETURN,
                json!({"order_id": order, "item_ids": [item], "payment_method_id": card}),
            ),
        })
    }

    /// How the customer puts it. They name goods, or the order where they know its number.
    pub(crate) fn words(&self, shop: &Shop, names_order: bool) -> String {
        let order = shop.orders.get(self.order());
        let goods = order
            .and_then(|order| order.items.first())
            .map_or("thing", |item| &item.name);
        let which = if names_order {
            format!("order {}", self.order())
        } else {
            format!("the order with the {goods}")
        };
        match self {
            Self::Status { .. } => format!("Where is {which}?"),
            Self::Cancel { reason, .. } => format!("I want to cancel {which}: {reason}."),
            Self::Move { to, .. } => format!("{which} has to go to {}, {}.", to.address1, to.zip),
            Self::Swap { item, variant, .. } => {
                let of = |id: &String| {
                    shop.products
                        .values()
                        .find_map(|product| product.variants.get(id))
                };
                let colour = |id| of(id).map_or("other", |variant| variant.colour.as_str());
                format!(
                    "In {which}, I want the {} one in {}.",
                    colour(item),
                    colour(variant)
                )
            }
            Self::Return {
                just_arrived: true, ..
            } => {
                format!("{which} arrived this minute, and I want to send an item back.")
            }
            Self::Return { .. } => format!("I want to send an item of {which} back."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_customer() {
        assert_eq!(Customer::new(11), Customer::new(11));
    }

    #[test]
    fn customers_answer_in_every_way_and_agents_slip_in_every_way() {
        let customers: Vec<Customer> = (0..300).map(Customer::new).collect();
        let wishes = || customers.iter().flat_map(|customer| &customer.wishes);
        let replies: std::collections::HashSet<_> = wishes()
            .map(|wish| std::mem::discriminant(&wish.reply))
            .collect();
        let slips: std::collections::HashSet<_> = wishes()
            .map(|wish| std::mem::discriminant(&wish.slip))
            .collect();
        assert_eq!((replies.len(), slips.len()), (5, 5));
    }

    #[test]
    fn an_order_without_its_number_is_one_of_the_customers_own() {
        for seed in 0..200 {
            let (shop, customer) = (Shop::new(seed).0, Customer::new(seed));
            for wish in customer.wishes.iter().filter(|wish| !wish.names_order) {
                assert_eq!(shop.orders[wish.request.order()].user_id, customer.user_id);
            }
        }
    }
}
