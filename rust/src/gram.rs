//! Kernels between instances, and what becomes of them for pairs of bags.
//!
//! Matrices of all instance pairs are never built for bags: a bag meets all columns in tiles that stay in registers, its
//! rows are folded (added up, or their maximum taken) at once, and what is left is one number a column.

use crate::bags::Bags;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, Real, RealKernel, Vectors, dispatch, dispatch_reals};
use crate::tiles::{Differences, Form, Panels, Power, Products, ROWS, Rows, TASK, each, tile};

use std::ops::Range;

/// Pairs times features from which threads pay.
pub(crate) const LARGE: usize = 1 << 18;
/// Rows that share the columns while they are near the processor.
const GROUP: usize = 64;
/// The largest [`Real::LANES`].
const WIDEST: usize = 32;
/// Bags that are added up side by side.
const SUMMED: usize = 8;
/// Numbers that a task keeps at most, where it has more than one bag.
const KEPT: usize = 1 << 18;
/// Rows of a block on the diagonal of a symmetric matrix, which is computed whole.
const BLOCK: usize = 64;

/// Bytes of an instance from which only half of a symmetric matrix is computed.
const WIDE: usize = 256;

/// A kernel between two instances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InstanceKernel {
    /// exp(-gamma |x - y|^2)
    Rbf {
        /// Positive.
        gamma: f64,
    },
    /// (gamma x.y + coef0)^degree
    Poly {
        /// Positive.
        gamma: f64,
        /// Exponent.
        degree: u32,
        /// Constant term.
        coef0: f64,
    },
}

/// A kernel between two bags A and B, from a kernel k between instances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SetKernel {
    /// Sum of k over all pairs (Gärtner, Flach, Kowalczyk & Smola 2002).
    Sum,
    /// For each instance the largest k with an instance of the other bag; the mean of that over A and the one over B,
    /// and the mean of both (Wallraven, Caputo & Graf 2003).
    Match,
    /// The same with a smooth maximum of m values: log(sum(exp(sharpness k)) / m) / sharpness.
    SoftMatch {
        /// Positive: near 0 the smooth maximum is the mean, for large values the maximum.
        sharpness: f64,
    },
}

/// The form in which an instance kernel is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chosen<T> {
    Differences(Differences<T>),
    Products(T),
    Power(Power<T>),
}

/// Half squared norms, in units of the exponent of 2, up to which the rounding of x.y - |x|^2/2 - |y|^2/2 does not show:
/// a few times 1e-7 in float32 and 1e-14 in float64. The exponent is never below -4 times it: in the normal range.
fn limit<T: Real>() -> f64 {
    if size_of::<T>() == 4 { 4.0 } else { 250.0 }
}

impl<T: Real> Chosen<T> {
    pub(crate) fn new(kernel: InstanceKernel, inputs: [&[T]; 2], d: usize) -> Result<Self> {
        let gamma = match kernel {
            InstanceKernel::Rbf { gamma } | InstanceKernel::Poly { gamma, .. } => gamma,
        };
        if !(gamma > 0.0 && gamma.is_finite()) {
            return Err(Error::Range(format!("gamma must be positive and finite; got {gamma}")));
        }
        match kernel {
            InstanceKernel::Rbf { .. } => {
                // never rounded to 0 or infinity: either times the other would be NaN
                let per_octave = (gamma * std::f64::consts::LOG2_E).clamp(T::SMALLEST, T::LARGEST);
                let norm = |row: &[T]| row.iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>();
                let largest = inputs.iter().flat_map(|x| x.chunks_exact(d)).map(norm).fold(0.0, f64::max);
                Ok(if largest * per_octave <= limit::<T>() {
                    Self::Products(T::from_f64((2.0 * per_octave).sqrt()))
                } else {
                    Self::Differences(Differences(T::from_f64(-per_octave)))
                })
            }
            InstanceKernel::Poly { gamma, degree, coef0 } => {
                if !coef0.is_finite() {
                    return Err(Error::Range(format!("coef0 must be finite; got {coef0}")));
                }
                Ok(Self::Power(Power { gamma: T::from_f64(gamma), coef0: T::from_f64(coef0), degree }))
            }
        }
    }

    /// What instances are multiplied with beforehand.
    pub(crate) fn scale(&self) -> Option<T> {
        if let Self::Products(scale) = self { Some(*scale) } else { None }
    }
}

/// Compile the body once for each form.
macro_rules! with_form {
    ($chosen:expr, |$form:ident| $body:expr) => {
        match $chosen {
            Chosen::Differences($form) => $body,
            Chosen::Products(_) => {
                let $form = Products;
                $body
            }
            Chosen::Power($form) => $body,
        }
    };
}
pub(crate) use with_form;

pub(crate) fn check_finite<T: Real>(argument: &str, x: &[T], d: usize) -> Result<()> {
    match x.iter().position(|v| !v.to_f64().is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::NotFinite {
            argument: argument.to_owned(),
            position: format!("[{}, {}]", i / d, i % d),
            value: x[i].to_string(),
        }),
    }
}

// ---------------------------------------------------------------- between instances

/// Rows of the kernel matrix, at the columns of some panels.
struct MatrixRows<'a, T: Clone, F> {
    rows: &'a Rows<'a, T>,
    first: usize,
    panels: &'a Panels<T>,
    piece: Range<usize>,
    form: F,
    out: &'a mut [T],
}

