//! Intervals by bootstrap: how far a mean may be from the true one, judged by drawing sessions again.

use serde::Serialize;

use super::draws::Draws;

/// How often the sessions are drawn again.
const RESAMPLES: usize = 2000;

/// A mean with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean of the sample.
    pub mean: f64,
    /// The lower end: 2.5% of the means drawn are below.
    pub low: f64,
    /// The upper end: 2.5% of the means drawn are above.
    pub high: f64,
}

impl Interval {
    /// The percentile bootstrap of a mean (Efron, 1979), with a fixed seed: the same sample has
    /// the same interval. An empty sample has mean 0 and no width.
    pub(crate) fn of(sample: &[f64]) -> Self {
        let mean = mean(sample);
        let mut draws = Draws::new(95, "bootstrap", sample.len() as u64);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let sum = (0..sample.len())
                    .filter_map(|_| draws.pick(sample))
                    .sum::<f64>();
                sum / count(sample)
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let end = |place: usize| means.get(place).copied().unwrap_or(mean);
        Self {
            mean,
            low: end(RESAMPLES / 40),
            high: end(RESAMPLES - RESAMPLES / 40 - 1),
        }
    }
}

/// The mean; 0 of nothing.
pub(crate) fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / count(sample)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "there are fewer sessions than 2^53"
)]
fn count(sample: &[f64]) -> f64 {
    sample.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_without_spread_has_no_width() {
        let interval = Interval::of(&[2.0; 12]);
        assert_eq!(
            (interval.low, interval.mean, interval.high),
            (2.0, 2.0, 2.0)
        );
        assert!(Interval::of(&[]).mean.abs() < 1e-9);
    }

    #[test]
    fn the_interval_is_about_two_standard_errors_to_each_side() {
        // Of a hundred zeros and ones in equal parts, the standard error of the mean is 0.05.
        let sample: Vec<f64> = (0..100).map(|n| f64::from(n % 2)).collect();
        let interval = Interval::of(&sample);
        assert!((interval.low - 0.40).abs() < 0.02, "{interval:?}");
        assert!((interval.high - 0.60).abs() < 0.02, "{interval:?}");
        assert_eq!(interval, Interval::of(&sample));
    }
}
