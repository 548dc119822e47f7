//! Kernels between bags, from those between their instances.
//!
//! The matrix of all instance pairs is never built: a block of rows meets some columns in tiles that stay in registers, the
//! rows of a bag are folded (added up, or their maximum taken) at once, and so are the columns of a bag.

use std::ops::Range;

use crate::bags::Bags;
use crate::each::each;
use crate::error::{Error, Result};
use crate::gram::{BLOCK, Chosen, InstanceKernel, LARGE, WIDEST, check_finite, mirror, with_form};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, Real, RealKernel, Vectors, dispatch_narrow, dispatch_reals};
use crate::tiles::{Form, Panel, Panels, Products, QUAD, Quads, ROWS, Rows, TASK, tile};

/// Rows of a block.
const GROUP: usize = 96;
/// Rows of a bag that are folded in T; from there on it is float64.
const TOGETHER: usize = 8;
/// Bags that are added up side by side.
const SUMMED: usize = 8;
/// Rows of a task, where a bag does not have more: less than three blocks, which bags do not fill.
const SHARE: usize = 256;
/// Sums of columns that a task keeps between two visits to the rows, where it has few bags.
const KEPT: usize = 1 << 13;

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

/// How the rows of a bag become one number a column.
trait Fold<T: Real>: Copy {
    /// The fold of no rows.
    const NONE: f64;
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
    const NONE: f64 = 0.0;
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
    const NONE: f64 = f64::NEG_INFINITY;
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
    const NONE: f64 = 0.0;
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

/// Rows of a block that belong to one bag.
#[derive(Debug)]
struct Part {
    rows: Range<usize>,
    bag: usize,
    /// Whether they are the first ones of the bag.
    opens: bool,
}

/// Values of the rows of a block with the columns of a panel.
struct Tiles<'a, T, F> {
    quads: &'a Quads<T>,
    panel: Panel<'a, T>,
    form: F,
    /// Row after row.
    values: &'a mut [T],
}

impl<T: Real, F: Form<T>> Tiles<'_, T, F> {
    /// Values of `H` quads from `quad` on.
    #[inline(always)]
    fn some<S: Vectors<T>, const H: usize>(&mut self, simd: S, quad: usize) {
        let rows = self.quads.some::<H>(quad);
        let values = &mut self.values[quad * QUAD * T::LANES..(quad + H) * QUAD * T::LANES];
        for lane in (0..T::LANES).step_by(2 * S::WIDTH) {
            let tile = tile(simd, self.form, rows, self.panel, lane);
            each!(S: h < H => {
                each!(S: w < QUAD => {
                    let values = &mut values[(h * QUAD + w) * T::LANES + lane..];
                    simd.store(tile[h][w][0], values);
                    simd.store(tile[h][w][1], &mut values[S::WIDTH..]);
                });
            });
        }
    }
}

impl<T: Real, F: Form<T>> RealKernel<T> for Tiles<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<T>>(mut self, simd: S) {
        // blocks are short: a quad that is left over would take twice the time beside itself
        let mut quad = 0;
        while quad < self.quads.len() {
            if S::MANY && quad + 1 < self.quads.len() {
                self.some::<S, 2>(simd, quad);
                quad += 2;
            } else {
                self.some::<S, 1>(simd, quad);
                quad += 1;
            }
        }
    }
}

/// Fold what [`Tiles`] has left into totals of the columns of the panel.
struct Columns<'a, T, G> {
    parts: &'a [Part],
    values: &'a [T],
    /// Totals of a bag, and where those of the panel begin in them.
    width: usize,
    column: usize,
    fold: G,
    /// A number for each of the totals; empty where the fold needs none.
    shifts: &'a [f64],
    totals: &'a mut [f64],
}

/// Fold at most [`TOGETHER`] rows of a panel, one after the other.
#[inline(always)]
fn fold_rows<T: Real, S: Vectors<T>, G: Fold<T>>(simd: S, fold: G, rows: &[T], shifts: &[T]) -> [T; WIDEST] {
    let registers = T::LANES / S::WIDTH; // at most 16
    let (mut folded, mut now) = ([simd.splat(T::default()); 16], [simd.splat(T::default()); 16]);
    each!(S: i < registers => { now[i] = simd.load(&shifts[i * S::WIDTH..]) });
    each!(S: i < registers => { folded[i] = fold.each(simd, simd.load(&rows[i * S::WIDTH..]), now[i]) });
    for row in rows[T::LANES..].chunks_exact(T::LANES) {
        each!(S: i < registers => {
            let row = fold.each(simd, simd.load(&row[i * S::WIDTH..]), now[i]);
            folded[i] = G::pair(simd, folded[i], row);
        });
    }
    let mut parts = [T::default(); WIDEST];
    each!(S: i < registers => { simd.store(folded[i], &mut parts[i * S::WIDTH..]) });
    parts
}

