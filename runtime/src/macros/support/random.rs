//! Where a `select!` begins: a number that is cheap to have and evenly spread.

use std::cell::Cell;

thread_local! {
    /// A Weyl sequence: any start will do.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// The odd number next to 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number below `limit`, the next one of this thread.
///
/// One addition and two multiplications (wyrand's mixing); no clock, no system call, no lock. Not for secrets.
#[inline]
pub fn random_below(limit: u32) -> u32 {
    let state = STATE.get().wrapping_add(STEP);
    STATE.set(state);
    let wide = u128::from(state) * u128::from(state ^ 0xe703_7ed1_a0b4_28db);
    let mixed = (wide >> 64) as u64 ^ wide as u64;
    // The high half spreads over the range without a division.
    (((mixed >> 32) * u64::from(limit)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::random_below;

    #[test]
    fn numbers_are_below_the_limit_and_evenly_spread() {
        for limit in [1, 2, 3, 5, 64] {
            let rounds = 2000 * limit;
            let mut counts = vec![0; limit as usize];
            for _ in 0..rounds {
                counts[random_below(limit) as usize] += 1;
            }
            for (number, count) in counts.iter().enumerate() {
                assert!(
                    (1700..2300).contains(count),
                    "{number} of {limit} came {count} times instead of about 2000"
                );
            }
        }
    }

    #[test]
    fn runs_of_one_number_are_short() {
        let (mut run, mut longest, mut last) = (0, 0, 2);
        for _ in 0..100_000 {
            let number = random_below(2);
            run = if number == last { run + 1 } else { 1 };
            longest = longest.max(run);
            last = number;
        }
        assert!((8..40).contains(&longest), "longest run {longest}");
    }
}
