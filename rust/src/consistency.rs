//! Error consistency: how far sets of samples on which models err agree, for all pairs of sets.
//!
//! Every measure of two sets is a function of four counts: the samples, the size of each set and that of the
//! intersection. From the [`Columns`] of error sets come intersections, measures and their summary.

use std::ops::Range;

use crate::each::each;
use crate::error::Result;
use crate::error_sets::{Columns, LANES, Lanes};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{
    Kernel, Real, RealKernel, Simd, Vectors, WordKernel, dispatch_narrow, dispatch_reals, dispatch_words,
};

/// Sets of the rows and of the columns of one block of pairs.
const ROWS: usize = 32;
const COLUMNS: usize = 64;
/// Words of a block that are taken in turn, so that its panels stay in the cache.
const CHUNK: usize = 128;
/// Pairs times words from which threads pay.
const LARGE: usize = 1 << 20;

impl Columns {
    /// Pairs times words: what the work grows with.
    #[must_use]
    pub fn work(&self) -> usize {
        (self.n_sets.saturating_mul(self.n_sets) / 2).saturating_mul(self.words.max(1))
    }

    fn is_large(&self) -> bool {
        self.work() > LARGE
    }

    fn panels(&self, sets: &Range<usize>) -> &[Lanes] {
        &self.bits[sets.start / LANES * self.words..sets.end.div_ceil(LANES) * self.words]
    }

    /// Sizes of the intersections of a block of pairs, row after row, with room for `COLUMNS` a row.
    fn block(&self, block: &Block, counts: &mut [u64], interrupt: &Interrupt) -> Result<()> {
        counts.fill(self.always);
        let (rows, columns) = (self.panels(&block.rows), self.panels(&block.columns));
        for (digit, range) in self.digits.iter().enumerate() {
            for first in range.clone().step_by(CHUNK) {
                interrupt.check()?;
                dispatch_words(Intersections {
                    rows,
                    columns,
                    width: self.words,
                    words: first..range.end.min(first + CHUNK),
                    digit,
                    triangle: block.rows.start == block.columns.start,
                    counts,
                });
            }
        }
        Ok(())
    }

    /// How many pairs have no value: 0 / 0.
    #[must_use]
    pub fn undefined(&self, measure: Measure) -> u64 {
        let n = self.n_sets as u64;
        let pairs = |n: u64| n * n.saturating_sub(1) / 2;
        if self.total == 0 {
            return pairs(n);
        }
        let (mut empty, mut full) = (0, 0);
        for &size in &self.sizes {
            empty += u64::from(size == 0);
            full += u64::from(size == self.total);
        }
        match measure {
            Measure::Jaccard | Measure::Dice => pairs(empty),
            Measure::Kappa => pairs(empty) + pairs(full),
            Measure::Phi | Measure::YuleQ => pairs(n) - pairs(n - empty - full),
            Measure::DoubleFault | Measure::Agreement => 0,
        }
    }
}

/// Pairs of sets, `rows` with `columns`, that are counted together.
struct Block {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Block {
    /// The blocks of some rows: from the diagonal on.
    fn of(rows: &Range<usize>, n_sets: usize) -> impl Iterator<Item = Self> {
        (rows.start..n_sets)
            .step_by(COLUMNS)
            .map(move |first| Self { rows: rows.clone(), columns: first..n_sets.min(first + COLUMNS) })
    }
}

/// Adds the sizes of the intersections over some words.
#[derive(Debug)]
struct Intersections<'a> {
    rows: &'a [Lanes],
    columns: &'a [Lanes],
    /// Words of a panel.
    width: usize,
    words: Range<usize>,
    /// Digit of the weights.
    digit: usize,
    /// Whether only panels from the diagonal on are wanted.
    triangle: bool,
    counts: &'a mut [u64],
}

impl WordKernel for Intersections<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (i, columns) in self.columns.chunks_exact(self.width).enumerate() {
            for (j, rows) in self.rows.chunks_exact(self.width).enumerate() {
                if self.triangle && i < j {
                    break;
                }
                let (rows, columns) = (&rows[self.words.clone()], &columns[self.words.clone()]);
                let counts = &mut self.counts[LANES * (COLUMNS * j + i)..];
                for lane in (0..LANES).step_by(S::WIDTH) {
                    if S::COUNTS {
                        count_each(simd, rows, columns, lane, self.digit, &mut counts[lane..]);
                    } else {
                        count_sums(simd, rows, columns, lane, self.digit, &mut counts[lane..]);
                    }
                }
            }
        }
    }
}

