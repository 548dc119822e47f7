//! Kernel values of a few rows with a few columns at a time, in registers: what all kernel matrices are made of.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::Result;
use crate::memory;
use crate::parallel::Interrupt;
use crate::simd::Real;

/// Columns computed side by side.
pub(crate) const LANES: usize = 16;
/// Rows that share a load of the columns.
pub(crate) const ROWS: usize = 4;
/// Pairs times features between two looks at the interrupt.
pub(crate) const TASK: usize = 1 << 22;
/// Bytes of columns that stay near the processor while rows pass by.
const NEAR: usize = 1 << 17;
const COPY: &str = "a copy of the instances";

/// How the value of an instance kernel comes out of a sum over the features.
pub(crate) trait Form<T>: Copy + Send + Sync {
    /// Whether squares of differences are summed up, or else products.
    const DIFFERENCES: bool;
    /// The value; `halves` is half the sum of the squared norms of both instances.
    fn value(self, sum: T, halves: T) -> T;
}

/// exp(-gamma |x - y|^2) from exact differences; holds -gamma / ln 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Differences<T>(pub(crate) T);

impl<T: Real> Form<T> for Differences<T> {
    const DIFFERENCES: bool = true;
    #[inline(always)]
    fn value(self, sum: T, _: T) -> T {
        T::exp2_nonpositive(self.0 * sum)
    }
}

/// The same from x.y - |x|^2/2 - |y|^2/2 of instances that were scaled by sqrt(2 gamma / ln 2): a third less to compute.
///
/// Norms add up in the order of the products, so that equal instances give exactly 1. The norms are bounded so that the
/// result cannot leave the normal range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Products;

impl<T: Real> Form<T> for Products {
    const DIFFERENCES: bool = false;
    #[inline(always)]
    fn value(self, sum: T, halves: T) -> T {
        let exponent = sum - halves;
        T::exp2_normal(if exponent > T::default() { T::default() } else { exponent })
    }
}

/// (gamma x.y + coef0)^degree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Power<T> {
    pub(crate) gamma: T,
    pub(crate) coef0: T,
    pub(crate) degree: u32,
}

impl<T: Real> Form<T> for Power<T> {
    const DIFFERENCES: bool = false;
    #[inline(always)]
    fn value(self, sum: T, _: T) -> T {
        let (mut square, mut power, mut left) = (self.gamma * sum + self.coef0, T::ONE, self.degree);
        while left > 0 {
            if left & 1 == 1 {
                power = power * square;
            }
            square = square * square;
            left >>= 1;
        }
        power
    }
}

/// Half the squared norm, added up feature after feature as [`tile`] does.
fn half_norm<T: Real>(row: &[T]) -> T {
    let mut sum = T::default();
    for &value in row {
        sum += value * value;
    }
    sum * T::from_f64(0.5)
}

/// Instances, row after row.
#[derive(Debug)]
pub(crate) struct Rows<'a, T: Clone> {
    values: Cow<'a, [T]>,
    halves: Vec<T>,
    d: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    /// Rows of `x`, each value times `scale` if there is one.
    pub(crate) fn new(x: &'a [T], d: usize, scale: Option<T>, interrupt: &Interrupt) -> Result<Self> {
        interrupt.check()?;
        let values = match scale {
            Some(scale) => Cow::Owned(memory::collect(x.iter().map(|&value| value * scale), COPY)?),
            None => Cow::Borrowed(x),
        };
        let halves = memory::collect(values.chunks_exact(d).map(half_norm), "the norms of the instances")?;
        Ok(Self { values, halves, d })
    }

    /// The same of rows that nobody else needs.
    pub(crate) fn owned(mut x: Vec<T>, d: usize, scale: Option<T>) -> Result<Self> {
        if let Some(scale) = scale {
            x.iter_mut().for_each(|value| *value = *value * scale);
        }
        let halves = memory::collect(x.chunks_exact(d).map(half_norm), "the norms of the instances")?;
        Ok(Self { values: Cow::Owned(x), halves, d })
    }

    pub(crate) fn len(&self) -> usize {
        self.halves.len()
    }
}