impl<T: Real, F: Form<T>> MatrixRows<'_, T, F> {
    #[inline(always)]
    fn some<S: Vectors<T>, const R: usize>(&mut self, simd: S, i: usize, at: usize) {
        let n = self.panels.n;
        for lane in (0..T::LANES).step_by(2 * S::WIDTH) {
            let values = tile::<T, S, F, R>(simd, self.form, self.rows, self.first + at, self.panels, i, lane);
            let column = i * T::LANES + lane;
            each!(r < R => {
                let out = &mut self.out[(at + r) * n..(at + r + 1) * n];
                if column + 2 * S::WIDTH <= n {
                    simd.store(values[r][0], &mut out[column..]);
                    simd.store(values[r][1], &mut out[column + S::WIDTH..]);
                } else if column < n {
                    let mut last = [T::default(); WIDEST];
                    simd.store(values[r][0], &mut last);
                    simd.store(values[r][1], &mut last[S::WIDTH..]);
                    out[column..].copy_from_slice(&last[..n - column]);
                }
            });
        }
    }
}

impl<T: Real, F: Form<T>> RealKernel<T> for MatrixRows<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<T>>(mut self, simd: S) {
        let n_rows = self.out.len() / self.panels.n;
        // all panels of the piece pass by some rows, so that long stretches of a row are written
        let mut at = 0;
        while at < n_rows {
            let left = n_rows - at;
            let piece = self.piece.clone();
            // for and not for_each: a closure does not have the instructions
            if S::MANY && left >= 8 {
                for i in piece {
                    self.some::<S, 8>(simd, i, at);
                }
                at += 8;
            } else if left >= 4 {
                for i in piece {
                    self.some::<S, 4>(simd, i, at);
                }
                at += 4;
            } else {
                for i in piece {
                    self.some::<S, 1>(simd, i, at);
                }
                at += 1;
            }
        }
    }
}

/// Copies a matrix into another one, rows to columns.
struct Transpose<'a, T> {
    from: &'a [T],
    from_columns: usize,
    /// Row and column of `from` where the piece starts.
    corner: [usize; 2],
    to: &'a mut [T],
    to_columns: usize,
    /// Column of `to` where the piece starts.
    column: usize,
    /// Columns of `to`, that is rows of `from`.
    width: usize,
}

impl<T: Real> Kernel for Transpose<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // as long stretches of both matrices as a copy that stays near the processor allows
        const TILE: usize = 64;
        let height = self.to.len() / self.to_columns;
        let mut tile = [T::default(); TILE * TILE];
        for first in (0..self.width).step_by(TILE) {
            let across = TILE.min(self.width - first);
            for top in (0..height).step_by(TILE) {
                let down = TILE.min(height - top);
                for (j, row) in tile.chunks_exact_mut(TILE).enumerate().take(across) {
                    let start = (self.corner[0] + first + j) * self.from_columns + self.corner[1] + top;
                    row[..down].copy_from_slice(&self.from[start..start + down]);
                }
                for i in 0..down {
                    let start = (top + i) * self.to_columns + self.column + first;
                    let row = &mut self.to[start..start + across];
                    for (to, from) in row.iter_mut().zip(tile[i..].iter().step_by(TILE)) {
                        *to = *from;
                    }
                }
            }
        }
    }
}

/// Fill the part below the diagonal of a square matrix whose diagonal blocks and part above are there.
fn mirror<T: Real>(out: &mut [T], n: usize, interrupt: &Interrupt) -> Result<()> {
    let mut half = BLOCK;
    while half < n {
        // the lower left quarter of each block of twice `half` rows is the upper right one, transposed
        let mut items = memory::room(n / BLOCK + 1, "the list of tasks")?;
        for (block, rows) in out.chunks_mut(2 * half * n).enumerate() {
            if rows.len() > half * n {
                let (above, below) = rows.split_at_mut(half * n);
                let above: &[T] = above;
                let first = 2 * half * block;
                for (i, below) in below.chunks_mut(BLOCK * n).enumerate() {
                    items.push((above, first, first + half + i * BLOCK, below));
                }
            }
        }
        parallel::map(items, n * n > LARGE, interrupt, |(from, column, row, to)| {
            dispatch(Transpose { from, from_columns: n, corner: [0, row], to, to_columns: n, column, width: half });
            Ok(())
        })
        .map(|_: Vec<()>| ())?;
        half *= 2;
    }
    Ok(())
}

/// Gaussian kernel matrix between the rows of `x` and of `y` (those of `x` when None), row-major into `out`.
///
/// # Errors
/// [`Error`] when `gamma` is not positive, a value is not finite, memory runs out or on interrupt.
pub fn rbf_gram<T: Real>(
    x: &[T],
    y: Option<&[T]>,
    d: usize,
    gamma: f64,
    out: &mut [T],
    interrupt: &Interrupt,
) -> Result<()> {
    let columns = y.unwrap_or(x);
    let chosen = Chosen::new(InstanceKernel::Rbf { gamma }, [x, columns], d.max(1))?;
    check_finite("X", x, d)?;
    if let Some(y) = y {
        check_finite("Y", y, d)?;
    }
    if x.is_empty() || columns.is_empty() {
        return Ok(());
    }
    let panels = Panels::new(columns, d, chosen.scale(), interrupt)?;
    let rows = Rows::new(x, d, chosen.scale(), interrupt)?;
    let cuts = parallel::cuts(rows.len(), BLOCK, |row| row * panels.n)?;
    let large = out.len().saturating_mul(d) > LARGE;
    // the mirror image of narrow instances takes longer than to compute it
    let half = y.is_none() && d * size_of::<T>() >= WIDE;
    parallel::fill(out, &cuts, large, interrupt, |block, out| {
        let first = block * BLOCK;
        let first_panel = if half { first / T::LANES } else { 0 };
        let n_rows = out.len() / panels.n;
        // however wide the instances, no piece of the work between two looks at the interrupt is much more than a task
        let step = (TASK / (T::LANES * d)).next_multiple_of(ROWS).clamp(ROWS, BLOCK);
        for piece in panels.pieces(first_panel, n_rows.min(step)) {
            for (i, out) in out.chunks_mut(step * panels.n).enumerate() {
                interrupt.check()?;
                let first = first + i * step;
                let (rows, panels, piece) = (&rows, &panels, piece.clone());
                with_form!(chosen, |form| dispatch_reals(MatrixRows { rows, first, panels, piece, form, out }));
            }
        }
        Ok(())
    })?;
    if half { mirror(out, rows.len(), interrupt) } else { Ok(()) }
}

