//! Gaussian (RBF) kernels between instances, and their sums over pairs of bags.
//!
//! k(x, y) = exp(-gamma |x - y|^2) from exact differences, so that k(x, x) = 1. Sums over bags never build the matrix of
//! all instance pairs.

use std::ops::Range;

use crate::bags::Bags;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, Real, dispatch};

/// Columns computed side by side.
const LANES: usize = 16;
/// Rows that share a load of the columns.
const ROWS: usize = 2;
/// Pairs times features from which threads pay.
const LARGE: usize = 1 << 18;
/// Pairs times features of one task, and between two looks at the interrupt.
const TASK: usize = 1 << 22;

/// Instances in groups of `LANES`, feature after feature; the last group repeats its last instance.
struct Panels<T> {
    values: Vec<T>,
    n: usize,
    d: usize,
}

impl<T: Real> Panels<T> {
    fn new(x: &[T], d: usize, interrupt: &Interrupt) -> Result<Self> {
        let n = x.len() / d;
        let mut values = memory::room(n.next_multiple_of(LANES).saturating_mul(d), "a copy of the instances")?;
        for first in (0..n).step_by(LANES) {
            interrupt.check()?;
            for feature in 0..d {
                values.extend((first..first + LANES).map(|i| x[i.min(n - 1) * d + feature]));
            }
        }
        Ok(Self { values, n, d })
    }

    fn len(&self) -> usize {
        self.n.div_ceil(LANES)
    }

    /// The panels from `first` on, in pieces that make up about one [`TASK`] with that many rows.
    fn pieces(&self, first: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
        let (end, step) = (self.len(), (TASK / (rows.max(1) * LANES * self.d)).max(1));
        (first..end).step_by(step).map(move |piece| piece..(piece + step).min(end))
    }

    #[inline(always)]
    fn panel(&self, i: usize) -> &[T] {
        &self.values[i * self.d * LANES..(i + 1) * self.d * LANES]
    }
}

/// Kernel values of `R` rows with the columns of a panel.
#[inline(always)]
fn values<T: Real, const R: usize>(rows: [&[T]; R], panel: &[T], minus_gamma: T) -> [[T; LANES]; R] {
    let mut square = [[T::default(); LANES]; R];
    for (feature, column) in panel.chunks_exact(LANES).enumerate() {
        for r in 0..R {
            let x = rows[r][feature];
            for lane in 0..LANES {
                let difference = x - column[lane];
                square[r][lane] += difference * difference;
            }
        }
    }
    for row in &mut square {
        for lane in row {
            *lane = T::exp_nonpositive(minus_gamma * *lane);
        }
    }
    square
}

/// Rows of the kernel matrix, at the columns of some panels.
struct MatrixRows<'a, T> {
    x: &'a [T],
    panels: &'a Panels<T>,
    piece: Range<usize>,
    minus_gamma: T,
    out: &'a mut [T],
}

impl<T: Real> Kernel for MatrixRows<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (n, d) = (self.panels.n, self.panels.d);
        for (rows, out) in self.x.chunks(ROWS * d).zip(self.out.chunks_mut(ROWS * n)) {
            let single = rows.len() == d;
            let pair = [&rows[..d], if single { &rows[..d] } else { &rows[d..] }];
            for i in self.piece.clone() {
                let both = values(pair, self.panels.panel(i), self.minus_gamma);
                let columns = i * LANES..((i + 1) * LANES).min(n);
                for (values, out) in both.iter().zip(out.chunks_mut(n)) {
                    out[columns.clone()].copy_from_slice(&values[..columns.len()]);
                }
            }
        }
    }
}

/// For each column of some panels, the sum of the kernel over some rows, added to `sums`.
struct ColumnSums<'a, T> {
    rows: &'a [T],
    panels: &'a Panels<T>,
    piece: Range<usize>,
    minus_gamma: T,
    sums: &'a mut [T],
}

impl<T: Real> Kernel for ColumnSums<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let d = self.panels.d;
        for i in self.piece {
            let panel = self.panels.panel(i);
            let mut sum = [T::default(); LANES];
            sum.copy_from_slice(&self.sums[i * LANES..(i + 1) * LANES]);
            let rows = self.rows.chunks_exact(ROWS * d);
            let rest = rows.remainder();
            for pair in rows {
                for row in values([&pair[..d], &pair[d..]], panel, self.minus_gamma) {
                    for lane in 0..LANES {
                        sum[lane] += row[lane];
                    }
                }
            }
            if !rest.is_empty() {
                let [row] = values([rest], panel, self.minus_gamma);
                for lane in 0..LANES {
                    sum[lane] += row[lane];
                }
            }
            self.sums[i * LANES..(i + 1) * LANES].copy_from_slice(&sum);
        }
    }
}

