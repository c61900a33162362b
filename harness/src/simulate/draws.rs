//! Seeded draws. The same seed gives the same sessions on every machine.

/// A stream of draws: `SplitMix64`, whose whole state is one number (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    /// The stream of one purpose under a seed. Streams of other purposes, or numbers, share nothing.
    pub(crate) fn new(seed: u64, purpose: &str, number: u64) -> Self {
        let mut draws = Self(seed);
        for byte in purpose.bytes() {
            draws.0 = draws.next() ^ u64::from(byte);
        }
        draws.0 = draws.next() ^ number;
        draws.next();
        draws
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `end`; 0 when `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// Whether something happens that does so `percent` times in a hundred.
    pub(crate) fn happens(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these, each as likely as the next; nothing when there are none.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let place = self.below(from.len());
        from.get(place)
    }

    /// So many decimal digits.
    pub(crate) fn digits(&mut self, count: usize) -> String {
        (0..count)
            .map(|_| char::from(b"0123456789"[self.below(10)]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_another_purpose_something_else() {
        let first = |purpose, number| Draws::new(7, purpose, number).next();
        assert_eq!(first("customer", 1), first("customer", 1));
        assert_ne!(first("customer", 1), first("customer", 2));
        assert_ne!(first("customer", 1), first("shop", 1));
    }

    #[test]
    fn draws_stay_below_their_end() {
        let mut draws = Draws::new(1, "test", 0);
        assert!((0..1000).all(|_| draws.below(7) < 7));
        assert_eq!(draws.pick::<u8>(&[]), None);
    }
}
