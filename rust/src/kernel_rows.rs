//! Rows of a kernel matrix that is too large to keep whole, or is there already.
//!
//! Solvers look at few rows often: those are kept, up to a given number of bytes, and the others computed again.

use crate::each::each;
use crate::error::{Error, Result};
use crate::gram::{Chosen, InstanceKernel, LARGE, check_finite, with_form};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, Real, RealKernel, Vectors, dispatch, dispatch_reals};
use crate::tiles::{Form, Panels, Products, QUAD, Quads, ROWS, Rows, TASK, tile};

/// Instances of a panel.
const LANES: usize = <f64 as Real>::LANES;

/// Rows are padded with zeros to a multiple of this.
pub(crate) const PADDING: usize = 64;

/// Slot of a row that is not kept.
const NOWHERE: u32 = u32::MAX;

const WHAT: &str = "the kept rows of the kernel";

/// Values of one row of instances with all panels.
struct OneRow<'a, F> {
    rows: &'a Rows<'a, f64>,
    row: usize,
    panels: &'a Panels<f64>,
    form: F,
    out: &'a mut [f64],
}

impl<F: Form<f64>> RealKernel<f64> for OneRow<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<f64>>(self, simd: S) {
        for i in 0..self.panels.len() {
            let out = &mut self.out[i * LANES..(i + 1) * LANES];
            for lane in (0..LANES).step_by(2 * S::WIDTH) {
                let [[values]] = tile(simd, self.form, [self.rows.one(self.row)], self.panels.get(i), lane);
                simd.store(values[0], &mut out[lane..]);
                simd.store(values[1], &mut out[lane + S::WIDTH..]);
            }
        }
    }
}

#[derive(Debug)]
enum Source {
    Instances { rows: Rows<'static, f64>, panels: Panels<f64>, chosen: Chosen<f64> },
    Matrix(Vec<f64>),
}

/// A symmetric kernel matrix of which some rows are kept.
#[derive(Debug)]
pub struct KernelRows {
    source: Source,
    n: usize,
    padded: usize,
    /// Rows that may be kept.
    capacity: usize,
    /// Kept rows, in pieces of one row.
    slots: Vec<Vec<f64>>,
    /// The row in each slot, and whether it was asked for since the hand last passed.
    held: Vec<(usize, bool)>,
    /// Slot of each row.
    slot_of: Vec<u32>,
    /// Next slot that is looked at when a row has to go.
    hand: usize,
}

impl KernelRows {
    /// Kernel between the rows of `x`, of which about `bytes` are kept.
    ///
    /// # Errors
    /// [`Error`] when a parameter is out of range, a value is not finite or memory runs out.
    pub fn of_instances(
        x: Vec<f64>,
        d: usize,
        kernel: InstanceKernel,
        bytes: usize,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let chosen = Chosen::new(kernel, [&x, &[]], d.max(1))?;
        check_finite("instances", &x, d.max(1))?;
        let n = x.len() / d.max(1);
        let panels = Panels::new(&x, d.max(1), chosen.scale(), interrupt)?;
        let rows = Rows::owned(x, d.max(1), chosen.scale())?;
        Self::new(Source::Instances { rows, panels, chosen }, n, bytes)
    }

    /// The kernel matrix itself, row-major; the caller vouches for its symmetry.
    ///
    /// # Errors
    /// [`Error`] when the matrix is not square, a value is not finite or memory runs out.
    pub fn of_matrix(matrix: &[f64], n: usize) -> Result<Self> {
        if n.checked_mul(n) != Some(matrix.len()) {
            return Err(Error::range(format_args!("matrix must be square; got {n} rows of {} values", matrix.len())));
        }
        check_finite("matrix", matrix, n.max(1))?;
        let padded = n.next_multiple_of(PADDING);
        let mut values = memory::filled(0.0, n.saturating_mul(padded), "a copy of the kernel matrix")?;
        for (to, from) in values.chunks_exact_mut(padded.max(1)).zip(matrix.chunks_exact(n.max(1))) {
            to[..n].copy_from_slice(from);
        }
        Self::new(Source::Matrix(values), n, 0)
    }