impl<T: Real, G: Fold<T>> RealKernel<T> for Columns<'_, T, G> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<T>>(self, simd: S) {
        let mut shifts = [T::default(); WIDEST];
        for Part { rows, bag, opens } in self.parts {
            let first = bag * self.width + self.column;
            if !self.shifts.is_empty() {
                for (to, &from) in shifts.iter_mut().zip(&self.shifts[first..first + T::LANES]) {
                    *to = T::from_f64(from);
                }
            }
            let totals = &mut self.totals[first..first + T::LANES];
            let mut opens = *opens;
            for rows in self.values[rows.start * T::LANES..rows.end * T::LANES].chunks(TOGETHER * T::LANES) {
                let folded = fold_rows::<T, S, G>(simd, self.fold, rows, &shifts);
                if opens {
                    for (total, value) in totals.iter_mut().zip(&folded) {
                        *total = value.to_f64();
                    }
                } else {
                    for (total, &value) in totals.iter_mut().zip(&folded) {
                        *total = G::add(*total, value);
                    }
                }
                opens = false;
            }
        }
    }
}

/// However wide the instances, no piece of the work between two looks at the interrupt is much more than a task.
fn rows_of_a_block<T: Real>(d: usize) -> usize {
    (TASK / (T::LANES * d)).next_multiple_of(ROWS).clamp(ROWS, GROUP)
}

/// Rows that meet the columns together, of some bags or of a part of one.
struct Block<T> {
    quads: Quads<T>,
    parts: Vec<Part>,
    /// The first panel that any of the bags is to meet.
    first: usize,
}

/// Cut the rows of some bags into blocks of at most `step` rows, a multiple of [`TOGETHER`]. With each bag comes the first
/// panel that it meets.
///
/// How they are cut changes no bit, since a column folds the rows of a bag in their order.
fn blocks<T: Real>(rows: &Rows<'_, T>, bags: &[(Range<usize>, usize)], step: usize) -> Result<Vec<Block<T>>> {
    const WHAT: &str = "the list of rows";
    let mut blocks = memory::room(bags.iter().map(|(bag, _)| bag.len().div_ceil(step)).sum(), WHAT)?;
    let mut next = 0;
    while next < bags.len() {
        let whole = bags[next..].iter().take_while(|(bag, _)| bag.end - bags[next].0.start <= step).count();
        let together = &bags[next..next + whole.max(1)];
        let all = together[0].0.start..together.last().map_or(0, |(bag, _)| bag.end);
        for start in all.clone().step_by(step) {
            let range = start..all.end.min(start + step);
            let mut parts = memory::room(together.len(), WHAT)?;
            for (i, (bag, _)) in together.iter().enumerate() {
                let part = bag.start.max(range.start)..bag.end.min(range.end);
                if !part.is_empty() {
                    let (rows, opens) = (part.start - start..part.end - start, part.start == bag.start);
                    parts.push(Part { rows, bag: next + i, opens });
                }
            }
            let first = together.iter().map(|&(_, panel)| panel).min().unwrap_or(0);
            blocks.push(Block { quads: Quads::new(rows, range)?, parts, first });
        }
        next += together.len();
    }
    Ok(blocks)
}

/// Room for the values of a block with a panel, at a line of the cache.
#[repr(align(64))]
struct Values<T>([T; GROUP * WIDEST]);

/// Some bags that meet all columns.
struct Meeting<'a, T> {
    blocks: Vec<Block<T>>,
    /// Rows of each bag.
    sizes: Vec<usize>,
    panels: &'a Panels<T>,
    chosen: Chosen<T>,
    interrupt: &'a Interrupt,
}

impl<'a, T: Real> Meeting<'a, T> {
    /// With each bag comes the first panel that it meets.
    fn new(
        rows: &Rows<'_, T>,
        bags: &[(Range<usize>, usize)],
        step: usize,
        panels: &'a Panels<T>,
        chosen: Chosen<T>,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        let sizes = memory::collect(bags.iter().map(|(rows, _)| rows.len()), "the list of bags")?;
        Ok(Self { blocks: blocks(rows, bags, step)?, sizes, panels, chosen, interrupt })
    }

