//! Policy rules that check an agent's writes.