    fn new(source: Source, n: usize, bytes: usize) -> Result<Self> {
        if n >= NOWHERE as usize {
            return Err(Error::range(format_args!("there may be at most {} instances; got {n}", NOWHERE - 1)));
        }
        let padded = n.next_multiple_of(PADDING);
        Ok(Self {
            source,
            n,
            padded,
            capacity: (bytes / (8 * padded.max(1))).clamp(2, n.max(2)),
            slots: Vec::new(),
            held: Vec::new(),
            slot_of: memory::filled(NOWHERE, n, WHAT)?,
            hand: 0,
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Length of the rows with their padding.
    pub(crate) fn padded(&self) -> usize {
        self.padded
    }

    /// Kernel of row `i` with itself.
    pub(crate) fn diagonal(&self, i: usize) -> f64 {
        match &self.source {
            Source::Instances { rows, chosen: Chosen::Power(power), .. } => power.of(2.0 * rows.half(i)),
            // that of the Gaussian kernel is 1 to the last bit
            Source::Instances { .. } => 1.0,
            Source::Matrix(values) => values[i * self.padded + i],
        }
    }

    /// Row `i`, padded.
    pub(crate) fn row(&mut self, i: usize) -> Result<&[f64]> {
        self.fetch(i, usize::MAX)?;
        Ok(self.fetched(i))
    }

    /// Rows `i` and `j`, padded.
    pub(crate) fn two(&mut self, i: usize, j: usize) -> Result<(&[f64], &[f64])> {
        self.fetch(i, usize::MAX)?;
        self.fetch(j, i)?;
        Ok((self.fetched(i), self.fetched(j)))
    }

    fn fetched(&self, i: usize) -> &[f64] {
        match &self.source {
            Source::Matrix(values) => &values[i * self.padded..(i + 1) * self.padded],
            Source::Instances { .. } => &self.slots[self.slot_of[i] as usize],
        }
    }

    /// Make sure that row `i` is kept, and row `other` stays if it is.
    fn fetch(&mut self, i: usize, other: usize) -> Result<()> {
        let Source::Instances { rows, panels, chosen } = &self.source else { return Ok(()) };
        if self.slot_of[i] != NOWHERE {
            self.held[self.slot_of[i] as usize].1 = true;
            return Ok(());
        }
        let slot = if self.slots.len() < self.capacity {
            memory::reserve(&mut self.slots, 1, WHAT)?;
            memory::reserve(&mut self.held, 1, WHAT)?;
            self.slots.push(memory::filled(0.0, self.padded, WHAT)?);
            self.held.push((i, true));
            self.slots.len() - 1
        } else {
            // the first row that nobody asked for since the hand last came by
            loop {
                let slot = self.hand;
                self.hand = (self.hand + 1) % self.slots.len();
                let (row, asked) = &mut self.held[slot];
                if *row != other && !std::mem::take(asked) {
                    break slot;
                }
            }
        };
        if self.held[slot].0 != i {
            self.slot_of[self.held[slot].0] = NOWHERE;
        }
        self.held[slot] = (i, true);
        self.slot_of[i] = slot as u32;
        let out = &mut self.slots[slot];
        with_form!(*chosen, |form| dispatch_reals(OneRow { rows, row: i, panels, form, out }));
        // lanes beyond the last instance repeat it
        out[self.n..].fill(0.0);
        Ok(())
    }

    /// The matrix times a vector, one value a row.
    ///
    /// # Errors
    /// [`Error`] when memory runs out or on interrupt.
    pub fn times(&mut self, coefficients: &[f64], interrupt: &Interrupt) -> Result<Vec<f64>> {
        if coefficients.len() != self.n {
            let (first, second) = ("coefficients", "the rows of the kernel");
            return Err(Error::length(first, coefficients.len(), second, self.n));
        }
        check_coefficients(coefficients)?;
        let mut sums = memory::filled(0.0, self.padded, "the products")?;
        for (i, &coefficient) in coefficients.iter().enumerate() {
            interrupt.check()?;
            if coefficient != 0.0 {
                dispatch(Add { sums: &mut sums, row: self.row(i)?, coefficient });
            }
        }
        sums.truncate(self.n);
        Ok(sums)
    }
}

fn check_coefficients(coefficients: &[f64]) -> Result<()> {
    match coefficients.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::not_finite("coefficients", format_args!("[{i}]"), coefficients[i])),
    }
}

/// Adds a multiple of a row.
pub(crate) struct Add<'a> {
    pub(crate) sums: &'a mut [f64],
    pub(crate) row: &'a [f64],
    pub(crate) coefficient: f64,
}

impl Kernel for Add<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (sum, &value) in self.sums.iter_mut().zip(self.row) {
            *sum += self.coefficient * value;
        }
    }
}