    /// Fold the rows of each bag for the columns of some panels; panels before the first of a bag are left as they are.
    fn fold<G: Fold<T>>(&self, fold: G, piece: &Range<usize>, shifts: &[f64], totals: &mut [f64]) -> Result<()> {
        let width = piece.len() * T::LANES;
        for (totals, &size) in totals.chunks_exact_mut(width).zip(&self.sizes) {
            if size == 0 {
                totals.fill(G::NONE);
            }
        }
        let mut values = Values([T::default(); GROUP * WIDEST]);
        for Block { quads, parts, first } in &self.blocks {
            self.interrupt.check()?;
            for i in piece.start.max(*first)..piece.end {
                let (panel, column) = (self.panels.get(i), (i - piece.start) * T::LANES);
                with_form!(self.chosen, |form| dispatch_reals(Tiles { quads, panel, form, values: &mut values.0 }));
                dispatch_reals(Columns { parts, values: &values.0, width, column, fold, shifts, totals });
            }
        }
        Ok(())
    }

    /// The same for a kernel between bags, down to what is added up over the columns of a bag.
    fn fold_bags(&self, kernel: SetKernel, piece: &Range<usize>, totals: &mut [f64]) -> Result<()> {
        match kernel {
            SetKernel::Sum => self.fold(Sum, piece, &[], totals),
            SetKernel::Match => self.fold(Max, piece, &[], totals),
            SetKernel::SoftMatch { sharpness } => {
                let mut largest = memory::filled(0.0, totals.len(), "the maxima of the columns")?;
                self.fold(Max, piece, &[], &mut largest)?;
                let factor = T::from_f64(sharpness.clamp(T::SMALLEST, T::LARGEST));
                self.fold(ExpSum(factor), piece, &largest, totals)?;
                let width = piece.len() * T::LANES;
                let of_bags = totals.chunks_exact_mut(width).zip(largest.chunks_exact(width));
                for (&n, (totals, largest)) in self.sizes.iter().zip(of_bags) {
                    for (total, largest) in totals.iter_mut().zip(largest) {
                        *total = largest + (*total / n as f64).ln() / sharpness;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Adds the totals of the columns of each bag to the sums of up to [`SUMMED`] bags of rows.
struct AddUp<'a, 'b, T> {
    /// Bags of columns, and those that have not ended before the first of the columns.
    bags: &'a Bags<'b, T>,
    others: Range<usize>,
    /// Columns that there are totals of.
    columns: Range<usize>,
    totals: &'a [f64],
    /// Sums with all bags of columns.
    sums: &'a mut [f64],
}

impl<T: Real> Kernel for AddUp<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (width, stride) = (self.columns.len(), self.bags.len());
        let last = self.totals.len() / width - 1;
        let mut totals: [&[f64]; SUMMED] = [&[]; SUMMED];
        each!(i < SUMMED => { totals[i] = &self.totals[i.min(last) * width..][..width] });
        for other in self.others {
            let bag = self.bags.rows(other);
            if bag.start >= self.columns.end {
                break;
            }
            let start = bag.start.max(self.columns.start) - self.columns.start;
            let end = bag.end.min(self.columns.end) - self.columns.start;
            // side by side: one sum would wait for each addition
            let mut sums = [0.0; SUMMED];
            each!(i < SUMMED => { sums[i] = self.sums[i.min(last) * stride + other] });
            for column in start..end {
                each!(i < SUMMED => { sums[i] += totals[i][column] });
            }
            for (to, sum) in self.sums[other..].iter_mut().step_by(stride).zip(sums) {
                *to = sum;
            }
        }
    }
}

/// For each bag of rows and each of columns (only those from the same bag on if `later`), the sum over the columns of
/// what the rows are folded to, or its mean; `out` is zero before.
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
    let group = match (SHARE / (a.n_instances() / n_rows).max(1)).max(1) {
        few @ 0..SUMMED => few,
        many => many - many % SUMMED,
    };
    let step = rows_of_a_block::<T>(d);
    let cuts = parallel::cuts(n_rows, group, |bag| bag * n_columns)?;
    let large = a.n_instances().saturating_mul(panels.n).saturating_mul(d) > LARGE;
    parallel::fill(out, &cuts, large, interrupt, |task, out| {
        let bags = task * group..((task + 1) * group).min(n_rows);
        let from = |bag| if later { b.rows(bag).start / T::LANES } else { 0 };
        let list = memory::collect(bags.clone().map(|bag| (a.rows(bag), from(bag))), "the list of bags")?;
        let n_bags = list.len();
        let meeting = Meeting::new(&rows, &list, step, &panels, chosen, interrupt)?;
        let pieces = panels.pieces(from(bags.start), step, KEPT / n_bags / T::LANES);
        let mut kept = Vec::new();
        let mut reached = if later { bags.start } else { 0 };
        for piece in pieces {
            let width = piece.len() * T::LANES;
            let more = (n_bags * width).saturating_sub(kept.len());
            memory::reserve(&mut kept, more, "the sums of the columns")?;
            kept.resize(n_bags * width, 0.0);
            meeting.fold_bags(kernel, &piece, &mut kept)?;
            let columns = piece.start * T::LANES..piece.end * T::LANES;
            let some = out.chunks_mut(SUMMED * n_columns).zip(kept.chunks(SUMMED * width));
            for (bag, (sums, totals)) in bags.clone().step_by(SUMMED).zip(some) {
                let others = reached.max(if later { bag } else { 0 })..n_columns;
                dispatch_narrow(AddUp { bags: b, others, columns: columns.clone(), totals, sums });
            }
            while reached < n_columns && b.rows(reached).end <= columns.end {
                reached += 1;
            }
        }
        if kernel != SetKernel::Sum {
            for (bag, out) in bags.zip(out.chunks_exact_mut(n_columns)) {
                for (other, out) in out.iter_mut().enumerate() {
                    let n = b.rows(other).len();
                    // nothing matches in an empty bag
                    *out = if n == 0 || a.rows(bag).is_empty() { 0.0 } else { *out / n as f64 };
                }
            }
        }
        Ok(())
    })
}

fn check_sharpness(kernel: SetKernel) -> Result<()> {
    match kernel {
        SetKernel::SoftMatch { sharpness } if !(sharpness > 0.0 && sharpness.is_finite()) => {
            Err(Error::range(format_args!("sharpness must be positive and finite; got {sharpness}")))
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
    let chosen = Chosen::new(kernel, [a.instances(), b.map_or(&[], Bags::instances)], d.max(1))?;
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
            let whole = [(0..rows.len(), 0)];
            let meeting = Meeting::new(&rows, &whole, rows_of_a_block::<T>(d), &panels, chosen, interrupt)?;
            meeting.fold(Sum, &(0..panels.len()), &[], &mut totals)?;
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
    use crate::tiles::{Differences, Power};

    fn direct(x: &[f64], y: &[f64], gamma: f64) -> f64 {
        (-gamma * x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    }

    fn normals(n: usize) -> Vec<f64> {
        let mut x = vec![0.0; n];
        fill_normals(1, 2, 3, 0, &mut x);
        x
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
            let bags = [(3..10, 0), (10..34, 0)];
            let width = panels.len() * T::LANES;
            let mut bits = Vec::new();
            macro_rules! fold {
                ($fold:expr, $shifts:expr) => {{
                    let (fold, shifts) = ($fold, $shifts);
                    let mut totals = vec![0.0; 2 * width];
                    let mut values = vec![T::default(); GROUP * WIDEST];
                    for Block { quads, parts, .. } in &blocks(&rows, &bags, GROUP).unwrap() {
                        for i in 0..panels.len() {
                            let (panel, column) = (panels.get(i), i * T::LANES);
                            Tiles { quads, panel, form: self.1, values: &mut values }.run(simd);
                            Columns { parts, values: &values, width, column, fold, shifts, totals: &mut totals }
                                .run(simd);
                        }
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

    #[test]
    fn cutting_a_large_bag_changes_no_bit() {
        let never = Interrupt::default();
        for (n, d) in [(9, 2000), (700, 3)] {
            let x = normals(n * d);
            let chosen = Chosen::Differences(Differences(-0.5 / d as f64));
            let (panels, rows) = (Panels::new(&x, d, None, &never).unwrap(), Rows::new(&x, d, None, &never).unwrap());
            let totals = |step, pieces: usize| {
                let meeting = Meeting::new(&rows, &[(0..n, 0)], step, &panels, chosen, &never).unwrap();
                let mut totals = vec![0.0; panels.len() * f64::LANES];
                for (i, totals) in totals.chunks_mut(pieces * f64::LANES).enumerate() {
                    let piece = i * pieces..i * pieces + totals.len() / f64::LANES;
                    meeting.fold(Sum, &piece, &[], totals).unwrap();
                }
                totals
            };
            let whole = totals(GROUP, panels.len());
            for (step, pieces) in [(TOGETHER, 1), (3 * TOGETHER, 2), (GROUP, 3)] {
                assert!(whole.iter().zip(totals(step, pieces)).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }

    #[test]
    fn large_bags_can_be_interrupted() {
        let (x, stop) = (normals(64), Interrupt::default());
        let bags = Bags::new(&x, 2, &[0, 32]).unwrap();
        stop.raise();
        for set_kernel in [SetKernel::Sum, SetKernel::Match, SetKernel::SoftMatch { sharpness: 1.0 }] {
            assert_eq!(bag_gram(&bags, None, RBF, set_kernel, &mut [0.0], &stop), Err(Error::interrupted()));
        }
        assert_eq!(bag_diagonal(&bags, RBF, &stop), Err(Error::interrupted()));
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
    fn bad_input_is_named() {
        let mut out = [0.0; 4];
        let never = Interrupt::default();
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