// ---------------------------------------------------------------- between bags

/// How the rows of a bag become one number a column.
trait Fold<T: Real>: Copy {
    /// The fold of no rows.
    const START: f64;
    /// What is folded of kernel values; `shift` is a number for each column.
    #[inline(always)]
    fn each<S: Vectors<T>>(self, _: S, values: S::V, _shift: S::V) -> S::V {
        values
    }
    /// Two rows together.
    fn pair<S: Vectors<T>>(simd: S, a: S::V, b: S::V) -> S::V;
    /// Some rows and those before them together.
    fn add(total: f64, part: T) -> f64;
}

#[derive(Clone, Copy)]
struct Sum;

impl<T: Real> Fold<T> for Sum {
    const START: f64 = 0.0;
    #[inline(always)]
    fn pair<S: Vectors<T>>(simd: S, a: S::V, b: S::V) -> S::V {
        simd.add(a, b)
    }
    #[inline(always)]
    fn add(total: f64, part: T) -> f64 {
        total + part.to_f64()
    }
}

#[derive(Clone, Copy)]
struct Max;

impl<T: Real> Fold<T> for Max {
    const START: f64 = f64::NEG_INFINITY;
    #[inline(always)]
    fn pair<S: Vectors<T>>(simd: S, a: S::V, b: S::V) -> S::V {
        simd.max(a, b)
    }
    #[inline(always)]
    fn add(total: f64, part: T) -> f64 {
        let part = part.to_f64();
        if part > total { part } else { total }
    }
}

/// Sum of exp(sharpness (value - shift)) with the largest value of the column as its shift: nothing overflows, and not
/// everything underflows.
#[derive(Clone, Copy)]
struct ExpSum<T>(T);

impl<T: Real> Fold<T> for ExpSum<T> {
    const START: f64 = 0.0;
    #[inline(always)]
    fn each<S: Vectors<T>>(self, simd: S, values: S::V, shift: S::V) -> S::V {
        simd.exp_nonpositive(simd.mul(simd.splat(self.0), simd.sub(values, shift)))
    }
    #[inline(always)]
    fn pair<S: Vectors<T>>(simd: S, a: S::V, b: S::V) -> S::V {
        simd.add(a, b)
    }
    #[inline(always)]
    fn add(total: f64, part: T) -> f64 {
        total + part.to_f64()
    }
}

/// Rows that are folded, and the first of the totals that they are folded into.
type Part = (Range<usize>, usize);

/// Values of rows with the columns of a panel.
struct Tiles<'a, T: Clone, F> {
    rows: &'a Rows<'a, T>,
    /// At most [`GROUP`].
    range: Range<usize>,
    panels: &'a Panels<T>,
    panel: usize,
    form: F,
    /// Row after row.
    values: &'a mut [T],
}

impl<T: Real, F: Form<T>> Tiles<'_, T, F> {
    /// Values of `R` rows from `row` on.
    #[inline(always)]
    fn some<S: Vectors<T>, const R: usize>(&mut self, simd: S, row: usize) {
        let values = &mut self.values[(row - self.range.start) * T::LANES..];
        for lane in (0..T::LANES).step_by(2 * S::WIDTH) {
            let tile = tile::<T, S, F, R>(simd, self.form, self.rows, row, self.panels, self.panel, lane);
            each!(r < R => {
                simd.store(tile[r][0], &mut values[r * T::LANES + lane..]);
                simd.store(tile[r][1], &mut values[r * T::LANES + lane + S::WIDTH..]);
            });
        }
    }
}

impl<T: Real, F: Form<T>> RealKernel<T> for Tiles<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<T>>(mut self, simd: S) {
        let Range { start, end } = self.range;
        let mut row = start;
        while row < end {
            if S::MANY && end - row > 4 && end - start >= 8 {
                // the last rows once more rather than few at a time
                row = row.min(end - 8);
                self.some::<S, 8>(simd, row);
                row += 8;
            } else if end - start >= 4 {
                row = row.min(end - 4);
                self.some::<S, 4>(simd, row);
                row += 4;
            } else {
                self.some::<S, 1>(simd, row);
                row += 1;
            }
        }
    }
}

/// Fold what [`Tiles`] has left of rows that follow one another into totals of the columns of the panel.
struct Columns<'a, T: Clone, G> {
    parts: &'a [Part],
    values: &'a [T],
    panel: usize,
    fold: G,
    /// A number for each of the totals; empty where the fold needs none.
    shifts: &'a [f64],
    totals: &'a mut [f64],
}

/// Fold `R` rows of a panel into its totals: up to four, always the same ones, in T, and from there on in float64.
#[inline(always)]
fn fold_rows<T: Real, S: Vectors<T>, G: Fold<T>, const R: usize>(
    simd: S,
    fold: G,
    values: &[T],
    shifts: &[T],
    totals: &mut [f64],
) {
    let mut parts = [T::default(); WIDEST];
    for lane in (0..T::LANES).step_by(S::WIDTH) {
        let shift = simd.load(&shifts[lane..]);
        let mut rows = [shift; R];
        each!(r < R => { rows[r] = fold.each(simd, simd.load(&values[r * T::LANES + lane..]), shift) });
        let mut part = rows[0];
        if R > 1 {
            part = G::pair(simd, part, rows[1 % R]);
        }
        if R == 4 {
            part = G::pair(simd, part, G::pair(simd, rows[2 % R], rows[3 % R]));
        }
        simd.store(part, &mut parts[lane..]);
    }
    for (total, part) in totals[..T::LANES].iter_mut().zip(parts) {
        *total = G::add(*total, part);
    }
}

