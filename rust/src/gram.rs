//! Kernels between instances, and the Gaussian kernel matrix.

use crate::each::each;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, Real, RealKernel, Vectors, dispatch_narrow, dispatch_reals};
use crate::tiles::{Differences, Form, Panels, Power, Products, QUAD, Quads, ROWS, Rows, TASK, tile};

use std::ops::Range;

/// Pairs times features from which threads pay.
pub(crate) const LARGE: usize = 1 << 18;
/// The largest [`Real::LANES`].
pub(crate) const WIDEST: usize = 32;
/// Rows of a block on the diagonal of a symmetric matrix, which is computed whole.
pub(crate) const BLOCK: usize = 64;

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
            return Err(Error::range(format_args!("gamma must be positive and finite; got {gamma}")));
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
                    return Err(Error::range(format_args!("coef0 must be finite; got {coef0}")));
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
        Some(i) => Err(Error::not_finite(argument, format_args!("[{}, {}]", i / d, i % d), x[i].to_f64())),
    }
}

/// Rows of the kernel matrix, at the columns of some panels.
struct MatrixRows<'a, T, F> {
    quads: &'a Quads<T>,
    /// Quad of the first row of `out`.
    first: usize,
    panels: &'a Panels<T>,
    piece: Range<usize>,
    form: F,
    out: &'a mut [T],
}

impl<T: Real, F: Form<T>> MatrixRows<'_, T, F> {
    /// `H` quads from row `at` of `out` on.
    #[inline(always)]
    fn some<S: Vectors<T>, const H: usize>(&mut self, simd: S, at: usize) {
        let (n, n_rows) = (self.panels.n, self.out.len() / self.panels.n);
        let rows = self.quads.some::<H>(self.first + at / QUAD);
        for i in self.piece.clone() {
            for lane in (0..T::LANES).step_by(2 * S::WIDTH) {
                let values = tile(simd, self.form, rows, self.panels.get(i), lane);
                let column = i * T::LANES + lane;
                if at + H * QUAD <= n_rows && column + 2 * S::WIDTH <= n {
                    each!(S: h < H => {
                        each!(S: w < QUAD => {
                            let out = &mut self.out[(at + h * QUAD + w) * n + column..];
                            simd.store(values[h][w][0], out);
                            simd.store(values[h][w][1], &mut out[S::WIDTH..]);
                        });
                    });
                } else if column < n {
                    // rows that repeat the last one, and columns that do, go nowhere
                    let all = &mut [[T::default(); WIDEST]; 2 * QUAD][..];
                    each!(S: h < H => {
                        each!(S: w < QUAD => {
                            simd.store(values[h][w][0], &mut all[h * QUAD + w]);
                            simd.store(values[h][w][1], &mut all[h * QUAD + w][S::WIDTH..]);
                        });
                    });
                    for (values, out) in all.iter().take(H * QUAD).zip(self.out[at * n..].chunks_exact_mut(n)) {
                        let out = &mut out[column..];
                        let many = out.len().min(2 * S::WIDTH);
                        out[..many].copy_from_slice(&values[..many]);
                    }
                }
            }
        }
    }
}

impl<T: Real, F: Form<T>> RealKernel<T> for MatrixRows<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<T>>(mut self, simd: S) {
        // all panels of the piece pass by some rows, so that long stretches of a row are written
        let n_rows = self.out.len() / self.panels.n;
        for at in (0..n_rows).step_by(if S::MANY { 2 * QUAD } else { QUAD }) {
            if S::MANY { self.some::<S, 2>(simd, at) } else { self.some::<S, 1>(simd, at) }
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
pub(crate) fn mirror<T: Real>(out: &mut [T], n: usize, interrupt: &Interrupt) -> Result<()> {
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
            dispatch_narrow(Transpose {
                from,
                from_columns: n,
                corner: [0, row],
                to,
                to_columns: n,
                column,
                width: half,
            });
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
    let chosen = Chosen::new(InstanceKernel::Rbf { gamma }, [x, y.unwrap_or(&[])], d.max(1))?;
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
        let quads = Quads::new(&rows, first..first + n_rows)?;
        // however wide the instances, no piece of the work between two looks at the interrupt is much more than a task
        let step = (TASK / (T::LANES * d)).next_multiple_of(ROWS).clamp(ROWS, BLOCK);
        for piece in panels.pieces(first_panel, n_rows.min(step), usize::MAX) {
            for (i, out) in out.chunks_mut(step * panels.n).enumerate() {
                interrupt.check()?;
                let (quads, first, panels, piece) = (&quads, i * step / QUAD, &panels, piece.clone());
                match chosen {
                    Chosen::Differences(form) => {
                        dispatch_reals(MatrixRows { quads, first, panels, piece, form, out });
                    }
                    // the kernel is no power
                    Chosen::Products(_) | Chosen::Power(_) => {
                        dispatch_reals(MatrixRows { quads, first, panels, piece, form: Products, out });
                    }
                }
            }
        }
        Ok(())
    })?;
    if half { mirror(out, rows.len(), interrupt) } else { Ok(()) }
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
            let (quads, panels, form) = (&Quads::new(&rows, 0..37).unwrap(), &panels, self.1);
            let mut out = vec![T::default(); 37 * 37];
            let piece = 0..panels.len();
            MatrixRows { quads, first: 0, panels, piece, form, out: &mut out }.run(simd);
            let mut turned = out.clone();
            let to = &mut turned;
            Transpose { from: &out, from_columns: 37, corner: [0, 0], to, to_columns: 37, column: 0, width: 37 }.run();
            out.extend(turned);
            out.iter().map(|v| v.to_f64().to_bits()).collect()
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
        let (never, d) = (Interrupt::default(), WIDE / 8 + 1);
        for n in [1, 63, 64, 65, 127, 128, 200, 321] {
            let x = normals(n * d);
            let (mut own, mut cross) = (vec![0.0; n * n], vec![0.0; n * n]);
            rbf_gram(&x, None, d, 0.02, &mut own, &never).unwrap();
            rbf_gram(&x, Some(&x), d, 0.02, &mut cross, &never).unwrap();
            assert!(own.iter().zip(&cross).all(|(a, b)| a.to_bits() == b.to_bits()), "{n}");
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
    }
}