/// For each column from panel `first` on, the sum of the kernel over the rows of one bag.
///
/// However large the bag, no piece of the work between two looks at the interrupt is much more than a [`TASK`]; how it
/// is cut changes no bit, since a column adds up its rows in their order.
fn column_sums<T: Real>(
    bag: &[T],
    panels: &Panels<T>,
    first: usize,
    minus_gamma: T,
    sums: &mut [T],
    interrupt: &Interrupt,
) -> Result<()> {
    let d = panels.d;
    let n_rows = (TASK / (LANES * d)).next_multiple_of(ROWS).clamp(ROWS, (bag.len() / d).max(ROWS));
    sums[first * LANES..].fill(T::default());
    for piece in panels.pieces(first, n_rows) {
        for rows in bag.chunks(n_rows * d) {
            interrupt.check()?;
            dispatch(ColumnSums { rows, panels, piece: piece.clone(), minus_gamma, sums });
        }
    }
    Ok(())
}

fn check_gamma(gamma: f64) -> Result<()> {
    if gamma > 0.0 && gamma.is_finite() {
        Ok(())
    } else {
        Err(Error::Range(format!("gamma must be positive and finite; got {gamma}")))
    }
}

/// -gamma in the precision of the instances, never rounded to 0 or infinity: either times the other would be NaN.
fn minus<T: Real>(gamma: f64) -> T {
    T::from_f64(-gamma.clamp(T::SMALLEST, T::LARGEST))
}

fn check_finite<T: Real>(argument: &str, x: &[T], d: usize) -> Result<()> {
    match x.iter().position(|v| !v.to_f64().is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::NotFinite {
            argument: argument.to_owned(),
            position: format!("[{}, {}]", i / d, i % d),
            value: x[i].to_string(),
        }),
    }
}

/// Kernel matrix between the rows of `x` and of `y` (those of `x` when None), row-major into `out`.
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
    check_gamma(gamma)?;
    check_finite("X", x, d)?;
    if let Some(y) = y {
        check_finite("Y", y, d)?;
    }
    if x.is_empty() || y.is_some_and(<[T]>::is_empty) {
        return Ok(());
    }
    let panels = Panels::new(y.unwrap_or(x), d, interrupt)?;
    let (rows, columns) = (x.len() / d, panels.n);
    let step = (TASK / (columns * d)).max(1).next_multiple_of(ROWS);
    let cuts = parallel::cuts(rows, step, |row| row * columns)?;
    let minus_gamma = minus::<T>(gamma);
    parallel::fill(out, &cuts, (rows * columns).saturating_mul(d) > LARGE, interrupt, |i, out| {
        let rows = &x[i * step * d..(i * step * d + out.len() / columns * d)];
        for piece in panels.pieces(0, rows.len() / d) {
            interrupt.check()?;
            dispatch(MatrixRows { x: rows, panels: &panels, piece, minus_gamma, out });
        }
        Ok(())
    })
}

/// Sum of the kernel over all instance pairs of each pair of bags: (bags of `a`, bags of `b`), row-major.
///
/// Without `b` the pairs are those of `a` with itself, and each is computed once.
///
/// # Errors
/// As [`rbf_gram`].
pub fn rbf_bag_sums<T: Real>(
    a: &Bags<'_, T>,
    b: Option<&Bags<'_, T>>,
    gamma: f64,
    out: &mut [f64],
    interrupt: &Interrupt,
) -> Result<()> {
    check_gamma(gamma)?;
    let d = a.n_features();
    check_finite("instances", a.instances(), d)?;
    if let Some(b) = b {
        check_finite("other_instances", b.instances(), d)?;
    }
    let columns = b.unwrap_or(a);
    if a.is_empty() || columns.is_empty() {
        return Ok(());
    }
    let symmetric = b.is_none();
    let panels = Panels::new(columns.instances(), d, interrupt)?;
    let minus_gamma = minus::<T>(gamma);
    let (n_rows, n_columns) = (a.len(), columns.len());
    let per_bag = (a.n_instances() / n_rows).max(1).saturating_mul(columns.n_instances()).saturating_mul(d);
    let step = (TASK / per_bag.max(1)).max(1);
    let cuts = parallel::cuts(n_rows, step, |bag| bag * n_columns)?;
    parallel::fill(out, &cuts, per_bag.saturating_mul(n_rows) > LARGE, interrupt, |task, out| {
        let mut sums = memory::filled(T::default(), panels.len() * LANES, "the sums of the columns")?;
        for (bag, out) in (task * step..).zip(out.chunks_exact_mut(n_columns)) {
            let first = if symmetric { bag } else { 0 };
            let first_panel = columns.rows(first).start / LANES;
            column_sums(a.bag(bag), &panels, first_panel, minus_gamma, &mut sums, interrupt)?;
            for (other, out) in out.iter_mut().enumerate().skip(first) {
                *out = sums[columns.rows(other)].iter().map(|v| v.to_f64()).sum();
            }
        }
        Ok(())
    })?;
    if symmetric {
        for row in 1..n_rows {
            for column in 0..row {
                out[row * n_rows + column] = out[column * n_rows + row];
            }
        }
    }
    Ok(())
}

