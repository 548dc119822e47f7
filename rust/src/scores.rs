//! What can be a score, and what kernels do with scores of any dtype: put them in order, in bins, beside each other.

use std::ops::AddAssign;

use crate::each::each;
use crate::error::Result;
use crate::labels::Label;
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::sort::{filled, sorted};

/// Scores that one comparison looks at: a whole vector, or two.
pub(crate) const LANES: usize = 16;
/// Lanes that one loop takes.
pub(crate) const PART: usize = 8;
pub(crate) const PARTS: usize = LANES / PART;
/// Integers of one task.
const STEP: usize = 1 << 16;

/// A number that may be a score.
pub trait Number: Copy + Send + Sync + std::fmt::Display {
    /// Whether the number has no place in an order.
    fn is_nan(self) -> bool;
    /// Bit of the number read as a label, to recognise swapped arguments.
    fn label_bit(self) -> u8;
    /// The nearest float64.
    fn as_f64(self) -> f64;
    /// Whether it is the number itself.
    fn is_f64(self) -> bool;
}

/// A score: anything with a total order once NaN is ruled out. Integers are brought into the order of floats first, so
/// that no kernel is compiled for them.
pub trait Score: Number + Default + PartialOrd {
    /// Unsigned integer of the same order; -0.0 and 0.0 share one.
    type Key: Copy + Ord + Default + Send + Sync + Into<u128>;
    /// Slope of the straight line from scores to bins.
    type Slope: Copy + Send + Sync;
    /// Integer as wide as the score, for counts in lanes.
    type Count: Copy + Default + AddAssign + Into<i64>;
    /// Key of the score.
    fn key(self) -> Self::Key;
    /// The score of a key.
    fn of_key(key: Self::Key) -> Self;
    /// Key and a number in one: ordered by key, and then by number. One comparison of such is cheaper than two.
    #[inline]
    fn numbered(self, number: u32) -> u128 {
        self.key().into() << 32 | u128::from(number)
    }
    /// The least score above this one.
    #[must_use]
    fn next(self) -> Self;
    /// Slope that maps `low..=high` onto `bins` bins (at most 2^16); nothing where no straight line does.
    fn slope(low: Self, high: Self, bins: usize) -> Option<Self::Slope>;
    /// Bin of a score that is not below `low`; a larger score is never in a lower bin.
    fn bin(self, low: Self, slope: Self::Slope) -> u32;
    /// Add to each lane of `total` how many of `others` are above that lane's score less how many are below it.
    ///
    /// Only the first `n` lanes count.
    fn compare(lanes: &[Self; LANES], n: usize, others: &[Self], total: &mut [Self::Count; LANES]);
}

macro_rules! compare {
    ($count:ty) => {
        #[inline(always)]
        fn compare(lanes: &[Self; LANES], n: usize, others: &[Self], total: &mut [$count; LANES]) {
            let mut difference = [0 as $count; LANES];
            for other in others {
                each!(part < PARTS => {
                    for lane in part * PART..(part + 1) * PART {
                        difference[lane] += <$count>::from(lanes[lane] < *other) - <$count>::from(*other < lanes[lane]);
                    }
                });
            }
            for lane in 0..LANES {
                total[lane] += if (lane as $count) < n as $count { difference[lane] } else { 0 };
            }
        }
    };
}