/// Add 2^digit times the sums to the counts.
#[inline(always)]
fn add_to<S: Simd>(simd: S, counts: &mut [u64], mut sums: S::Words, digit: usize) {
    for _ in 0..digit {
        sums = simd.add(sums, sums);
    }
    let before = simd.load(counts);
    simd.store(simd.add(before, sums), counts);
}

/// Intersections of a panel of rows with the columns from `lane` on, where an instruction counts the bits of a word.
#[inline(always)]
fn count_each<S: Simd>(simd: S, rows: &[Lanes], columns: &[Lanes], lane: usize, digit: usize, counts: &mut [u64]) {
    let mut sums = [simd.splat(0); LANES];
    for (a, b) in rows.iter().zip(columns) {
        let b = simd.load(&b.0[lane..]);
        each!(row < LANES => {
            let both = simd.and(simd.splat(a.0[row]), b);
            sums[row] = simd.add(sums[row], simd.count_ones(both));
        });
    }
    each!(row < LANES => { add_to(simd, &mut counts[COLUMNS * row..], sums[row], digit) });
}

/// Sum and carry of three bits, in every place.
#[inline(always)]
fn full_adder<S: Simd>(simd: S, a: S::Words, b: S::Words, c: S::Words) -> (S::Words, S::Words) {
    let half = simd.xor(a, b);
    (simd.xor(half, c), simd.or(simd.and(a, b), simd.and(half, c)))
}

/// As `count_each`, where bits are slow to count: full adders sum up eight words place by place, so that only one word in
/// eight has its bits counted (Muła, Kurz & Lemire 2018, Faster population counts using AVX2 instructions).
#[inline(always)]
fn count_sums<S: Simd>(simd: S, rows: &[Lanes], columns: &[Lanes], lane: usize, digit: usize, counts: &mut [u64]) {
    let ((row_eights, row_rest), (eights, rest)) = (rows.as_chunks::<8>(), columns.as_chunks::<8>());
    let zero = simd.splat(0);
    for row in 0..LANES {
        let both = |a: &Lanes, b: &Lanes| simd.and(simd.splat(a.0[row]), simd.load(&b.0[lane..]));
        let (mut ones, mut twos, mut fours, mut eight_times) = (zero, zero, zero, zero);
        for (a, b) in row_eights.iter().zip(eights) {
            let (two_a, two_b, two_c, two_d, four_a, four_b, eight);
            (ones, two_a) = full_adder(simd, both(&a[0], &b[0]), both(&a[1], &b[1]), ones);
            (ones, two_b) = full_adder(simd, both(&a[2], &b[2]), both(&a[3], &b[3]), ones);
            (twos, four_a) = full_adder(simd, two_a, two_b, twos);
            (ones, two_c) = full_adder(simd, both(&a[4], &b[4]), both(&a[5], &b[5]), ones);
            (ones, two_d) = full_adder(simd, both(&a[6], &b[6]), both(&a[7], &b[7]), ones);
            (twos, four_b) = full_adder(simd, two_c, two_d, twos);
            (fours, eight) = full_adder(simd, four_a, four_b, fours);
            eight_times = simd.add(eight_times, simd.count_ones(eight));
        }
        let twice = |x| simd.add(x, x);
        let mut sums = eight_times;
        if !eights.is_empty() {
            sums = simd.add(twice(sums), simd.count_ones(fours));
            sums = simd.add(twice(sums), simd.count_ones(twos));
            sums = simd.add(twice(sums), simd.count_ones(ones));
        }
        for (a, b) in row_rest.iter().zip(rest) {
            sums = simd.add(sums, simd.count_ones(both(a, b)));
        }
        add_to(simd, &mut counts[COLUMNS * row..], sums, digit);
    }
}

/// A measure of how far two error sets agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Intersection over union.
    Jaccard,
    /// Twice the intersection over the sum of the sizes.
    Dice,
    /// Cohen's kappa: agreement beyond that of independent errors.
    Kappa,
    /// Share of the samples on which both err.
    DoubleFault,
    /// Correlation of the two indicators.
    Phi,
    /// Yule's Q: the odds ratio, brought to -1 ... 1.
    YuleQ,
    /// Share of the samples on which both err or neither does.
    Agreement,
}

impl Measure {
    /// Each measure and its name.
    pub const ALL: [(&str, Self); 7] = [
        ("jaccard", Self::Jaccard),
        ("dice", Self::Dice),
        ("kappa", Self::Kappa),
        ("double-fault", Self::DoubleFault),
        ("phi", Self::Phi),
        ("yule-q", Self::YuleQ),
        ("agreement", Self::Agreement),
    ];
}

