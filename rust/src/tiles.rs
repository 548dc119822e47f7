//! Kernel values of a few rows with a few columns at a time, in registers: what all kernel matrices are made of.

use std::borrow::Cow;
use std::ops::Range;

use crate::each::each;
use crate::error::Result;
use crate::memory;
use crate::parallel::Interrupt;
use crate::simd::{Kernel, Real, Vectors, dispatch_narrow};

/// Rows that lie side by side in [`Quads`].
pub(crate) const QUAD: usize = 4;
/// Most rows that share a load of the columns.
pub(crate) const ROWS: usize = 2 * QUAD;
/// Pairs times features between two looks at the interrupt.
pub(crate) const TASK: usize = 1 << 22;
/// Bytes of columns that stay near the processor while rows pass by.
const NEAR: usize = 1 << 17;
/// Registers of columns of a tile.
const COLUMNS: usize = 2;
/// Bytes of a line of the cache.
const LINE: usize = 64;
const COPY: &str = "a copy of the instances";
const NORMS: &str = "the norms of the instances";

/// How the value of an instance kernel comes out of a sum over the features.
pub(crate) trait Form<T: Real>: Copy + Send + Sync {
    /// Whether squares of differences are summed up, or else products.
    const DIFFERENCES: bool;
    /// The values; `halves` are half the sums of the squared norms of both instances.
    fn values<S: Vectors<T>, const N: usize>(self, simd: S, sums: [S::V; N], halves: [S::V; N]) -> [S::V; N];
}

/// exp(-gamma |x - y|^2) from exact differences; holds -gamma / ln 2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Differences<T>(pub(crate) T);

impl<T: Real> Form<T> for Differences<T> {
    const DIFFERENCES: bool = true;
    #[inline(always)]
    fn values<S: Vectors<T>, const N: usize>(self, simd: S, mut sums: [S::V; N], _: [S::V; N]) -> [S::V; N] {
        let factor = simd.splat(self.0);
        for i in 0..N {
            sums[i] = simd.mul(factor, sums[i]);
        }
        simd.exp2_nonpositive(sums)
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
    fn values<S: Vectors<T>, const N: usize>(self, simd: S, mut sums: [S::V; N], halves: [S::V; N]) -> [S::V; N] {
        let zero = simd.splat(T::default());
        for i in 0..N {
            sums[i] = simd.min(simd.sub(sums[i], halves[i]), zero);
        }
        simd.exp2_normal(sums)
    }
}

/// (gamma x.y + coef0)^degree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Power<T> {
    pub(crate) gamma: T,
    pub(crate) coef0: T,
    pub(crate) degree: u32,
}

impl<T: Real> Power<T> {
    /// The value for one pair, to the bits of [`Form::values`].
    pub(crate) fn of(self, sum: T) -> T {
        let mut square = self.gamma.mul_add(sum, self.coef0);
        let (mut power, mut left) = (T::ONE, self.degree);
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

impl<T: Real> Form<T> for Power<T> {
    const DIFFERENCES: bool = false;
    #[inline(always)]
    fn values<S: Vectors<T>, const N: usize>(self, simd: S, mut sums: [S::V; N], _: [S::V; N]) -> [S::V; N] {
        let (gamma, coef0) = (simd.splat(self.gamma), simd.splat(self.coef0));
        for i in 0..N {
            let mut square = simd.mul_add(gamma, sums[i], coef0);
            let (mut power, mut left) = (simd.splat(T::ONE), self.degree);
            while left > 0 {
                if left & 1 == 1 {
                    power = simd.mul(power, square);
                }
                square = simd.mul(square, square);
                left >>= 1;
            }
            sums[i] = power;
        }
        sums
    }
}

/// Half the squared norm of each row, added up feature after feature as [`tile`] does.
struct HalfNorms<'a, T> {
    values: &'a [T],
    d: usize,
    halves: &'a mut [T],
}

impl<T: Real> Kernel for HalfNorms<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (half, row) in self.halves.iter_mut().zip(self.values.chunks_exact(self.d)) {
            let mut sum = T::default();
            for &value in row {
                sum = value.mul_add(value, sum);
            }
            *half = sum * T::from_f64(0.5);
        }
    }
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
        let mut halves = memory::filled(T::default(), values.len() / d, NORMS)?;
        dispatch_narrow(HalfNorms { values: &values, d, halves: &mut halves });
        Ok(Self { values, halves, d })
    }

    /// The same of rows that nobody else needs.
    pub(crate) fn owned(mut x: Vec<T>, d: usize, scale: Option<T>) -> Result<Self> {
        if let Some(scale) = scale {
            for value in &mut x {
                *value = *value * scale;
            }
        }
        let mut halves = memory::filled(T::default(), x.len() / d, NORMS)?;
        dispatch_narrow(HalfNorms { values: &x, d, halves: &mut halves });
        Ok(Self { values: Cow::Owned(x), halves, d })
    }

    pub(crate) fn len(&self) -> usize {
        self.halves.len()
    }

    /// Half the squared norm of row `i`.
    pub(crate) fn half(&self, i: usize) -> T {
        self.halves[i]
    }

    /// Row `i`, as a tile takes it.
    pub(crate) fn one(&self, i: usize) -> Side<'_, T, 1> {
        Side { values: self.values[i * self.d..(i + 1) * self.d].as_chunks().0, halves: [self.halves[i]] }
    }
}