/// Sum of the kernel over all instance pairs inside each bag.
///
/// # Errors
/// As [`rbf_gram`].
pub fn rbf_bag_diagonal<T: Real>(bags: &Bags<'_, T>, gamma: f64, interrupt: &Interrupt) -> Result<Vec<f64>> {
    check_gamma(gamma)?;
    let d = bags.n_features();
    check_finite("instances", bags.instances(), d)?;
    let minus_gamma = minus::<T>(gamma);
    let step = 64;
    let cuts = parallel::cuts(bags.len(), step, |bag| bag)?;
    let mut out = memory::filled(0.0, bags.len(), "the sum of each bag")?;
    parallel::fill(&mut out, &cuts, bags.instances().len() > LARGE, interrupt, |block, out| {
        let mut sums = Vec::new();
        for (i, out) in (block * step..).zip(out) {
            let bag = bags.bag(i);
            if bag.is_empty() {
                continue;
            }
            let panels = Panels::new(bag, d, interrupt)?;
            let width = panels.len() * LANES;
            if sums.len() < width {
                sums = memory::filled(T::default(), width, "the sums of the columns")?;
            }
            column_sums(bag, &panels, 0, minus_gamma, &mut sums[..width], interrupt)?;
            *out = sums[..panels.n].iter().map(|v| v.to_f64()).sum();
        }
        Ok(())
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::fill_normals;
    use crate::simd::on_every_level;

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

    #[test]
    fn bag_sums_equal_the_definition() {
        let d = 3;
        let x = normals(40 * d);
        let offsets = [0, 1, 4, 21, 22, 40];
        let bags = Bags::new(&x, d, &offsets).unwrap();
        let never = Interrupt::default();
        let (mut own, mut cross) = (vec![0.0; 25], vec![0.0; 25]);
        rbf_bag_sums(&bags, None, 0.2, &mut own, &never).unwrap();
        rbf_bag_sums(&bags, Some(&bags), 0.2, &mut cross, &never).unwrap();
        let diagonal = rbf_bag_diagonal(&bags, 0.2, &never).unwrap();
        for i in 0..5 {
            for j in 0..5 {
                let mut want = 0.0;
                for a in bags.bag(i).chunks(d) {
                    for b in bags.bag(j).chunks(d) {
                        want += direct(a, b, 0.2);
                    }
                }
                assert!((own[5 * i + j] - want).abs() < 1e-12 && (cross[5 * i + j] - want).abs() < 1e-12);
            }
            assert!((own[6 * i] - diagonal[i]).abs() < 1e-12);
        }
    }

    #[derive(Clone)]
    struct Block;
    impl Kernel for Block {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run(self) -> Vec<u64> {
            let x = normals(37 * 5);
            let panels = Panels::new(&x, 5, &Interrupt::default()).unwrap();
            let mut out = vec![0.0; 37 * 37];
            MatrixRows { x: &x, panels: &panels, piece: 0..3, minus_gamma: -0.3, out: &mut out }.run();
            out.iter().map(|v| v.to_bits()).collect()
        }
    }

    #[test]
    fn every_path_gives_the_same_bits() {
        assert!(on_every_level(&Block).windows(2).all(|w| w[0] == w[1]));
    }

    #[test]
    fn cutting_a_large_bag_changes_no_bit() {
        let never = Interrupt::default();
        // rows are cut at two for the wide bag, panels one by one; the narrow bag is cut into panels only
        for (n, d) in [(5, 200_000), (700, 3)] {
            let x = normals(n * d);
            let minus_gamma = -0.5 / d as f64;
            let panels = Panels::new(&x, d, &never).unwrap();
            let mut whole = vec![0.0; panels.len() * LANES];
            let mut cut = whole.clone();
            let all = 0..panels.len();
            dispatch(ColumnSums { rows: &x, panels: &panels, piece: all, minus_gamma, sums: &mut whole });
            column_sums(&x, &panels, 0, minus_gamma, &mut cut, &never).unwrap();
            assert!(whole.iter().zip(&cut).all(|(a, b)| a.to_bits() == b.to_bits()));
            let mut pieces = vec![0.0; whole.len()];
            for rows in x.chunks(2 * d) {
                for i in 0..panels.len() {
                    dispatch(ColumnSums { rows, panels: &panels, piece: i..i + 1, minus_gamma, sums: &mut pieces });
                }
            }
            assert!(whole.iter().zip(&pieces).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }

    #[test]
    fn large_bags_can_be_interrupted() {
        let (x, stop) = (normals(64), Interrupt::default());
        let bags = Bags::new(&x, 2, &[0, 32]).unwrap();
        stop.raise();
        assert_eq!(rbf_bag_sums(&bags, None, 1.0, &mut [0.0], &stop), Err(Error::Interrupted));
        assert_eq!(rbf_bag_diagonal(&bags, 1.0, &stop), Err(Error::Interrupted));
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
    }
}
