//! What can be a score, and what kernels do with scores of any dtype: put them in order, in bins, beside each other.

use std::ops::AddAssign;

use crate::labels::Label;

/// Scores that one comparison looks at: a whole vector, or two.
pub(crate) const LANES: usize = 16;

/// A score: anything with a total order once NaN is ruled out.
pub trait Score: Copy + Default + PartialOrd + Send + Sync + std::fmt::Display {
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
    /// Whether the score has no place in an order.
    fn is_nan(self) -> bool;
    /// Bit of the score read as a label, to recognise swapped arguments.
    fn label_bit(self) -> u8;
    /// Key and a number in one: ordered by key, and then by number. One comparison of such is cheaper than two.
    #[inline]
    fn numbered(self, number: u32) -> u128 {
        self.key().into() << 32 | u128::from(number)
    }
    /// The nearest float64.
    fn as_f64(self) -> f64;
    /// Whether it is the score itself.
    fn is_f64(self) -> bool;
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
                for lane in 0..LANES {
                    difference[lane] += <$count>::from(lanes[lane] < *other) - <$count>::from(*other < lanes[lane]);
                }
            }
            for lane in 0..LANES {
                total[lane] += if (lane as $count) < n as $count { difference[lane] } else { 0 };
            }
        }
    };
}

macro_rules! float_score {
    ($float:ty, $key:ty, $signed:ty, $integers:expr) => {
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

macro_rules! integer_score {
    ($integer:ty, $flip:expr) => {
        impl Score for $integer {
            type Key = u64;
            type Slope = u32;
            type Count = i64;
            #[inline(always)]
            fn key(self) -> u64 {
                (self as u64) ^ $flip
            }
            fn of_key(key: u64) -> Self {
                (key ^ $flip) as Self
            }
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
            fn next(self) -> Self {
                self.saturating_add(1)
            }
            fn slope(low: Self, high: Self, bins: usize) -> Option<u32> {
                let (range, bits) = (high.wrapping_sub(low) as u64, usize::BITS - bins.leading_zeros() - 1);
                (low < high).then(|| (u64::BITS - range.leading_zeros()).saturating_sub(bits))
            }
            #[inline(always)]
            fn bin(self, low: Self, slope: u32) -> u32 {
                (self.wrapping_sub(low) as u64 >> slope) as u32 & 0xFFFF
            }
            compare!(i64);
        }
    };
}
integer_score!(i64, 1 << 63);
integer_score!(u64, 0);

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
        assert!([i64::MIN, -1, 0, 7].iter().all(|&score| i64::of_key(score.key()) == score));
        assert!(i64::MIN.key() < (-1i64).key() && (-1i64).key() < 0i64.key() && 0i64.key() < i64::MAX.key());
    }

    #[test]
    fn integers_that_float64_holds_are_known() {
        for (integer, holds) in [(0, true), (-1, true), (1 << 53, true), ((1 << 53) + 1, false), (i64::MAX, false)] {
            assert_eq!(integer.is_f64(), holds, "{integer}");
        }
        assert!(i64::MIN.is_f64() && (u64::MAX << 11).is_f64() && !u64::MAX.is_f64());
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
        bins_ascend(&[i64::MIN, -5, 0, 7, i64::MAX - 1, i64::MAX]);
        bins_ascend(&[u64::MAX - 4, u64::MAX - 1, u64::MAX]);
        assert!(f64::slope(-1e308, 1e308, 64).is_none() && f32::slope(0.0, f32::INFINITY, 64).is_none());
        assert!(f64::slope(1.0, 1.0, 64).is_none() && f64::slope(0.0, 5e-324, 64).is_none());
    }
}