/// `W` rows side by side, feature after feature, and half their squared norms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a, T, const W: usize> {
    values: &'a [[T; W]],
    halves: [T; W],
}

/// Rows that follow one another, [`QUAD`] of them side by side; the last ones repeat the last row.
#[derive(Debug)]
pub(crate) struct Quads<T> {
    values: Vec<[T; QUAD]>,
    halves: Vec<[T; QUAD]>,
    d: usize,
}

impl<T: Real> Quads<T> {
    pub(crate) fn new(rows: &Rows<'_, T>, range: Range<usize>) -> Result<Self> {
        let (d, n) = (rows.d, range.len().div_ceil(QUAD));
        let mut values = memory::room(n.saturating_mul(d), COPY)?;
        let mut halves = memory::room(n, NORMS)?;
        for first in range.clone().step_by(QUAD) {
            let of: [usize; QUAD] = std::array::from_fn(|i| (first + i).min(range.end - 1));
            let four = of.map(|row| &rows.values[row * d..(row + 1) * d]);
            values.extend((0..d).map(|feature| four.map(|row| row[feature])));
            halves.push(of.map(|row| rows.halves[row]));
        }
        Ok(Self { values, halves, d })
    }

    pub(crate) fn len(&self) -> usize {
        self.halves.len()
    }

    #[inline(always)]
    pub(crate) fn get(&self, quad: usize) -> Side<'_, T, QUAD> {
        Side { values: &self.values[quad * self.d..(quad + 1) * self.d], halves: self.halves[quad] }
    }

    /// `H` quads from `quad` on; the last one stands in for those behind it.
    #[inline(always)]
    pub(crate) fn some<const H: usize>(&self, quad: usize) -> [Side<'_, T, QUAD>; H] {
        let mut quads = [self.get(quad); H];
        each!(h < H => { quads[h] = self.get((quad + h).min(self.len() - 1)) });
        quads
    }
}

/// Instances in groups of [`Real::LANES`], feature after feature; the last group repeats its last instance.
#[derive(Debug)]
pub(crate) struct Panels<T> {
    values: Vec<T>,
    /// Where they begin: at a line of the cache, so that no register is read from two.
    start: usize,
    halves: Vec<T>,
    /// Number of instances.
    pub(crate) n: usize,
    d: usize,
}

impl<T: Real> Panels<T> {
    /// Panels of the rows of `x`, each value times `scale` if there is one.
    pub(crate) fn new(x: &[T], d: usize, scale: Option<T>, interrupt: &Interrupt) -> Result<Self> {
        let n = x.len() / d;
        let padded = n.next_multiple_of(T::LANES);
        let mut values: Vec<T> = memory::room(padded.saturating_mul(d).saturating_add(LINE / size_of::<T>()), COPY)?;
        let start = values.as_ptr().align_offset(LINE).min(LINE / size_of::<T>());
        values.resize(start, T::default());
        for first in (0..n).step_by(T::LANES) {
            interrupt.check()?;
            for feature in 0..d {
                values.extend((first..first + T::LANES).map(|i| {
                    let value = x[i.min(n - 1) * d + feature];
                    scale.map_or(value, |scale| value * scale)
                }));
            }
        }
        let mut halves = memory::filled(T::default(), padded, NORMS)?;
        dispatch_narrow(PanelNorms { values: &values[start..], d, halves: &mut halves });
        Ok(Self { values, start, halves, n, d })
    }