impl<T: Real, G: Fold<T>> RealKernel<T> for Columns<'_, T, G> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<T>>(self, simd: S) {
        let mut shifts = [T::default(); WIDEST];
        let start = self.parts.first().map_or(0, |(rows, _)| rows.start);
        for (rows, first) in self.parts {
            let first = first + self.panel * T::LANES;
            if !self.shifts.is_empty() {
                for (to, &from) in shifts.iter_mut().zip(&self.shifts[first..first + T::LANES]) {
                    *to = T::from_f64(from);
                }
            }
            let totals = &mut self.totals[first..];
            let mut values = &self.values[(rows.start - start) * T::LANES..];
            let mut left = rows.len();
            while left >= 4 {
                fold_rows::<T, S, G, 4>(simd, self.fold, values, &shifts, totals);
                values = &values[4 * T::LANES..];
                left -= 4;
            }
            if left >= 2 {
                fold_rows::<T, S, G, 2>(simd, self.fold, values, &shifts, totals);
                values = &values[2 * T::LANES..];
                left -= 2;
            }
            if left > 0 {
                fold_rows::<T, S, G, 1>(simd, self.fold, values, &shifts, totals);
            }
        }
    }
}

/// What meets: rows, columns and the form of their kernel.
struct Meeting<'a, T: Clone> {
    rows: &'a Rows<'a, T>,
    panels: &'a Panels<T>,
    chosen: Chosen<T>,
    interrupt: &'a Interrupt,
}