/// Sums over the columns.
struct Weighted<'a, F> {
    quads: &'a Quads<f64>,
    panels: &'a Panels<f64>,
    coefficients: &'a [f64],
    form: F,
    out: &'a mut [f64],
}

impl<F: Form<f64>> Weighted<'_, F> {
    /// Sums of `H` quads of rows from `quad` on, lane by lane, whatever the width of a register.
    #[inline(always)]
    fn some<S: Vectors<f64>, const H: usize>(&mut self, simd: S, quad: usize) {
        let rows = self.quads.some::<H>(quad);
        let mut sums = [0.0; ROWS * LANES];
        for i in 0..self.panels.len() {
            for lane in (0..LANES).step_by(2 * S::WIDTH) {
                let values = tile(simd, self.form, rows, self.panels.get(i), lane);
                let low = simd.load(&self.coefficients[i * LANES + lane..]);
                let high = simd.load(&self.coefficients[i * LANES + lane + S::WIDTH..]);
                each!(S: h < H => {
                    each!(S: w < QUAD => {
                        let sums = &mut sums[(h * QUAD + w) * LANES + lane..];
                        let [a, b] = [simd.load(sums), simd.load(&sums[S::WIDTH..])];
                        simd.store(simd.mul_add(values[h][w][0], low, a), sums);
                        simd.store(simd.mul_add(values[h][w][1], high, b), &mut sums[S::WIDTH..]);
                    });
                });
            }
        }
        // where a quad is not full its last sums go nowhere
        for (out, sums) in self.out[quad * QUAD..].iter_mut().zip(sums.as_chunks::<LANES>().0).take(H * QUAD) {
            *out = sums.iter().sum();
        }
    }
}

impl<F: Form<f64>> RealKernel<f64> for Weighted<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<f64>>(mut self, simd: S) {
        for quad in (0..self.quads.len()).step_by(if S::MANY { 2 } else { 1 }) {
            if S::MANY { self.some::<S, 2>(simd, quad) } else { self.some::<S, 1>(simd, quad) }
        }
    }
}