/// Instances in groups of `LANES`, feature after feature; the last group repeats its last instance.
#[derive(Debug)]
pub(crate) struct Panels<T> {
    values: Vec<T>,
    halves: Vec<T>,
    /// Number of instances.
    pub(crate) n: usize,
    d: usize,
}

impl<T: Real> Panels<T> {
    /// Panels of the rows of `x`, each value times `scale` if there is one.
    pub(crate) fn new(x: &[T], d: usize, scale: Option<T>, interrupt: &Interrupt) -> Result<Self> {
        let n = x.len() / d;
        let padded = n.next_multiple_of(LANES);
        let mut values = memory::room(padded.saturating_mul(d), COPY)?;
        let mut halves = memory::filled(T::default(), padded, "the norms of the instances")?;
        for (first, halves) in (0..n).step_by(LANES).zip(halves.chunks_exact_mut(LANES)) {
            interrupt.check()?;
            for feature in 0..d {
                values.extend((first..first + LANES).map(|i| {
                    let value = x[i.min(n - 1) * d + feature];
                    scale.map_or(value, |scale| value * scale)
                }));
            }
            for column in values[first * d..].as_chunks::<LANES>().0 {
                for (half, &value) in halves.iter_mut().zip(column) {
                    *half += value * value;
                }
            }
            for half in halves {
                *half = *half * T::from_f64(0.5);
            }
        }
        Ok(Self { values, halves, n, d })
    }

    pub(crate) fn len(&self) -> usize {
        self.n.div_ceil(LANES)
    }

    /// The panels from `first` on in pieces that stay near the processor, and with that many rows make no more than
    /// about one [`TASK`].
    pub(crate) fn pieces(&self, first: usize, rows: usize) -> impl Iterator<Item = Range<usize>> + use<T> {
        let panel = (LANES * self.d).max(1);
        let step = (TASK / panel / rows.max(1)).min(NEAR / panel / size_of::<T>()).max(1);
        let end = self.len();
        (first..end).step_by(step).map(move |piece| piece..(piece + step).min(end))
    }

    /// Values of panel `i`, and a copy of its half norms: what lies on the stack cannot overlap with anything.
    #[inline(always)]
    fn panel(&self, i: usize) -> (&[[T; LANES]], [T; LANES]) {
        let values = self.values[i * self.d * LANES..(i + 1) * self.d * LANES].as_chunks().0;
        let mut halves = [T::default(); LANES];
        halves.copy_from_slice(&self.halves[i * LANES..(i + 1) * LANES]);
        (values, halves)
    }
}

/// Kernel values of `R` rows from `first` on with the columns of panel `i`.
#[inline(always)]
pub(crate) fn tile<T: Real, F: Form<T>, const R: usize>(
    form: F,
    rows: &Rows<'_, T>,
    first: usize,
    panels: &Panels<T>,
    i: usize,
) -> [[T; LANES]; R] {
    let d = rows.d;
    let (panel, columns) = panels.panel(i);
    let panel = &panel[..d];
    let values: [&[T]; R] = std::array::from_fn(|r| &rows.values[(first + r) * d..][..d]);
    let halves: [T; R] = std::array::from_fn(|r| rows.halves[first + r]);
    let mut sums = [[T::default(); LANES]; R];
    for feature in 0..d {
        let column = panel[feature];
        for r in 0..R {
            let value = values[r][feature];
            for lane in 0..LANES {
                if F::DIFFERENCES {
                    let difference = value - column[lane];
                    sums[r][lane] += difference * difference;
                } else {
                    sums[r][lane] += value * column[lane];
                }
            }
        }
    }
    for r in 0..R {
        for lane in 0..LANES {
            sums[r][lane] = form.value(sums[r][lane], halves[r] + columns[lane]);
        }
    }
    sums
}