impl<T: Real> Meeting<'_, T> {
    /// For each group of rows, fold them into its totals for the columns from that panel on.
    ///
    /// How the work is cut changes no bit, since a column folds the rows of a bag in their order.
    fn fold<G: Fold<T>>(
        &self,
        fold: G,
        groups: &[(Range<usize>, usize)],
        shifts: &[f64],
        totals: &mut [f64],
        d: usize,
    ) -> Result<()> {
        totals.fill(G::START);
        let width = self.panels.len() * T::LANES;
        let step = (TASK / (T::LANES * d)).next_multiple_of(ROWS).clamp(ROWS, GROUP);
        let n_parts = groups.iter().map(|(rows, _)| rows.len().div_ceil(step)).sum();
        let mut parts: Vec<Part> = memory::room(n_parts, "the list of rows")?;
        // where the parts that are folded together end, and the first panel of any of them
        let mut blocks: Vec<(usize, usize)> = memory::room(n_parts, "the list of rows")?;
        let mut start = 0;
        for (i, (rows, from)) in groups.iter().enumerate() {
            for first in rows.clone().step_by(step) {
                let part = first..(first + step).min(rows.end);
                match blocks.last_mut() {
                    Some((end, least)) if part.end - start <= step => {
                        (*end, *least) = (*end + 1, (*least).min(*from));
                    }
                    _ => {
                        start = part.start;
                        blocks.push((parts.len() + 1, *from));
                    }
                }
                parts.push((part, i * width));
            }
        }
        let first = groups.iter().map(|&(_, panel)| panel).min().unwrap_or(0);
        for piece in self.panels.pieces(first, step) {
            let mut done = 0;
            for &(end, from) in &blocks {
                self.interrupt.check()?;
                self.fold_parts(fold, &parts[done..end], piece.start.max(from)..piece.end, shifts, totals);
                done = end;
            }
        }
        Ok(())
    }

    /// Fold rows that follow one another, at most [`GROUP`], into their totals for some panels.
    fn fold_parts<G: Fold<T>>(&self, fold: G, parts: &[Part], piece: Range<usize>, shifts: &[f64], totals: &mut [f64]) {
        let Self { rows, panels, chosen, .. } = *self;
        let [Some((head, _)), Some((tail, _))] = [parts.first(), parts.last()] else { return };
        let mut values = [T::default(); GROUP * WIDEST];
        for panel in piece {
            let range = head.start..tail.end;
            with_form!(chosen, |form| dispatch_reals(Tiles { rows, range, panels, panel, form, values: &mut values }));
            dispatch_reals(Columns { parts, values: &values, panel, fold, shifts, totals });
        }
    }

    /// The same for a kernel between bags, down to what is added up over the columns of a bag.
    fn fold_bags(
        &self,
        kernel: SetKernel,
        groups: &[(Range<usize>, usize)],
        totals: &mut [f64],
        d: usize,
    ) -> Result<()> {
        match kernel {
            SetKernel::Sum => self.fold(Sum, groups, &[], totals, d),
            SetKernel::Match => self.fold(Max, groups, &[], totals, d),
            SetKernel::SoftMatch { sharpness } => {
                let mut largest = memory::filled(0.0, totals.len(), "the maxima of the columns")?;
                self.fold(Max, groups, &[], &mut largest, d)?;
                let factor = T::from_f64(sharpness.clamp(T::SMALLEST, T::LARGEST));
                self.fold(ExpSum(factor), groups, &largest, totals, d)?;
                let width = self.panels.len() * T::LANES;
                let of_groups = totals.chunks_exact_mut(width).zip(largest.chunks_exact(width));
                for ((rows, _), (totals, largest)) in groups.iter().zip(of_groups) {
                    let n = rows.len() as f64;
                    for (total, largest) in totals.iter_mut().zip(largest) {
                        *total = largest + (*total / n).ln() / sharpness;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Sums over some columns of the totals of up to [`SUMMED`] bags, side by side: one would wait for each addition.
fn sums_of_some(totals: &[f64], width: usize, columns: Range<usize>) -> [f64; SUMMED] {
    let last = totals.len() / width - 1;
    let totals: [&[f64]; SUMMED] = std::array::from_fn(|bag| &totals[bag.min(last) * width..][columns.clone()]);
    let mut sums = [0.0; SUMMED];
    for column in 0..columns.len() {
        for (sum, totals) in sums.iter_mut().zip(totals) {
            *sum += totals[column];
        }
    }
    sums
}

/// For each bag of rows and each of columns (only those from the same bag on if `later`), the sum over the columns of
/// what the rows are folded to, or its mean.
#[allow(clippy::too_many_arguments)]
fn directed<T: Real>(
    (a, b): (&Bags<'_, T>, &Bags<'_, T>),
    chosen: Chosen<T>,
    kernel: SetKernel,
    later: bool,
    out: &mut [f64],
    interrupt: &Interrupt,
) -> Result<()> {
    let d = a.n_features();
    let panels = Panels::new(b.instances(), d, chosen.scale(), interrupt)?;
    let rows = Rows::new(a.instances(), d, chosen.scale(), interrupt)?;
    let (n_rows, n_columns) = (a.len(), b.len());
    let width = panels.len() * T::LANES;
    let size = (a.n_instances() / n_rows).max(1);
    let group = (4 * GROUP / size).clamp(1, (KEPT / width).max(1));
    let cuts = parallel::cuts(n_rows, group, |bag| bag * n_columns)?;
    let large = a.n_instances().saturating_mul(width).saturating_mul(d) > LARGE;
    parallel::fill(out, &cuts, large, interrupt, |task, out| {
        let bags = task * group..((task + 1) * group).min(n_rows);
        let from = |bag| if later { b.rows(bag).start / T::LANES } else { 0 };
        let groups = memory::collect(bags.clone().map(|bag| (a.rows(bag), from(bag))), "the list of bags")?;
        let mut totals = memory::filled(0.0, groups.len() * width, "the sums of the columns")?;
        let meeting = Meeting { rows: &rows, panels: &panels, chosen, interrupt };
        meeting.fold_bags(kernel, &groups, &mut totals, d)?;
        let some = out.chunks_mut(SUMMED * n_columns).zip(totals.chunks(SUMMED * width));
        for (bag, (out, totals)) in bags.step_by(SUMMED).zip(some) {
            interrupt.check()?;
            for other in if later { bag } else { 0 }..n_columns {
                let columns = b.rows(other);
                let n = columns.len();
                let sums = sums_of_some(totals, width, columns);
                for (i, (sum, out)) in sums.into_iter().zip(out[other..].iter_mut().step_by(n_columns)).enumerate() {
                    *out = match kernel {
                        SetKernel::Sum => sum,
                        _ if n == 0 || a.rows(bag + i).is_empty() => 0.0, // nothing matches in an empty bag
                        _ => sum / n as f64,
                    };
                }
            }
        }
        Ok(())
    })
}

fn check_sharpness(kernel: SetKernel) -> Result<()> {
    match kernel {
        SetKernel::SoftMatch { sharpness } if !(sharpness > 0.0 && sharpness.is_finite()) => {
            Err(Error::Range(format!("sharpness must be positive and finite; got {sharpness}")))
        }
        _ => Ok(()),
    }
}

/// Kernel between the bags of `a` and those of `b` (of `a` when None): (bags of `a`, bags of `b`), row-major.
///
/// Without `b` the matrix is exactly symmetric.
///
/// # Errors
/// [`Error`] when `gamma`, `coef0` or the sharpness is out of range, a value is not finite, memory runs out or on
/// interrupt.
pub fn bag_gram<T: Real>(
    a: &Bags<'_, T>,
    b: Option<&Bags<'_, T>>,
    kernel: InstanceKernel,
    set_kernel: SetKernel,
    out: &mut [f64],
    interrupt: &Interrupt,
) -> Result<()> {
    let (d, columns) = (a.n_features(), b.unwrap_or(a));
    let chosen = Chosen::new(kernel, [a.instances(), columns.instances()], d.max(1))?;
    check_sharpness(set_kernel)?;
    check_finite("instances", a.instances(), d)?;
    if let Some(b) = b {
        check_finite("other_instances", b.instances(), d)?;
    }
    out.fill(0.0);
    if a.instances().is_empty() || columns.instances().is_empty() {
        return Ok(());
    }
    let (n_rows, n_columns) = (a.len(), columns.len());
    let sum = set_kernel == SetKernel::Sum;
    directed((a, columns), chosen, set_kernel, sum && b.is_none(), out, interrupt)?;
    match b {
        None => {
            // block by block, so that neither rows nor columns leave the cache between two visits
            for (top, left) in (0..n_rows).step_by(BLOCK).flat_map(|i| (0..=i).step_by(BLOCK).map(move |j| (i, j))) {
                if sum && left < top {
                    continue; // what is below the diagonal blocks is mirrored
                }
                interrupt.check()?;
                for row in top..(top + BLOCK).min(n_rows) {
                    for column in left..(left + BLOCK).min(row) {
                        let upper = out[column * n_rows + row];
                        let value = if sum { upper } else { 0.5 * (out[row * n_rows + column] + upper) };
                        (out[row * n_rows + column], out[column * n_rows + row]) = (value, value);
                    }
                }
            }
            if sum {
                mirror(out, n_rows, interrupt)?;
            }
        }
        Some(b) if !sum => {
            let mut back = memory::filled(0.0, out.len(), "the matches of the other bags")?;
            directed((b, a), chosen, set_kernel, false, &mut back, interrupt)?;
            for (row, out) in out.chunks_exact_mut(n_columns).enumerate() {
                for (column, out) in out.iter_mut().enumerate() {
                    *out = 0.5 * (*out + back[column * n_rows + row]);
                }
            }
        }
        Some(_) => {}
    }
    Ok(())
}

/// Sum of the kernel over all instance pairs inside each bag.
///
/// # Errors
/// As [`bag_gram`].
pub fn bag_diagonal<T: Real>(bags: &Bags<'_, T>, kernel: InstanceKernel, interrupt: &Interrupt) -> Result<Vec<f64>> {
    let d = bags.n_features();
    let chosen = Chosen::new(kernel, [bags.instances(), &[]], d.max(1))?;
    check_finite("instances", bags.instances(), d)?;
    let step = 64;
    let cuts = parallel::cuts(bags.len(), step, |bag| bag)?;
    let mut out = memory::filled(0.0, bags.len(), "the sum of each bag")?;
    parallel::fill(&mut out, &cuts, bags.instances().len() > LARGE, interrupt, |block, out| {
        for (i, out) in (block * step..).zip(out) {
            let bag = bags.bag(i);
            if bag.is_empty() {
                continue;
            }
            let panels = Panels::new(bag, d, chosen.scale(), interrupt)?;
            let rows = Rows::new(bag, d, chosen.scale(), interrupt)?;
            let mut totals = memory::filled(0.0, panels.len() * T::LANES, "the sums of the columns")?;
            let meeting = Meeting { rows: &rows, panels: &panels, chosen, interrupt };
            meeting.fold(Sum, &[(0..rows.len(), 0)], &[], &mut totals, d)?;
            *out = totals[..panels.n].iter().sum();
        }
        Ok(())
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::fill_normals;
    use crate::simd::reals_on_every_level;

    fn direct(x: &[f64], y: &[f64], gamma: f64) -> f64 {
        (-gamma * x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    }

    fn normals(n: usize) -> Vec<f64> {
        let mut x = vec![0.0; n];
        fill_normals(1, 2, 3, 0, &mut x);
        x
    }

    #[test]
    fn matrix_equals_the_definition() {
        for (n, m, d) in [(1, 1, 1), (3, 17, 5), (33, 16, 16), (50, 7, 2)] {
            let (x, y) = (normals(n * d), normals((n + m) * d).split_off(n * d));
            let mut out = vec![0.0; n * m];
            rbf_gram(&x, Some(&y), d, 0.1, &mut out, &Interrupt::default()).unwrap();
            for i in 0..n {
                for j in 0..m {
                    let want = direct(&x[i * d..][..d], &y[j * d..][..d], 0.1);
                    assert!((out[i * m + j] - want).abs() < 1e-15);
                }
            }
        }
    }

    const RBF: InstanceKernel = InstanceKernel::Rbf { gamma: 0.2 };
    const POLY: InstanceKernel = InstanceKernel::Poly { gamma: 0.2, degree: 3, coef0: 0.5 };

    fn instance_kernel(x: &[f64], y: &[f64], kernel: InstanceKernel) -> f64 {
        match kernel {
            InstanceKernel::Rbf { gamma } => direct(x, y, gamma),
            InstanceKernel::Poly { gamma, degree, coef0 } => {
                (gamma * x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>() + coef0).powi(degree as i32)
            }
        }
    }

    /// The kernels between bags as they are written down.
    fn written(a: &[f64], b: &[f64], d: usize, kernel: InstanceKernel, set_kernel: SetKernel) -> f64 {
        let k = |x: &[f64], y: &[f64]| instance_kernel(x, y, kernel);
        let (rows, columns) = (a.len() / d, b.len() / d);
        let soft = |values: Vec<f64>| match set_kernel {
            SetKernel::SoftMatch { sharpness } => {
                (values.iter().map(|v| (sharpness * v).exp()).sum::<f64>() / values.len() as f64).ln() / sharpness
            }
            _ => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
        };
        if set_kernel == SetKernel::Sum {
            return a.chunks(d).map(|x| b.chunks(d).map(|y| k(x, y)).sum::<f64>()).sum();
        }
        let there = a.chunks(d).map(|x| soft(b.chunks(d).map(|y| k(x, y)).collect())).sum::<f64>() / rows as f64;
        let back = b.chunks(d).map(|y| soft(a.chunks(d).map(|x| k(x, y)).collect())).sum::<f64>() / columns as f64;
        0.5 * (there + back)
    }

    #[test]
    fn kernels_of_bags_equal_the_definition() {
        let d = 3;
        let x = normals(40 * d);
        let (offsets, few) = ([0, 1, 4, 21, 22, 40], [0, 17, 40]);
        let (bags, others) = (Bags::new(&x, d, &offsets).unwrap(), Bags::new(&x, d, &few).unwrap());
        let never = Interrupt::default();
        for kernel in [RBF, POLY] {
            for set_kernel in [SetKernel::Sum, SetKernel::Match, SetKernel::SoftMatch { sharpness: 2.0 }] {
                let (mut own, mut same, mut cross) = (vec![0.0; 25], vec![0.0; 25], vec![0.0; 10]);
                bag_gram(&bags, None, kernel, set_kernel, &mut own, &never).unwrap();
                bag_gram(&bags, Some(&bags), kernel, set_kernel, &mut same, &never).unwrap();
                bag_gram(&bags, Some(&others), kernel, set_kernel, &mut cross, &never).unwrap();
                let close = |got: f64, want: f64| (got - want).abs() <= 1e-12 * want.abs().max(1.0);
                for i in 0..5 {
                    for j in 0..5 {
                        let want = written(bags.bag(i), bags.bag(j), d, kernel, set_kernel);
                        assert!(
                            close(own[5 * i + j], want) && close(same[5 * i + j], want),
                            "{kernel:?} {set_kernel:?}"
                        );
                        assert_eq!(own[5 * i + j].to_bits(), own[5 * j + i].to_bits());
                    }
                    for j in 0..2 {
                        let want = written(bags.bag(i), others.bag(j), d, kernel, set_kernel);
                        assert!(close(cross[2 * i + j], want), "{kernel:?} {set_kernel:?}");
                    }
                }
                if set_kernel == SetKernel::Sum {
                    let diagonal = bag_diagonal(&bags, kernel, &never).unwrap();
                    assert!((0..5).all(|i| close(own[6 * i], diagonal[i])));
                }
            }
        }
    }

    #[test]
    fn a_sharp_soft_match_is_the_match_and_a_blunt_one_the_average() {
        let x = normals(30);
        let bags = Bags::new(&x, 2, &[0, 3, 15]).unwrap();
        let never = Interrupt::default();
        let gram = |set_kernel| {
            let mut out = [0.0; 4];
            bag_gram(&bags, None, RBF, set_kernel, &mut out, &never).unwrap();
            out
        };
        let (sums, matches) = (gram(SetKernel::Sum), gram(SetKernel::Match));
        let (blunt, sharp) =
            (gram(SetKernel::SoftMatch { sharpness: 1e-6 }), gram(SetKernel::SoftMatch { sharpness: 1e6 }));
        for (i, pairs) in [9.0, 36.0, 36.0, 144.0].into_iter().enumerate() {
            assert!((blunt[i] - sums[i] / pairs).abs() < 1e-6 && (sharp[i] - matches[i]).abs() < 1e-5);
        }
        assert_eq!([matches[0], matches[3]].map(f64::to_bits), [1f64.to_bits(); 2]);
    }

    /// Everything that depends on the instruction set, for one type and form.
    #[derive(Clone)]
    struct Everything<T, F>(std::marker::PhantomData<T>, F, Option<T>);
    impl<T: Real, F: Form<T>> RealKernel<T> for Everything<T, F> {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run<S: Vectors<T>>(self, simd: S) -> Vec<u64> {
            let x: Vec<T> = normals(37 * 5).into_iter().map(T::from_f64).collect();
            let never = Interrupt::default();
            let (panels, rows) =
                (Panels::new(&x, 5, self.2, &never).unwrap(), Rows::new(&x, 5, self.2, &never).unwrap());
            let (rows, panels, form) = (&rows, &panels, self.1);
            let mut out = vec![T::default(); 37 * 37];
            let piece = 0..panels.len();
            MatrixRows { rows, first: 0, panels, piece, form, out: &mut out }.run(simd);
            let mut turned = out.clone();
            let to = &mut turned;
            Transpose { from: &out, from_columns: 37, corner: [0, 0], to, to_columns: 37, column: 0, width: 37 }.run();
            out.extend(turned);
            let mut bits: Vec<u64> = out.iter().map(|v| v.to_f64().to_bits()).collect();
            let width = panels.len() * T::LANES;
            let parts = &[(3..10, 0), (10..34, width)];
            macro_rules! fold {
                ($fold:expr, $shifts:expr) => {{
                    let (fold, shifts) = ($fold, $shifts);
                    let mut totals = vec![0.0; 2 * width];
                    let mut values = vec![T::default(); GROUP * WIDEST];
                    for panel in 0..panels.len() {
                        Tiles { rows, range: 3..34, panels, panel, form, values: &mut values }.run(simd);
                        Columns { parts, values: &values, panel, fold, shifts, totals: &mut totals }.run(simd);
                    }
                    bits.extend(totals.iter().map(|v| v.to_bits()));
                }};
            }
            fold!(Sum, &[]);
            fold!(Max, &[]);
            fold!(ExpSum(T::ONE), &vec![100.0; 2 * width]);
            bits
        }
    }

    #[test]
    fn every_path_gives_the_same_bits() {
        fn same<T: Real>() {
            let value = T::from_f64;
            let kind = std::marker::PhantomData::<T>;
            let equal = |all: Vec<Vec<u64>>| assert!(all.windows(2).all(|w| w[0] == w[1]));
            equal(reals_on_every_level(&Everything(kind, Differences(value(-0.3)), None)));
            equal(reals_on_every_level(&Everything(kind, Products, Some(value(0.7)))));
            let power = Power { gamma: value(0.3), coef0: value(1.5), degree: 5 };
            equal(reals_on_every_level(&Everything(kind, power, None)));
        }
        same::<f64>();
        same::<f32>();
    }

    #[test]
    fn the_short_form_is_taken_where_its_rounding_does_not_show() {
        fn largest_error<T: Real>(part_of_limit: f64) -> (bool, f64) {
            let x = normals(60 * 7);
            let largest = x.chunks(7).map(|row| row.iter().map(|v| v * v).sum::<f64>()).fold(0.0, f64::max);
            let gamma = part_of_limit * limit::<T>() / largest / std::f64::consts::LOG2_E;
            let x: Vec<T> = x.into_iter().map(T::from_f64).collect();
            let short = Chosen::new(InstanceKernel::Rbf { gamma }, [&x, &[]], 7).unwrap().scale().is_some();
            let mut got = vec![T::default(); 60 * 60];
            rbf_gram(&x, None, 7, gamma, &mut got, &Interrupt::default()).unwrap();
            let wide: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
            let mut largest = 0f64;
            for i in 0..60 {
                assert!(got[i * 61] == T::ONE);
                for j in 0..60 {
                    let want = direct(&wide[i * 7..][..7], &wide[j * 7..][..7], gamma);
                    largest = largest.max((got[i * 60 + j].to_f64() - want).abs());
                }
            }
            (short, largest)
        }
        for (part, short) in [(0.99, true), (1.01, false)] {
            let (taken, error) = largest_error::<f64>(part);
            assert!(taken == short && error < 1e-13, "{error}");
            let (taken, error) = largest_error::<f32>(part);
            assert!(taken == short && error < 5e-7, "{error}");
        }
    }

    #[test]
    fn a_matrix_is_mirrored_at_its_diagonal() {
        let never = Interrupt::default();
        for n in [1, 63, 64, 65, 127, 128, 200, 321] {
            let x = normals(n * 2);
            let (mut own, mut cross) = (vec![0.0; n * n], vec![0.0; n * n]);
            rbf_gram(&x, None, 2, 0.4, &mut own, &never).unwrap();
            rbf_gram(&x, Some(&x), 2, 0.4, &mut cross, &never).unwrap();
            assert!(own.iter().zip(&cross).all(|(a, b)| a.to_bits() == b.to_bits()), "{n}");
        }
    }

    #[test]
    fn cutting_a_large_bag_changes_no_bit() {
        let never = Interrupt::default();
        // rows are cut for the wide bag, panels one by one; the narrow bag is cut into panels only
        for (n, d) in [(9, 200_000), (700, 3)] {
            let x = normals(n * d);
            let chosen = Chosen::Differences(Differences(-0.5 / d as f64));
            let (panels, rows) = (Panels::new(&x, d, None, &never).unwrap(), Rows::new(&x, d, None, &never).unwrap());
            let mut whole = vec![0.0; panels.len() * f64::LANES];
            let meeting = Meeting { rows: &rows, panels: &panels, chosen, interrupt: &never };
            meeting.fold(Sum, &[(0..n, 0)], &[], &mut whole, d).unwrap();
            for step in [4, 12, GROUP] {
                let mut pieces = vec![0.0; whole.len()];
                for first in (0..n).step_by(step) {
                    for i in 0..panels.len() {
                        let parts = [(first..(first + step).min(n), 0)];
                        meeting.fold_parts(Sum, &parts, i..i + 1, &[], &mut pieces);
                    }
                }
                assert!(whole.iter().zip(&pieces).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }

    #[test]
    fn large_bags_can_be_interrupted() {
        let (x, stop) = (normals(64), Interrupt::default());
        let bags = Bags::new(&x, 2, &[0, 32]).unwrap();
        stop.raise();
        for set_kernel in [SetKernel::Sum, SetKernel::Match, SetKernel::SoftMatch { sharpness: 1.0 }] {
            assert_eq!(bag_gram(&bags, None, RBF, set_kernel, &mut [0.0], &stop), Err(Error::Interrupted));
        }
        assert_eq!(bag_diagonal(&bags, RBF, &stop), Err(Error::Interrupted));
        assert_eq!(mirror(&mut vec![0.0; 100 * 100], 100, &stop), Err(Error::Interrupted));
    }

    #[test]
    fn empty_bags_match_nothing() {
        let x = normals(6);
        let bags = Bags::new(&x, 2, &[0, 0, 3]).unwrap();
        for set_kernel in [SetKernel::Sum, SetKernel::Match, SetKernel::SoftMatch { sharpness: 1.0 }] {
            let mut out = [7.0; 4];
            bag_gram(&bags, None, RBF, set_kernel, &mut out, &Interrupt::default()).unwrap();
            assert!(out[..3].iter().all(|&v| v == 0.0) && out[3] > 0.0);
            let none = Bags::new(&x[..0], 2, &[0, 0]).unwrap();
            let mut out = [7.0; 2];
            bag_gram(&bags, Some(&none), RBF, set_kernel, &mut out, &Interrupt::default()).unwrap();
            assert!(out.iter().all(|&v| v == 0.0));
        }
    }

    #[test]
    fn extreme_widths_give_no_nan() {
        let x = [3e38f32, -3e38];
        let mut out = [0.0; 4];
        for gamma in [f64::MAX, 1e39, 1.0, 1e-50, 5e-324] {
            rbf_gram(&x, None, 1, gamma, &mut out, &Interrupt::default()).unwrap();
            assert_eq!(out.map(f32::to_bits), [1.0, 0.0, 0.0, 1.0f32].map(f32::to_bits), "{gamma}");
        }
    }

    #[test]
    fn bad_input_is_named() {
        let mut out = [0.0; 4];
        let never = Interrupt::default();
        let error = rbf_gram(&[0.0, f64::NAN], None, 1, 1.0, &mut out, &never).unwrap_err();
        assert_eq!(error.to_string(), "X[1, 0] is NaN: drop or impute it first");
        assert!(rbf_gram(&[0.0], None, 1, 0.0, &mut out[..1], &never).is_err());
        let bags = Bags::new(&[0.0], 1, &[0, 1]).unwrap();
        let poly = InstanceKernel::Poly { gamma: 1.0, degree: 2, coef0: f64::NAN };
        for (kernel, set_kernel, message) in [
            (poly, SetKernel::Sum, "coef0 must be finite; got NaN"),
            (RBF, SetKernel::SoftMatch { sharpness: 0.0 }, "sharpness must be positive and finite; got 0"),
            (InstanceKernel::Rbf { gamma: -1.0 }, SetKernel::Match, "gamma must be positive and finite; got -1"),
        ] {
            let error = bag_gram(&bags, None, kernel, set_kernel, &mut out[..1], &never).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