// Measures from the number of samples, the sizes of both sets and that of their intersection.

#[inline(always)]
pub(crate) fn jaccard(_: f64, a: f64, b: f64, both: f64) -> f64 {
    both / (a + b - both)
}

#[inline(always)]
pub(crate) fn dice(_: f64, a: f64, b: f64, both: f64) -> f64 {
    2.0 * both / (a + b)
}

#[inline(always)]
pub(crate) fn kappa(n: f64, a: f64, b: f64, both: f64) -> f64 {
    2.0 * (n * both - a * b) / (a * (n - b) + b * (n - a))
}

#[inline(always)]
pub(crate) fn double_fault(n: f64, _: f64, _: f64, both: f64) -> f64 {
    both / n
}

#[inline(always)]
pub(crate) fn phi(n: f64, a: f64, b: f64, both: f64) -> f64 {
    (n * both - a * b) / ((a * (n - a)) * (b * (n - b))).sqrt()
}

#[inline(always)]
pub(crate) fn yule_q(n: f64, a: f64, b: f64, both: f64) -> f64 {
    let (same, different) = ((n - (a + b - both)) * both, (a - both) * (b - both));
    (same - different) / (same + different)
}

#[inline(always)]
pub(crate) fn agreement(n: f64, a: f64, b: f64, both: f64) -> f64 {
    (n - (a + b - 2.0 * both)) / n
}

/// Which pairs go where in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All pairs, and each set with itself: row after row.
    Square,
    /// Pairs above the diagonal, row after row.
    Condensed,
}

impl Layout {
    /// Number of entries for `n` sets, if it can be told.
    #[must_use]
    pub fn len(self, n: usize) -> Option<usize> {
        match self {
            Self::Square => n.checked_mul(n),
            Self::Condensed => n.checked_mul(n.saturating_sub(1)).map(|twice| twice / 2),
        }
    }

    /// Where a row begins.
    #[inline(always)]
    fn row(self, row: usize, n: usize) -> usize {
        match self {
            Self::Square => row * n,
            Self::Condensed => row * n - row * (row + 1) / 2,
        }
    }

    /// Where the value of a pair is.
    #[inline(always)]
    fn entry(self, row: usize, column: usize, n: usize) -> usize {
        match self {
            Self::Square => row * n + column,
            Self::Condensed => self.row(row, n) + column - row - 1,
        }
    }
}

/// An unsigned integer that holds a count.
pub trait Count: Copy + Send + Sync {
    /// The count; it fits.
    fn from_u64(count: u64) -> Self;
}

impl Count for u32 {
    #[inline(always)]
    fn from_u64(count: u64) -> Self {
        count as Self
    }
}

impl Count for u64 {
    #[inline(always)]
    fn from_u64(count: u64) -> Self {
        count
    }
}

/// Where the values of a block come from and where they go.
struct Target<'a, T> {
    columns: &'a Columns,
    block: &'a Block,
    counts: &'a [u64],
    /// None: the values of pairs of different sets, one behind the other.
    layout: Option<Layout>,
    out: &'a mut [T],
}

impl<'a, T> Target<'a, T> {
    /// The sizes of the intersections of a row with the last ones of the columns, and where the values go; there are none on
    /// the last row of a triangle.
    #[inline(always)]
    fn row(&self, row: usize, written: usize) -> (&'a [u64], usize) {
        let (n, Block { rows, columns: all }) = (self.columns.n_sets, self.block);
        let above = usize::from(self.layout != Some(Layout::Square));
        let first = all.start.max(row + above);
        if first >= all.end {
            return (&[], 0);
        }
        let start = match self.layout {
            Some(layout) => layout.entry(row, first, n) - layout.row(rows.start, n),
            None => written,
        };
        let counts = &self.counts[(row - rows.start) * COLUMNS..][first - all.start..all.end - all.start];
        (counts, start)
    }
}

/// Intersections, as they are.
struct Counts<'a, T>(Target<'a, T>);

impl<T: Count> Kernel for Counts<'_, T> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        let Self(target) = self;
        let mut written = 0;
        for row in target.block.rows.clone() {
            let (counts, start) = target.row(row, written);
            written += counts.len();
            for (out, &both) in target.out[start..].iter_mut().zip(counts) {
                *out = T::from_u64(both);
            }
        }
        written
    }
}

/// A measure.
struct Values<'a, T>(Measure, Target<'a, T>);

