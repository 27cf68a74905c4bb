//! Times, sorted into buckets that double in width.

use std::fmt;
use std::time::Duration;

use crate::scheduler::metrics::{BUCKETS, Buckets, bound};

/// How often a time fell into which range: up to 1 µs, up to 2 µs, up to 4 µs and so on up to 8.4 s, and above.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram(Buckets);

impl Histogram {
    pub(super) fn new(buckets: Buckets) -> Self {
        Self(buckets)
    }

    /// The ranges, shortest first: the longest time that falls into it (`None` for the last, which has no end), and how
    /// many did.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let counts = self.0.counts;
        (0..BUCKETS).map(move |bucket| (bound(bucket).map(Duration::from_nanos), counts[bucket]))
    }

    /// How many times were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.counts.iter().sum()
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.0.sum)
    }

    /// Their mean; `None` if there is none.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        self.0
            .sum
            .checked_div(self.count())
            .map(Duration::from_nanos)
    }

    /// A time that this share of them (0.5 for the median, 0.99) does not exceed: the end of the range in which it lies.
    /// `None` if there is none, or if it lies in the range without an end.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64)
            .ceil()
            .max(1.0);
        let mut seen = 0;
        self.buckets().find_map(|(bound, count)| {
            seen += count;
            (seen as f64 >= wanted).then_some(bound)
        })?
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.buckets().filter(|(_, count)| *count > 0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_ends_of_ranges() {
        let mut buckets = Buckets::default();
        assert_eq!(Histogram::new(buckets).quantile(0.5), None);
        assert_eq!(Histogram::new(buckets).mean(), None);
        for _ in 0..99 {
            buckets.add(900);
        }
        buckets.add(3_000_000);
        let histogram = Histogram::new(buckets);
        assert_eq!(histogram.count(), 100);
        assert_eq!(histogram.quantile(0.5), Some(Duration::from_micros(1)));
        assert_eq!(histogram.quantile(0.99), Some(Duration::from_micros(1)));
        assert_eq!(histogram.quantile(1.0), Some(Duration::from_micros(4096)));
        assert_eq!(
            histogram.total(),
            Duration::from_nanos(99 * 900 + 3_000_000)
        );
        buckets.add(u64::MAX / 2);
        assert_eq!(Histogram::new(buckets).quantile(1.0), None);
    }
}