macro_rules! float_score {
    ($float:ty, $key:ty, $signed:ty, $integers:expr) => {
        impl Number for $float {
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            fn label_bit(self) -> u8 {
                self.bit()
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_f64(self) -> bool {
                true
            }
        }

        impl Score for $float {
            type Key = $key;
            type Slope = $float;
            type Count = $signed;
            #[inline(always)]
            fn key(self) -> $key {
                let bits = (self + 0.0).to_bits(); // -0.0 + 0.0 is 0.0
                bits ^ (((bits as $signed) >> (<$key>::BITS - 1)) as $key | (1 << (<$key>::BITS - 1)))
            }
            fn of_key(key: $key) -> Self {
                let below = 1 << (<$key>::BITS - 1);
                Self::from_bits(if key >= below { key ^ below } else { !key })
            }
            fn next(self) -> Self {
                self.next_up()
            }
            fn slope(low: Self, high: Self, bins: usize) -> Option<Self> {
                let slope = (bins - 1) as $float / (high - low);
                (slope > 0.0 && slope.is_finite()).then_some(slope)
            }
            #[inline(always)]
            fn bin(self, low: Self, slope: Self) -> u32 {
                // Added to where floats are the integers, a number is rounded to one, in its low bits.
                ((self - low) * slope + $integers).to_bits() as u32 & 0xFFFF
            }
            compare!($signed);
        }
    };
}
float_score!(f32, u32, i32, 8388608.0);
float_score!(f64, u64, i64, 4503599627370496.0);

macro_rules! integer {
    ($integer:ty) => {
        impl Number for $integer {
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
            fn label_bit(self) -> u8 {
                self.bit()
            }
            #[inline(always)]
            fn as_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn is_f64(self) -> bool {
                let size = self.abs_diff(0);
                size == 0 || u64::BITS - size.leading_zeros() - size.trailing_zeros() <= f64::MANTISSA_DIGITS
            }
        }
    };
}
integer!(i64);
integer!(u64);

/// Distances up to this one are float64 numbers, all of them.
const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;

/// Integers as float64 numbers of the same order: the same numbers where float64 holds them, else distances from the least
/// one, and where those are too long the ranks. Only the first are 0 or 1, which might be labels.
///
/// # Errors
/// [`Error::memory`](crate::error::Error::memory), [`Error::interrupted`](crate::error::Error::interrupted).
pub fn ordered(integers: &[i64], interrupt: &Interrupt) -> Result<Vec<f64>> {
    const WHAT: &str = "integers converted to float64";
    let (low, high) =
        integers.iter().fold((i64::MAX, i64::MIN), |(low, high), &integer| (low.min(integer), high.max(integer)));
    if integers.is_empty() || (low.abs_diff(0) <= EXACT && high.abs_diff(0) <= EXACT) {
        return memory::collect(integers.iter().map(|&integer| integer as f64), WHAT);
    }
    if high.abs_diff(low) <= EXACT - 2 {
        return memory::collect(integers.iter().map(|&integer| (integer.abs_diff(low) + 2) as f64), WHAT);
    }
    let key = |integer: i64| integer as u64 ^ 1 << 63;
    let mut distinct = sorted(memory::collect(integers.iter().map(|&integer| key(integer)), WHAT)?, interrupt)?;
    distinct.dedup();
    let mut ranks = filled(0.0, integers.len(), WHAT, interrupt)?;
    let cuts = parallel::cuts(ranks.len(), STEP, |at| at)?;
    parallel::fill(&mut ranks, &cuts, true, interrupt, |task, ranks| {
        for (rank, &integer) in ranks.iter_mut().zip(&integers[task * STEP..]) {
            *rank = (distinct.partition_point(|&other| other < key(integer)) + 2) as f64;
        }
        Ok(())
    })?;
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_order_of_the_scores() {
        let ascending = [f64::NEG_INFINITY, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, f64::INFINITY];
        assert!(ascending.windows(2).all(|w| w[0].key() < w[1].key()));
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        assert!(ascending.iter().all(|&score| f64::of_key(score.key()).to_bits() == score.to_bits()));
        assert!(
            [-3.5f32, 0.0, 1e-40, f32::INFINITY]
                .iter()
                .all(|&score| f32::of_key(score.key()).to_bits() == score.to_bits())
        );
    }

    #[test]
    fn integers_that_float64_holds_are_known() {
        for (integer, holds) in [(0, true), (-1, true), (1 << 53, true), ((1 << 53) + 1, false), (i64::MAX, false)] {
            assert_eq!(integer.is_f64(), holds, "{integer}");
        }
        assert!(i64::MIN.is_f64() && (u64::MAX << 11).is_f64() && !u64::MAX.is_f64());
    }

    #[test]
    fn integers_keep_their_order() {
        let never = Interrupt::default();
        let of = |integers: &[i64]| ordered(integers, &never).unwrap();
        assert_eq!(of(&[]), [0.0; 0]);
        assert_eq!(of(&[1, -1, 0, 1 << 53, -(1 << 53)]), [1.0, -1.0, 0.0, 2f64.powi(53), -(2f64.powi(53))]);
        let far = (1 << 60) + 1;
        assert_eq!(of(&[far + 1, far, far, far + 3]), [3.0, 2.0, 2.0, 5.0]);
        assert_eq!(of(&[i64::MAX, i64::MIN, i64::MAX - 1, 0, i64::MAX]), [5.0, 2.0, 4.0, 3.0, 5.0]);
        let many: Vec<i64> = (0..200_000i64).map(|i| (i / 2).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)).collect();
        let ranks = of(&many);
        let mut order: Vec<usize> = (0..many.len()).collect();
        order.sort_by_key(|&i| many[i]);
        assert!(
            order.windows(2).all(|w| (many[w[0]] == many[w[1]]) == (ranks[w[0]].to_bits() == ranks[w[1]].to_bits()))
        );
        assert!(order.windows(2).all(|w| ranks[w[0]] <= ranks[w[1]]));
        never.raise();
        assert!(ordered(&[i64::MIN, i64::MAX], &never).is_err());
    }

    fn bins_ascend<S: Score>(ascending: &[S]) {
        let (low, high) = (ascending[0], ascending[ascending.len() - 1]);
        for bins in [2, 3, 100, 4096, 1 << 16] {
            let Some(slope) = S::slope(low, high, bins) else { continue };
            let found: Vec<u32> = ascending.iter().map(|s| s.bin(low, slope)).collect();
            assert!(
                found.is_sorted() && found[0] == 0 && (found[found.len() - 1] as usize) < bins,
                "{bins}: {found:?}"
            );
        }
    }

    #[test]
    fn bins_never_descend_and_stay_in_range() {
        bins_ascend(&[-3.5, -3.4, -1e-9, 0.0, 1e-300, 0.3, 2.0, 2.5]);
        bins_ascend(&[-3.5f32, -3.4, -1e-9, 0.0, 1e-30, 0.3, 2.0, 2.5]);
        bins_ascend(&[1.0, 1.0f64.next(), 1.0f64.next().next()]);
        bins_ascend(&[1e-300, 1e-299, 1e300]);
        assert!(f64::slope(-1e308, 1e308, 64).is_none() && f32::slope(0.0, f32::INFINITY, 64).is_none());
        assert!(f64::slope(1.0, 1.0, 64).is_none() && f64::slope(0.0, 5e-324, 64).is_none());
    }
}