/// A measure of the pairs of a row, from the number of samples, the size of the set that they share, those of the others and
/// of the intersections. `value` must be a function and no closure, which would not be sure to be inlined.
#[inline(always)]
fn fill(n: f64, a: f64, sizes: &[f64], both: &[f64], out: &mut [f64], value: impl Fn(f64, f64, f64, f64) -> f64) {
    for ((out, &size), &both) in out.iter_mut().zip(sizes).zip(both) {
        *out = value(n, a, size, both);
    }
}

impl<T: Real> Kernel for Values<'_, T> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        let Self(measure, target) = self;
        let n = target.columns.total as f64;
        let (mut sizes, mut both, mut values) = ([0.0; COLUMNS], [0.0; COLUMNS], [0.0; COLUMNS]);
        let all = target.block.columns.clone();
        for (to, &size) in sizes.iter_mut().zip(&target.columns.sizes[all.clone()]) {
            *to = size as f64;
        }
        let mut written = 0;
        for row in target.block.rows.clone() {
            let (counts, start) = target.row(row, written);
            let many = counts.len();
            written += many;
            for (to, &count) in both.iter_mut().zip(counts) {
                *to = count as f64;
            }
            let (a, sizes, both, out) = (
                target.columns.sizes[row] as f64,
                &sizes[all.len() - many..all.len()],
                &both[..many],
                &mut values[..many],
            );
            match measure {
                Measure::Jaccard => fill(n, a, sizes, both, out, jaccard),
                Measure::Dice => fill(n, a, sizes, both, out, dice),
                Measure::Kappa => fill(n, a, sizes, both, out, kappa),
                Measure::DoubleFault => fill(n, a, sizes, both, out, double_fault),
                Measure::Phi => fill(n, a, sizes, both, out, phi),
                Measure::YuleQ => fill(n, a, sizes, both, out, yule_q),
                Measure::Agreement => fill(n, a, sizes, both, out, agreement),
            }
            for (out, &value) in target.out[start..].iter_mut().zip(&*out) {
                *out = T::from_f64(value);
            }
        }
        written
    }
}

/// Write what is above the diagonal below it.
fn mirror<T: Copy + Send + Sync>(out: &mut [T], n: usize, large: bool, interrupt: &Interrupt) -> Result<()> {
    let step = ROWS / 4;
    // Rows are cut at the diagonal, band by band: what is right of it is read by all tasks, what is left of it is written.
    let (mut left, mut right) = (memory::room(n, "the list of rows")?, memory::room(n, "the list of rows")?);
    for (row, values) in out.chunks_exact_mut(n.max(1)).enumerate() {
        let (before, after) = values.split_at_mut(row / ROWS * ROWS);
        left.push(before);
        right.push(&*after);
    }
    let tasks = memory::collect(left.chunks_mut(step).enumerate(), "the list of tasks")?;
    parallel::map(tasks, large, interrupt, |(task, rows)| {
        let first = task * step;
        for (column, values) in right[..first / ROWS * ROWS].iter().enumerate() {
            for (row, &value) in rows.iter_mut().zip(&values[first - column / ROWS * ROWS..]) {
                row[column] = value;
            }
        }
        Ok(())
    })
    .map(|_: Vec<()>| ())
}