/// Sum over the rows y of `y` of coefficient times k(x, y), for each row x of `x`: no matrix is built.
///
/// # Errors
/// [`Error`] when a parameter is out of range, a value is not finite, memory runs out or on interrupt.
pub fn weighted_sums(
    x: &[f64],
    y: &[f64],
    d: usize,
    coefficients: &[f64],
    kernel: InstanceKernel,
    out: &mut [f64],
    interrupt: &Interrupt,
) -> Result<()> {
    let d = d.max(1);
    let chosen = Chosen::new(kernel, [x, y], d)?;
    check_finite("X", x, d)?;
    check_finite("Y", y, d)?;
    check_coefficients(coefficients)?;
    let panels = Panels::new(y, d, chosen.scale(), interrupt)?;
    let rows = Rows::new(x, d, chosen.scale(), interrupt)?;
    let mut padded = memory::filled(0.0, panels.len() * LANES, "a copy of the coefficients")?;
    padded[..coefficients.len()].copy_from_slice(coefficients);
    let step = (TASK / (panels.len() * LANES * d).max(1)).next_multiple_of(ROWS).clamp(ROWS, 256);
    let cuts = parallel::cuts(rows.len(), step, |row| row)?;
    let large = rows.len().saturating_mul(padded.len()).saturating_mul(d) > LARGE;
    parallel::fill(out, &cuts, large, interrupt, |block, out| {
        let quads = Quads::new(&rows, block * step..block * step + out.len())?;
        let (quads, panels, coefficients) = (&quads, &panels, &padded[..]);
        with_form!(chosen, |form| dispatch_reals(Weighted { quads, panels, coefficients, form, out }));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(n: usize, d: usize) -> Vec<f64> {
        (0..n * d).map(|i| ((i * 7919 % 101) as f64 - 50.0) / 25.0).collect()
    }

    fn rbf(a: &[f64], b: &[f64], gamma: f64) -> f64 {
        (-gamma * a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
    }

    #[test]
    fn rows_are_right_however_few_are_kept() {
        let (n, d) = (150, 3);
        let x = points(n, d);
        for bytes in [0, 8 * 192 * 5, 1 << 30] {
            let stop = Interrupt::default();
            let mut rows =
                KernelRows::of_instances(x.clone(), d, InstanceKernel::Rbf { gamma: 0.3 }, bytes, &stop).unwrap();
            for step in 0..2000usize {
                let (i, j) = (step * 31 % n, step * step % n);
                let (a, b) = rows.two(i, j).unwrap();
                for k in [0, i, j, n - 1] {
                    let point = |i: usize| &x[i * d..(i + 1) * d];
                    assert!((a[k] - rbf(point(i), point(k), 0.3)).abs() < 1e-14);
                    assert!((b[k] - rbf(point(j), point(k), 0.3)).abs() < 1e-14);
                }
                assert!(a[n..].iter().chain(&b[n..]).all(|&v| v == 0.0) && a.len() == rows.padded());
            }
            assert!(rows.slots.len() <= (bytes / (8 * 192)).clamp(2, n));
        }
    }

    #[test]
    fn the_diagonal_is_that_of_the_rows_to_the_last_bit() {
        let x = points(70, 5);
        for kernel in [
            InstanceKernel::Rbf { gamma: 0.3 },
            InstanceKernel::Rbf { gamma: 3000.0 },
            InstanceKernel::Poly { gamma: 0.7, degree: 3, coef0: 1.5 },
            InstanceKernel::Poly { gamma: 1.0, degree: 1, coef0: 0.0 },
        ] {
            let mut rows = KernelRows::of_instances(x.clone(), 5, kernel, 1 << 20, &Interrupt::default()).unwrap();
            for i in 0..70 {
                assert_eq!(rows.diagonal(i).to_bits(), rows.row(i).unwrap()[i].to_bits());
            }
        }
    }

    #[test]
    fn a_matrix_gives_its_rows() {
        let matrix: Vec<f64> = (0..9).map(|i| [1.0, 2.0, 3.0, 2.0, 4.0, 5.0, 3.0, 5.0, 6.0][i]).collect();
        let mut rows = KernelRows::of_matrix(&matrix, 3).unwrap();
        assert_eq!(&rows.row(1).unwrap()[..4], &[2.0, 4.0, 5.0, 0.0]);
        assert!((rows.diagonal(2) - 6.0).abs() < 1e-15);
        assert_eq!(&rows.times(&[1.0, 0.0, -1.0], &Interrupt::default()).unwrap()[..3], &[-2.0, -3.0, -3.0]);
        assert!(KernelRows::of_matrix(&matrix, 2).is_err());
        assert!(KernelRows::of_matrix(&[f64::NAN], 1).is_err());
    }

    #[test]
    fn sums_are_those_of_the_matrix() {
        let (n, m, d) = (45, 37, 5);
        let (x, y) = (points(n, d), points(m, d));
        let coefficients: Vec<f64> = (0..m).map(|i| (i as f64).sin()).collect();
        let mut out = vec![0.0; n];
        let kernel = InstanceKernel::Rbf { gamma: 0.2 };
        weighted_sums(&x, &y, d, &coefficients, kernel, &mut out, &Interrupt::default()).unwrap();
        for (i, got) in out.iter().enumerate() {
            let each = (0..m).map(|j| coefficients[j] * rbf(&x[i * d..][..d], &y[j * d..][..d], 0.2));
            assert!((got - each.sum::<f64>()).abs() < 1e-13);
        }
    }
}