    #[inline(always)]
    pub(crate) fn get(&self, panel: usize) -> Panel<'_, T> {
        let size = self.d * T::LANES;
        let halves = &self.halves[panel * T::LANES..(panel + 1) * T::LANES];
        Panel { values: &self.values[self.start + panel * size..][..size], halves }
    }

    pub(crate) fn len(&self) -> usize {
        self.n.div_ceil(T::LANES)
    }

    /// The panels from `first` on in pieces that stay near the processor, and with that many rows make no more than
    /// about one [`TASK`]; of at most `most` panels each, if that is not 0.
    pub(crate) fn pieces(&self, first: usize, rows: usize, most: usize) -> impl Iterator<Item = Range<usize>> + use<T> {
        let panel = (T::LANES * self.d).max(1);
        let step = (TASK / panel / rows.max(1)).min(NEAR / panel / size_of::<T>()).min(most).max(1);
        let end = self.len();
        (first..end).step_by(step).map(move |piece| piece..(piece + step).min(end))
    }
}

/// [`Real::LANES`] instances, feature after feature, and half their squared norms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<'a, T> {
    values: &'a [T],
    halves: &'a [T],
}

/// As [`HalfNorms`], of panels.
struct PanelNorms<'a, T> {
    values: &'a [T],
    d: usize,
    halves: &'a mut [T],
}

impl<T: Real> Kernel for PanelNorms<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (halves, panel) in self.halves.chunks_exact_mut(T::LANES).zip(self.values.chunks_exact(T::LANES * self.d)) {
            for column in panel.chunks_exact(T::LANES) {
                for (half, &value) in halves.iter_mut().zip(column) {
                    *half = value.mul_add(value, *half);
                }
            }
            for half in halves {
                *half = *half * T::from_f64(0.5);
            }
        }
    }
}

/// Kernel values of `H` times `W` rows with the columns of a panel.
///
/// Two registers of columns go together; `lane` is where they begin.
#[inline(always)]
pub(crate) fn tile<T: Real, S: Vectors<T>, F: Form<T>, const W: usize, const H: usize>(
    simd: S,
    form: F,
    rows: [Side<'_, T, W>; H],
    panel: Panel<'_, T>,
    lane: usize,
) -> [[[S::V; 2]; W]; H] {
    if S::ROLLED { tile_apart(simd, form, rows, panel, lane) } else { tile_here(simd, form, rows, panel, lane) }
}

/// The same, compiled once for all that it is part of.
#[inline(never)]
fn tile_apart<T: Real, S: Vectors<T>, F: Form<T>, const W: usize, const H: usize>(
    simd: S,
    form: F,
    rows: [Side<'_, T, W>; H],
    panel: Panel<'_, T>,
    lane: usize,
) -> [[[S::V; 2]; W]; H] {
    tile_here(simd, form, rows, panel, lane)
}

#[inline(always)]
fn tile_here<T: Real, S: Vectors<T>, F: Form<T>, const W: usize, const H: usize>(
    simd: S,
    form: F,
    rows: [Side<'_, T, W>; H],
    panel: Panel<'_, T>,
    lane: usize,
) -> [[[S::V; 2]; W]; H] {
    let d = rows[0].values.len();
    let mut values = rows.map(|rows| rows.values);
    each!(S: h < H => { values[h] = &values[h][..d] });
    let zeros = [simd.splat(T::default()); 2];
    let mut sums = [[zeros; W]; H];
    for (feature, column) in panel.values.chunks_exact(T::LANES).enumerate().take(d) {
        let mut now = zeros;
        each!(S: c < COLUMNS => { now[c] = simd.load(&column[lane + c * S::WIDTH..]) });
        each!(S: h < H => {
            let values = &values[h][feature];
            each!(S: w < W => {
                let value = simd.splat(values[w]);
                each!(S: c < COLUMNS => {
                    sums[h][w][c] = if F::DIFFERENCES {
                        let difference = simd.sub(value, now[c]);
                        simd.mul_add(difference, difference, sums[h][w][c])
                    } else {
                        simd.mul_add(value, now[c], sums[h][w][c])
                    }
                });
            });
        });
    }
    let mut halves = zeros;
    each!(S: c < COLUMNS => { halves[c] = simd.load(&panel.halves[lane + c * S::WIDTH..]) });
    each!(S: h < H => {
        let sums = &mut sums[h];
        each!(S: w < W => {
            let half = simd.splat(rows[h].halves[w]);
            let own = [simd.add(half, halves[0]), simd.add(half, halves[1])];
            sums[w] = form.values(simd, sums[w], own);
        });
    });
    sums
}