/// Number, mean and sum of squared deviations of some values, and their range.
#[derive(Clone, Copy, Debug)]
struct Moments {
    n: u64,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    const NONE: Self = Self { n: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

    /// Moments of two groups of values taken together (Chan, Golub & LeVeque 1979).
    fn and(self, other: Self) -> Self {
        if self.n == 0 || other.n == 0 {
            return if self.n == 0 { other } else { self };
        }
        let n = self.n + other.n;
        let (share, step) = (other.n as f64 / n as f64, other.mean - self.mean);
        Self {
            n,
            mean: self.mean + step * share,
            squares: self.squares + other.squares + step * step * share * self.n as f64,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// Values that are added up side by side.
const SUMS: usize = 16;

/// Moments of some numbers.
#[derive(Clone)]
struct MomentsOf<'a>(&'a [f64]);

impl RealKernel<f64> for MomentsOf<'_> {
    type Output = Moments;
    #[inline(always)]
    fn run<S: Vectors<f64>>(self, simd: S) -> Moments {
        let (chunks, rest) = self.0.as_chunks::<SUMS>();
        let registers = SUMS / S::WIDTH; // at most 16
        let mut all = [simd.splat(0.0); SUMS];
        let (mut low, mut high) = ([simd.splat(f64::INFINITY); SUMS], [simd.splat(f64::NEG_INFINITY); SUMS]);
        for x in chunks {
            each!(i < registers => {
                let x = simd.load(&x[i * S::WIDTH..]);
                all[i] = simd.add(all[i], x);
                low[i] = simd.min(x, low[i]);
                high[i] = simd.max(x, high[i]);
            });
        }
        let (mut sums, mut min, mut max) = ([0.0; SUMS], [0.0; SUMS], [0.0; SUMS]);
        each!(i < registers => {
            let at = i * S::WIDTH;
            simd.store(all[i], &mut sums[at..]);
            simd.store(low[i], &mut min[at..]);
            simd.store(high[i], &mut max[at..]);
        });
        for (i, &x) in rest.iter().enumerate() {
            sums[i] += x;
            (min[i], max[i]) = (min[i].min(x), max[i].max(x));
        }
        let mean = sums.iter().sum::<f64>() / self.0.len().max(1) as f64;
        let (middle, mut all) = (simd.splat(mean), [simd.splat(0.0); SUMS]);
        for x in chunks {
            each!(i < registers => {
                let step = simd.sub(simd.load(&x[i * S::WIDTH..]), middle);
                all[i] = simd.add(all[i], simd.mul(step, step));
            });
        }
        let mut squares = [0.0; SUMS];
        each!(i < registers => { simd.store(all[i], &mut squares[i * S::WIDTH..]) });
        for (i, &x) in rest.iter().enumerate() {
            squares[i] += (x - mean) * (x - mean);
        }
        Moments {
            n: self.0.len() as u64,
            mean,
            squares: squares.iter().sum(),
            min: min.iter().fold(f64::INFINITY, |a, &b| a.min(b)),
            max: max.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)),
        }
    }
}

/// Move the numbers among some values to the front; returns how many there are.
fn numbers_first(values: &mut [f64]) -> usize {
    let mut n = 0;
    for i in 0..values.len() {
        if !values[i].is_nan() {
            values[n] = values[i];
            n += 1;
        }
    }
    n
}

/// Summary of a measure over the pairs of different sets.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Mean; NaN without a pair.
    pub mean: f64,
    /// Standard deviation with n - 1; NaN with less than two pairs.
    pub sd: f64,
    /// Smallest value; NaN without a pair.
    pub min: f64,
    /// Largest value; NaN without a pair.
    pub max: f64,
    /// Pairs that have a value.
    pub defined: u64,
    /// Pairs that have none: 0 / 0.
    pub undefined: u64,
}

impl Columns {
    /// Bands of sets that are the rows of one task.
    fn bands(&self) -> Result<Vec<Range<usize>>> {
        let n = self.n_sets;
        memory::collect((0..n.div_ceil(ROWS)).map(|i| i * ROWS..n.min((i + 1) * ROWS)), "the list of tasks")
    }

    /// A value of each pair into `out`.
    fn matrix<T, F>(&self, layout: Layout, out: &mut [T], interrupt: &Interrupt, fill: F) -> Result<()>
    where
        T: Copy + Send + Sync,
        F: Fn(Target<'_, T>) -> usize + Send + Sync,
    {
        let (n, large) = (self.n_sets, self.is_large());
        let bands = self.bands()?;
        let cuts = parallel::cuts(n, ROWS, |row| layout.row(row, n))?;
        parallel::fill(out, &cuts, large, interrupt, |task, out| {
            let rows = &bands[task];
            let mut counts = [0; ROWS * COLUMNS];
            for block in Block::of(rows, n) {
                self.block(&block, &mut counts, interrupt)?;
                fill(Target { columns: self, block: &block, counts: &counts, layout: Some(layout), out });
            }
            if layout == Layout::Square {
                for row in 1..rows.len() {
                    for column in 0..row {
                        out[row * n + rows.start + column] = out[column * n + rows.start + row];
                    }
                }
            }
            Ok(())
        })?;
        if layout == Layout::Square { mirror(out, n, large, interrupt) } else { Ok(()) }
    }

    /// Size of the intersection of each pair into `out`; on the diagonal the sizes of the sets.
    ///
    /// # Errors
    /// [`Error::memory`] or [`Error::interrupted`].
    pub fn intersections<T: Count>(&self, layout: Layout, out: &mut [T], interrupt: &Interrupt) -> Result<()> {
        self.matrix(layout, out, interrupt, |target| dispatch_narrow(Counts(target)))
    }

    /// A measure of each pair into `out`; NaN where it is 0 / 0.
    ///
    /// # Errors
    /// [`Error::memory`] or [`Error::interrupted`].
    pub fn agreement<T: Real>(
        &self,
        measure: Measure,
        layout: Layout,
        out: &mut [T],
        interrupt: &Interrupt,
    ) -> Result<()> {
        self.matrix(layout, out, interrupt, |target| dispatch_narrow(Values(measure, target)))
    }

    /// Summary of a measure over all pairs, of which no matrix is made.
    ///
    /// # Errors
    /// [`Error::memory`] or [`Error::interrupted`].
    pub fn summary(&self, measure: Measure, interrupt: &Interrupt) -> Result<Summary> {
        let undefined = self.undefined(measure);
        let moments = parallel::map(self.bands()?, self.is_large(), interrupt, |rows| {
            let (mut counts, mut values) = ([0; ROWS * COLUMNS], [0.0; ROWS * COLUMNS]);
            let mut moments = Moments::NONE;
            for block in Block::of(&rows, self.n_sets) {
                self.block(&block, &mut counts, interrupt)?;
                let target = Target { columns: self, block: &block, counts: &counts, layout: None, out: &mut values };
                let mut n = dispatch_narrow(Values(measure, target));
                if undefined > 0 {
                    n = numbers_first(&mut values[..n]);
                }
                moments = moments.and(dispatch_reals(MomentsOf(&values[..n])));
            }
            Ok(moments)
        })?;
        // In the order of the rows, whichever thread was first.
        let all = moments.into_iter().fold(Moments::NONE, Moments::and);
        let known = |value: f64| if all.n == 0 { f64::NAN } else { value };
        let constant = all.min >= all.max; // no rounding of the mean then
        Ok(Summary {
            mean: known(if constant { all.min } else { all.mean }),
            sd: match all.n {
                0 | 1 => f64::NAN,
                _ if constant => 0.0,
                n => (all.squares / (n - 1) as f64).sqrt(),
            },
            min: known(all.min),
            max: known(all.max),
            defined: all.n,
            undefined,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::error_sets::ErrorSets;
    use crate::rng::fill_normals;
    use crate::simd::{reals_on_every_level, words_on_every_level};

    /// Flags of `n` samples a set; samples with number 3 modulo 7 are in every set, those with 5 in none.
    fn flags(n_sets: usize, n: usize) -> Vec<u8> {
        let mut x = vec![0.0; n_sets * n];
        fill_normals(1, 2, 3, 0, &mut x);
        let flag = |(i, &x): (usize, &f64)| u8::from(i % n % 7 == 3 || (i % n % 7 != 5 && x > 0.4));
        x.iter().enumerate().map(flag).collect()
    }

    fn columns(flags: &[u8], n: usize, weights: Option<&[u32]>) -> Columns {
        let never = Interrupt::default();
        let sets = ErrorSets::new(flags, flags.len().checked_div(n).unwrap_or(2), n, &never).unwrap();
        sets.columns(weights, &never).unwrap()
    }

    fn both(flags: &[u8], n: usize, weights: Option<&[u32]>, i: usize, j: usize) -> u64 {
        let shared = (0..n).filter(|s| flags[i * n + s] & flags[j * n + s] == 1);
        shared.map(|s| weights.map_or(1, |w| u64::from(w[s]))).sum()
    }

    fn matrix(columns: &Columns, layout: Layout) -> Vec<u64> {
        let mut out = vec![u64::MAX; layout.len(columns.n_sets()).unwrap()];
        columns.intersections(layout, &mut out, &Interrupt::default()).unwrap();
        out
    }

    #[test]
    fn intersections_equal_the_definition() {
        for (n_sets, n) in [(1, 1), (2, 63), (3, 64), (8, 65), (9, 700), (33, 130), (97, 40), (70, 9000), (2, 0)] {
            let flags = flags(n_sets, n);
            let heavy: Vec<u32> = (0..n as u32).map(|s| s * s % 11 * (1 + s % 3 * 99_999_999)).collect();
            for weights in [None, Some(&heavy[..])] {
                let columns = columns(&flags, n, weights);
                let (square, condensed) = (matrix(&columns, Layout::Square), matrix(&columns, Layout::Condensed));
                let mut pairs = condensed.iter();
                for i in 0..n_sets {
                    for j in 0..n_sets {
                        let want = both(&flags, n, weights, i, j);
                        assert_eq!(square[i * n_sets + j], want, "{n_sets} {n} {i} {j}");
                        if i < j {
                            assert_eq!(pairs.next(), Some(&want));
                        }
                    }
                    assert_eq!(columns.sizes[i], square[i * (n_sets + 1)]);
                }
                assert_eq!(pairs.next(), None);
            }
        }
    }

    #[test]
    fn moments_are_the_same_on_every_path() {
        for n in [0, 1, 15, 16, 17, 100] {
            let values: Vec<f64> = (0..n).map(|i| f64::from(i * i % 37) / 7.0 - 1.0).collect();
            let mean = values.iter().sum::<f64>() / f64::from(n.max(1));
            let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let paths = reals_on_every_level(&MomentsOf(&values));
            for moments in &paths {
                assert_eq!(moments.n, values.len() as u64);
                assert!((moments.mean - mean).abs() < 1e-14 && (moments.squares - squares).abs() < 1e-12, "{n}");
                let range = [
                    values.iter().copied().fold(f64::INFINITY, f64::min),
                    values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ];
                assert_eq!([moments.min, moments.max].map(f64::to_bits), range.map(f64::to_bits));
                assert_eq!(
                    [moments.mean, moments.squares].map(f64::to_bits),
                    [paths[0].mean, paths[0].squares].map(f64::to_bits)
                );
            }
        }
    }

    #[test]
    fn only_samples_that_differ_are_compared() {
        let columns = columns(&flags(9, 700), 700, None);
        assert_eq!((columns.words, columns.always, columns.total), (500usize.div_ceil(64), 100, 700));
        let same = [[1, 0, 1]; 5].concat();
        let columns = self::columns(&same, 3, Some(&[5, 7, u32::MAX]));
        assert_eq!((columns.words, columns.always), (0, 5 + u64::from(u32::MAX)));
        assert_eq!(matrix(&columns, Layout::Condensed), [columns.always; 10]);
    }

    #[test]
    fn packed_bytes_are_the_same_sets() {
        let never = Interrupt::default();
        for n in [1, 7, 8, 63, 64, 65, 201] {
            let flags = flags(9, n);
            let bytes: Vec<u8> = flags
                .chunks(n)
                .flat_map(|row| row.chunks(8))
                .map(|eight| eight.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << (7 - i)))
                .collect();
            let (a, b) = (ErrorSets::new(&flags, 9, n, &never), ErrorSets::from_packed(&bytes, 9, n, &never));
            assert_eq!(a.unwrap().bits, b.unwrap().bits);
        }
        let error = ErrorSets::from_packed(&[0, 0, 0, 1], 2, 15, &never).unwrap_err();
        assert!(error.to_string().starts_with("error_sets[1, 1] has bits set behind sample 15"));
    }

    #[test]
    fn samples_are_counted() {
        let never = Interrupt::default();
        for (n_sets, n) in [(9, 700), (300, 65), (1, 1), (0, 5), (4, 0)] {
            let flags = flags(n_sets, n);
            let counts = ErrorSets::new(&flags, n_sets, n, &never).unwrap().sample_counts(&never).unwrap();
            assert_eq!(counts.len(), n);
            for (s, &count) in counts.iter().enumerate() {
                assert_eq!(count, (0..n_sets).map(|i| u32::from(flags[i * n + s])).sum::<u32>());
            }
        }
    }

    #[derive(Clone)]
    struct Counted(Vec<Lanes>, Range<usize>);
    impl WordKernel for Counted {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<u64> {
            let mut counts = vec![0; ROWS * COLUMNS];
            let (words, width) = (self.1, self.0.len() / 2);
            let [rows, columns] = [&self.0; 2];
            Intersections { rows, columns, width, words, digit: 2, triangle: false, counts: &mut counts }.run(simd);
            counts
        }
    }

    #[test]
    fn every_path_gives_the_same_bits() {
        for words in [1, 7, 8, 12, 31] {
            let panels = ErrorSets::new(&flags(16, 64 * words), 16, 64 * words, &Interrupt::default()).unwrap().bits;
            for range in [0..words, words / 2..words] {
                let kernel = Counted(panels.clone(), range.clone());
                for counts in words_on_every_level(&kernel) {
                    for i in 0..16 {
                        for j in 0..16 {
                            let lane = |i: usize, w: usize| panels[i / 8 * words + w].0[i % 8];
                            let want: u32 = range.clone().map(|w| (lane(i, w) & lane(j, w)).count_ones()).sum();
                            assert_eq!(counts[COLUMNS * i + j], u64::from(4 * want));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn measures_of_a_known_pair() {
        let columns = columns(&[1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0], 8, None); // 2 of 3 and 3 of 8
        let want = [2.0 / 4.0, 4.0 / 6.0, (8.0 * 2.0 - 9.0) / 15.0, 2.0 / 8.0, 7.0 / 15.0, 7.0 / 9.0, 6.0 / 8.0];
        for ((name, measure), want) in Measure::ALL.into_iter().zip(want) {
            let mut out = [0.0f64; 1];
            columns.agreement(measure, Layout::Condensed, &mut out, &Interrupt::default()).unwrap();
            assert!((out[0] - want).abs() < 1e-15, "{name} {out:?}");
        }
    }

    #[test]
    fn pairs_without_a_value_are_counted() {
        // two empty sets, one full, two others
        let flags = [[0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 1]].concat();
        for (columns, n_sets) in [(columns(&flags, 3, None), 5usize), (columns(&[], 0, None), 2)] {
            for (name, measure) in Measure::ALL {
                let mut out = vec![0.0; n_sets * (n_sets - 1) / 2];
                columns.agreement(measure, Layout::Condensed, &mut out, &Interrupt::default()).unwrap();
                let nan = out.iter().filter(|x: &&f64| x.is_nan()).count() as u64;
                let summary = columns.summary(measure, &Interrupt::default()).unwrap();
                assert_eq!((columns.undefined(measure), summary.undefined), (nan, nan), "{name}");
                assert_eq!(summary.defined, out.len() as u64 - nan);
            }
        }
    }

    #[test]
    fn the_summary_is_that_of_the_matrix() {
        for (n_sets, n) in [(2, 10), (3, 300), (64, 100), (131, 70)] {
            let columns = columns(&flags(n_sets, n), n, None);
            for (name, measure) in Measure::ALL {
                let mut values = vec![0.0; n_sets * (n_sets - 1) / 2];
                columns.agreement(measure, Layout::Condensed, &mut values, &Interrupt::default()).unwrap();
                let summary = columns.summary(measure, &Interrupt::default()).unwrap();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let squares = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
                let sd = (squares / (values.len() as f64 - 1.0)).sqrt();
                let lost = f64::EPSILON * values.len() as f64; // by the plain sums of this test
                assert!((summary.mean - mean).abs() <= lost, "{name}");
                assert!((summary.sd - sd).abs() <= lost || (summary.sd.is_nan() && values.len() == 1), "{name}");
                let range = values.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
                assert_eq!((summary.min.to_bits(), summary.max.to_bits()), (range.0.to_bits(), range.1.to_bits()));
            }
        }
    }

    #[test]
    fn sets_that_are_all_alike_do_not_vary() {
        let columns = columns(&[[1, 1, 0], [1, 0, 1], [0, 1, 1]].concat(), 3, None);
        let summary = columns.summary(Measure::Jaccard, &Interrupt::default()).unwrap();
        let third: f64 = 1.0 / 3.0;
        assert_eq!((summary.mean.to_bits(), summary.sd.to_bits()), (third.to_bits(), 0));
    }

    #[test]
    fn bad_values_are_named() {
        let never = Interrupt::default();
        let message = |error: Result<ErrorSets>| error.unwrap_err().to_string();
        assert!(message(ErrorSets::new(&[0u8, 1, 1, 2], 2, 2, &never)).starts_with("error_sets[1, 1] is 2: pass 1"));
        assert!(message(ErrorSets::new(&[0, -1i64], 1, 2, &never)).starts_with("error_sets[0, 1] is -1"));
        assert!(message(ErrorSets::new(&[0.5f32], 1, 1, &never)).starts_with("error_sets[0, 0] is 0.5"));
        assert_eq!(
            message(ErrorSets::new(&[1.0, f64::NAN], 2, 1, &never)),
            "error_sets[1, 0] is NaN: drop or impute it first"
        );
        let sets = ErrorSets::new(&[1u64, 0], 1, 2, &never).unwrap();
        let error = sets.columns(Some(&[1]), &never).unwrap_err();
        assert_eq!(error.to_string(), "sample_weight must have one entry a sample, 2; got 1");
    }

    #[test]
    fn work_can_be_interrupted() {
        let (columns, stop) = (columns(&flags(9, 700), 700, None), Interrupt::default());
        stop.raise();
        let stopped = Some(Error::interrupted());
        assert_eq!(columns.intersections(Layout::Square, &mut [0u32; 81], &stop).err(), stopped);
        assert_eq!(columns.summary(Measure::Kappa, &stop).err(), stopped);
        assert_eq!(ErrorSets::new(&[0u8; 9], 3, 3, &stop).err(), stopped);
    }
}
