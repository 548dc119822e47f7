//! Populations of logistic problems: in each environment features are a mixture of normal distributions that all have the
//! same covariance K, and every component has a label.
//!
//! Let m be the mean of a component and pi its probability. There the logit is N(w . m + b, w . K w), and what Stein's
//! lemma says of the product of x with a function f of the logit holds twice over:
//!
//! E[f x] = m E[f] + k E[f'], E[f x x^T] = (m m^T + K) E[f] + (m k^T + k m^T) E[f'] + k k^T E[f''], where k = K w.
//!
//! So all is made of expectations over one variable, of [`super::quadrature`], and of k, which all components share. The
//! same formulas give the means of squared derivatives of single samples, f = (s - y)^2, and their gradients, for which
//! dE[f]/dmu = E[f'] and dE[f]/dsigma^2 = E[f''] / 2.

use super::environments::{Batch, Environments, Needs, Task, shares};
use super::objectives::{add, dot};
use super::quadrature::{Expected, VALUES, Wanted, expectations, normal_tail};
use crate::error::{Error, Result};
use crate::memory;

/// What a component is in the pooled list of all environments.
#[derive(Clone, Copy, Debug)]
struct Component {
    probability: f64,
    /// 1 where the label is 1, -1 where it is 0.
    sign: f64,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Mixtures {
    n_features: usize,
    /// Where the components of each environment begin, and the end.
    starts: Vec<usize>,
    components: Vec<Component>,
    /// (C, d)
    means: Vec<f64>,
    /// (d, d)
    covariance: Vec<f64>,
    weights: Vec<f64>,
    shares: Vec<f64>,
    inputs: Vec<f64>,
}

/// Where values of a run are in [`Batch::remembered`]: k, the expectations, means of the logit and its variance.
struct Place {
    size: usize,
    n_features: usize,
    n_components: usize,
}

impl Place {
    /// k, means of the logit, variance of the logit and expectations, row by row.
    fn split<'a>(&self, sums: &'a [f64]) -> (&'a [f64], &'a [f64], f64, &'a [Expected]) {
        let (k, rest) = sums.split_at(self.n_features);
        let (means, rest) = rest.split_at(self.n_components);
        (k, means, rest[0], rest[1..].as_chunks().0)
    }
}

impl Mixtures {
    /// `probabilities` (E, C) sum up to 1 in each environment, `labels` (E, C) are 0 or 1, `means` are (E, C, d) and
    /// `covariance` is (d, d). Components of probability 0 are left out.
    ///
    /// # Errors
    /// [`Error::range`] and [`Error::not_finite`] that name the argument and the place, or [`Error::memory`].
    pub fn new(
        probabilities: &[f64],
        labels: &[f64],
        means: &[f64],
        covariance: &[f64],
        n_environments: usize,
        n_features: usize,
    ) -> Result<Self> {
        let (n, d) = (n_environments, n_features);
        if n == 0 || probabilities.is_empty() || !probabilities.len().is_multiple_of(n) {
            return Err(Error::range(format_args!("probabilities must have at least one environment and component")));
        }
        let (total, n_components) = (probabilities.len(), probabilities.len() / n);
        if labels.len() != total || means.len() != total * d || covariance.len() != d * d {
            return Err(Error::range(format_args!(
                "probabilities, labels, means and covariance must go together: with probabilities of shape ({n}, \
                 {n_components}) and {d} features labels must have {total} values, means {} and covariance {}; got {}, {} \
                 and {}",
                total * d,
                d * d,
                labels.len(),
                means.len(),
                covariance.len()
            )));
        }
        let finite = |argument: &str, values: &[f64], position: &dyn Fn(usize) -> String| {
            values
                .iter()
                .position(|value| !value.is_finite())
                .map_or(Ok(()), |i| Err(Error::not_finite(argument, format_args!("{}", position(i)), values[i])))
        };
        let of_component = |i: usize| format!("[{}, {}]", i / n_components, i % n_components);
        finite("probabilities", probabilities, &of_component)?;
        finite("means", means, &|i| format!("[{}, {}, {}]", i / d / n_components, i / d % n_components, i % d))?;
        finite("covariance", covariance, &|i| format!("[{}, {}]", i / d, i % d))?;
        if let Some(i) = probabilities.iter().position(|&p| p < 0.0) {
            let value = probabilities[i];
            return Err(Error::range(format_args!(
                "probabilities{} is {value}: it must not be negative",
                of_component(i)
            )));
        }
        for (e, row) in probabilities.chunks_exact(n_components).enumerate() {
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > 1e-9 {
                return Err(Error::range(format_args!("probabilities[{e}] sum up to {sum}: they must sum up to 1")));
            }
        }
        #[allow(clippy::float_cmp)] // labels are what they are
        if let Some(i) = labels.iter().position(|&label| label != 0.0 && label != 1.0) {
            return Err(Error::labels(format_args!("labels{} is {}: it must be 0 or 1", of_component(i), labels[i])));
        }
        check_covariance(covariance, d)?;
        let mut out = Self {
            n_features: d,
            starts: memory::room(n + 1, "the components")?,
            components: memory::room(total, "the components")?,
            means: memory::room(means.len(), "the components")?,
            covariance: memory::collect(covariance.iter().copied(), "the covariance")?,
            weights: memory::filled(1.0, n, "the environments")?,
            shares: shares(&vec![1.0; n], "weights")?,
            inputs: memory::filled(0.0, n * (d + 1) * (d + 1), "the moments")?,
        };
        for e in 0..n {
            out.starts.push(out.components.len());
            for i in e * n_components..(e + 1) * n_components {
                if probabilities[i] > 0.0 {
                    out.components.push(Component { probability: probabilities[i], sign: 2.0 * labels[i] - 1.0 });
                    out.means.extend_from_slice(&means[i * d..(i + 1) * d]);
                }
            }
        }
        out.starts.push(out.components.len());
        out.fill_inputs();
        Ok(out)
    }

    /// Second moments of (x, 1).
    fn fill_inputs(&mut self) {
        let (d, p) = (self.n_features, self.n_features + 1);
        for (e, moments) in self.inputs.chunks_exact_mut(p * p).enumerate() {
            for c in self.starts[e]..self.starts[e + 1] {
                let (probability, mean) = (self.components[c].probability, &self.means[c * d..(c + 1) * d]);
                for i in 0..p {
                    for j in 0..p {
                        let value = |i: usize| mean.get(i).copied().unwrap_or(1.0);
                        let within = if i < d && j < d { self.covariance[i * d + j] } else { 0.0 };
                        moments[i * p + j] += probability * (value(i) * value(j) + within);
                    }
                }
            }
        }
    }

    fn place(&self) -> Place {
        let (n_features, n_components) = (self.n_features, self.components.len());
        Place { size: n_features + n_components + 1 + n_components * VALUES, n_features, n_components }
    }

    /// K x.
    fn covariance_times(&self, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (row, &x) in self.covariance.chunks_exact(self.n_features.max(1)).zip(x) {
            add(x, row, out);
        }
    }

    /// Components of an environment with their means, and where they are in the list.
    fn of(&self, e: usize) -> impl Iterator<Item = (usize, Component, &[f64])> {
        let d = self.n_features;
        (self.starts[e]..self.starts[e + 1]).map(move |c| (c, self.components[c], &self.means[c * d..(c + 1) * d]))
    }

    /// k, the means of the logit and its variance.
    fn project(&self, theta: &[f64], sums: &mut [f64]) {
        let d = self.n_features;
        let (k, rest) = sums.split_at_mut(d);
        self.covariance_times(&theta[..d], k);
        for (c, mean) in rest[..self.components.len()].iter_mut().enumerate() {
            *mean = dot(&theta[..d], &self.means[c * d..(c + 1) * d]) + theta[d];
        }
        // rounding can make it negative where the covariance is singular; NaN stays
        let variance = dot(&theta[..d], k);
        rest[self.components.len()] = if variance < 0.0 { 0.0 } else { variance };
    }
}

/// Add u (x, 1) + v (k, 0).
fn add_pair(u: f64, mean: &[f64], v: f64, k: &[f64], out: &mut [f64]) {
    let d = mean.len();
    for ((out, m), k) in out.iter_mut().zip(mean).zip(k) {
        *out += u * m + v * k;
    }
    out[d] += u;
}

fn check_covariance(covariance: &[f64], d: usize) -> Result<()> {
    let largest = (0..d).map(|i| covariance[i * d + i]).fold(0.0, f64::max);
    for i in 0..d {
        if covariance[i * d + i] < 0.0 {
            let value = covariance[i * d + i];
            return Err(Error::range(format_args!("covariance[{i}, {i}] is {value}: a variance must not be negative")));
        }
        for j in 0..i {
            let (a, b) = (covariance[i * d + j], covariance[j * d + i]);
            if (a - b).abs() > 1e-9 * largest {
                return Err(Error::range(format_args!(
                    "covariance must be symmetric; covariance[{i}, {j}] is {a} and covariance[{j}, {i}] is {b}"
                )));
            }
        }
    }
    // Cholesky with room for rounding: no direction may have a negative variance
    let mut left = covariance.to_vec();
    for k in 0..d {
        let pivot = left[k * d + k];
        if pivot < -1e-9 * largest {
            return Err(Error::range(format_args!("covariance must not have a negative eigenvalue")));
        }
        if pivot <= 1e-12 * largest {
            if (k + 1..d).any(|i| left[i * d + k].abs() > 1e-5 * largest) {
                return Err(Error::range(format_args!("covariance must not have a negative eigenvalue")));
            }
            continue;
        }
        for i in k + 1..d {
            let factor = left[i * d + k] / pivot;
            for j in k + 1..d {
                left[i * d + j] -= factor * left[k * d + j];
            }
        }
    }
    Ok(())
}

impl Environments for Mixtures {
    fn task(&self) -> Task {
        Task::Classification
    }
    fn n_environments(&self) -> usize {
        self.weights.len()
    }
    fn n_features(&self) -> usize {
        self.n_features
    }
    fn weights(&self) -> &[f64] {
        &self.weights
    }
    fn shares(&self) -> &[f64] {
        &self.shares
    }
    fn inputs(&self) -> &[f64] {
        &self.inputs
    }
    fn offers(&self, _needs: Needs) -> Result<()> {
        Ok(())
    }
    fn prepare(&self, _needs: Needs, batch: &mut Batch) -> Result<()> {
        batch.remembered = memory::filled(0.0, batch.n_runs.saturating_mul(self.place().size), "the runs")?;
        Ok(())
    }
    fn together(&self) -> usize {
        64
    }
    fn work(&self) -> usize {
        self.components.len() * (20 * 40 + 4 * self.n_features) + self.n_features * self.n_features
    }

    fn first(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        let (d, p, n) = (self.n_features, self.n_features + 1, self.n_environments());
        let place = self.place();
        let squares = needs.squares || needs.square_products;
        let wanted = Wanted { curvatures: needs.curvatures || needs.products, risks: needs.risks, squares };
        let mut expected = [[0.0; VALUES]; CHUNK];
        let mut logits = [0.0; CHUNK];
        let Batch { n_runs, risks, gradients, along_theta, along_bias, squares, remembered, .. } = batch;
        for run in 0..*n_runs {
            let theta = &theta[run * p..(run + 1) * p];
            let sums = &mut remembered[run * place.size..(run + 1) * place.size];
            self.project(theta, sums);
            let sigma = sums[d + place.n_components].sqrt();
            for first in (0..place.n_components).step_by(CHUNK) {
                let many = CHUNK.min(place.n_components - first);
                for (i, logit) in logits[..many].iter_mut().enumerate() {
                    *logit = self.components[first + i].sign * sums[d + first + i];
                }
                expectations(wanted, sigma, &logits[..many], &mut expected[..many]);
                let begin = d + place.n_components + 1 + first * VALUES;
                for (i, values) in expected[..many].iter().enumerate() {
                    sums[begin + i * VALUES..begin + (i + 1) * VALUES].copy_from_slice(values);
                }
            }
            let (k, means, variance, expected) = place.split(sums);
            for e in 0..n {
                let here = (run * n + e) * p..(run * n + e + 1) * p;
                let gradient = &mut gradients[here.clone()];
                gradient.fill(0.0);
                let mut slope = 0.0;
                for (c, Component { probability, sign }, mean) in self.of(e) {
                    let u = -sign * probability * expected[c][0];
                    add(u, mean, &mut gradient[..d]);
                    gradient[d] += u;
                    slope += probability * expected[c][1];
                }
                add(slope, k, &mut gradient[..d]);
                if needs.risks {
                    risks[run * n + e] = self.of(e).map(|(c, of, _)| of.probability * expected[c][4]).sum();
                }
                if needs.curvatures {
                    let (along_theta, along_bias) = (&mut along_theta[here.clone()], &mut along_bias[here.clone()]);
                    along_theta.fill(0.0);
                    along_bias.fill(0.0);
                    for (c, Component { probability, sign }, mean) in self.of(e) {
                        let [_, s1, s2, s3, ..] = expected[c];
                        let (s1, s2, s3) = (probability * s1, probability * sign * s2, probability * s3);
                        let (u, v) = (s1 * means[c] + s2 * variance, s1 + s2 * means[c] + s3 * variance);
                        add_pair(u, mean, v, k, along_theta);
                        add_pair(s1, mean, s2, k, along_bias);
                    }
                }
                if needs.squares {
                    let out = &mut squares[here];
                    out.fill(0.0);
                    for (c, Component { probability, sign }, mean) in self.of(e) {
                        let [_, _, _, _, _, f0, f1, f2, ..] = expected[c];
                        for j in 0..d {
                            let within = mean[j] * mean[j] + self.covariance[j * d + j];
                            let value = f0 * within + k[j] * (2.0 * sign * f1 * mean[j] + f2 * k[j]);
                            out[j] += probability * value;
                        }
                        out[d] += probability * f0;
                    }
                }
            }
        }
    }

    fn second(&self, _theta: &[f64], needs: Needs, batch: &mut Batch) {
        let (d, p, n) = (self.n_features, self.n_features + 1, self.n_environments());
        let place = self.place();
        let Batch { n_runs, directions, products, weights, square_products, remembered, .. } = batch;
        let mut turned = [0.0; CHUNK];
        let mut room = Vec::new();
        let turned = if d <= CHUNK {
            &mut turned[..d]
        } else {
            room.resize(d, 0.0);
            &mut room[..]
        };
        for run in 0..*n_runs {
            let (k, _, _, expected) = place.split(&remembered[run * place.size..(run + 1) * place.size]);
            for e in 0..n {
                let here = (run * n + e) * p..(run * n + e + 1) * p;
                if needs.products {
                    let (direction, out) = (&directions[here.clone()], &mut products[here.clone()]);
                    let (u, offset) = (&direction[..d], direction[d]);
                    out.fill(0.0);
                    let along = dot(k, u);
                    let mut slope = 0.0;
                    for (c, Component { probability, sign }, mean) in self.of(e) {
                        let [_, s1, s2, s3, ..] = expected[c];
                        let (s1, s2, s3) = (probability * s1, probability * sign * s2, probability * s3);
                        let by = dot(mean, u) + offset;
                        add_pair(s1 * by + s2 * along, mean, s2 * by + s3 * along, k, out);
                        slope += s1;
                    }
                    self.covariance_times(u, turned);
                    add(slope, turned, &mut out[..d]);
                }
                if needs.square_products {
                    let (weight, out) = (&weights[here.clone()], &mut square_products[here]);
                    out.fill(0.0);
                    turned.fill(0.0);
                    let both: f64 = (0..d).map(|j| weight[j] * k[j] * k[j]).sum();
                    for (c, Component { probability, sign }, mean) in self.of(e) {
                        let [_, _, _, _, _, _, f1, f2, f3, f4] = expected[c].map(|value| 0.5 * probability * value);
                        let (f1, f3) = (sign * f1, sign * f3);
                        let (mut a, mut b) = (weight[d], 0.0);
                        for j in 0..d {
                            a += weight[j] * (mean[j] * mean[j] + self.covariance[j * d + j]);
                            b += weight[j] * mean[j] * k[j];
                            turned[j] += 2.0 * weight[j] * (f1 * mean[j] + f2 * k[j]);
                        }
                        let (u, v) = (f1 * a + 2.0 * f2 * b + f3 * both, f2 * a + 2.0 * f3 * b + f4 * both);
                        add_pair(u, mean, v, k, out);
                    }
                    for (row, &x) in self.covariance.chunks_exact(d.max(1)).zip(turned.iter()) {
                        add(x, row, &mut out[..d]);
                    }
                }
            }
        }
    }

    /// Shares of wrong classes, where a logit above 0 is class 1.
    fn errors(&self, theta: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.place().size];
        self.project(theta, &mut sums);
        let (d, n) = (self.n_features, self.components.len());
        let (means, sigma) = (&sums[d..d + n], sums[d + n].sqrt());
        let wrong = |c: usize| {
            let (mean, sign) = (means[c], self.components[c].sign);
            if sigma > 0.0 {
                normal_tail(sign * mean / sigma)
            } else if mean.is_nan() || sigma.is_nan() {
                f64::NAN
            } else {
                f64::from(u8::from((mean > 0.0) != (sign > 0.0)))
            }
        };
        (0..self.n_environments()).map(|e| self.of(e).map(|(c, of, _)| of.probability * wrong(c)).sum()).collect()
    }
}

/// Components whose expectations are computed at a time.
const CHUNK: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes and two backgrounds in two environments, correlated features, one component without weight.
    fn problem(scale: f64) -> Mixtures {
        let means = [
            [1.0, 0.5, 0.8],
            [1.0, 0.5, -0.8],
            [-1.0, -0.5, -0.8],
            [-1.0, -0.2, 0.8],
            [0.3, 0.2, 0.1],
            [0.9, 0.5, -0.3],
            [-0.4, 0.1, -0.1],
            [9.0, 9.0, 9.0],
        ];
        let mut means = means.concat();
        for mean in &mut means {
            *mean *= scale;
        }
        let labels = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        let probabilities = [0.4, 0.1, 0.3, 0.2, 0.25, 0.25, 0.5, 0.0];
        let covariance = [0.5, 0.1, -0.2, 0.1, 0.3, 0.05, -0.2, 0.05, 0.8];
        Mixtures::new(&probabilities, &labels, &means, &covariance, 2, 3).unwrap()
    }

    const ALL: Needs = Needs { risks: true, curvatures: true, squares: true, products: true, square_products: true };
    const DIRECTION: [f64; 4] = [0.3, -1.0, 0.7, 0.4];
    const WEIGHTS: [f64; 4] = [1.3, -0.2, 0.6, 0.9];

    fn look(mixtures: &Mixtures, theta: &[f64]) -> Batch {
        let runs = theta.len() / 4;
        let mut batch = Batch::new(mixtures, ALL, runs).unwrap();
        mixtures.first(theta, ALL, &mut batch);
        batch.directions = DIRECTION.repeat(2 * runs);
        batch.weights = WEIGHTS.repeat(2 * runs);
        mixtures.second(theta, ALL, &mut batch);
        batch
    }

    /// Derivative by a central difference of the fourth order of what `of` makes of theta, along u.
    fn difference(mixtures: &Mixtures, theta: &[f64], u: &[f64], of: impl Fn(&Batch) -> f64) -> f64 {
        let step = 2e-3 / dot(u, u).sqrt();
        let at = |factor: f64| {
            let moved: Vec<_> = theta.iter().zip(u).map(|(x, u)| x + factor * step * u).collect();
            of(&look(mixtures, &moved))
        };
        (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step)
    }

    #[test]
    fn derivatives_agree_with_differences() {
        // both rules of the quadrature and both sides of it
        for theta in [[0.4, -0.3, 0.2, 0.1], [3.0, 1.5, -2.0, -0.5], [9.0, 4.0, 3.0, 1.0], [-0.7, -1.2, 2.0, 0.3]] {
            let mixtures = problem(1.0);
            let at = look(&mixtures, &theta);
            for e in 0..2 {
                let of = |values: &[f64]| -> Vec<f64> { values[e * 4..(e + 1) * 4].to_vec() };
                let scale = dot(&of(&at.gradients), &of(&at.gradients)).sqrt();
                for j in 0..4 {
                    let mut unit = [0.0; 4];
                    unit[j] = 1.0;
                    let close = |what: &str, got: f64, want: f64| {
                        assert!(
                            (got - want).abs() < 2e-9 * (1.0 + scale),
                            "{what} {theta:?} {e} {j}: {got:e} {want:e}"
                        );
                    };
                    close("gradient", of(&at.gradients)[j], difference(&mixtures, &theta, &unit, |b| b.risks[e]));
                    let gradient = |b: &Batch| b.gradients[e * 4 + j];
                    close("product", of(&at.products)[j], difference(&mixtures, &theta, &DIRECTION, gradient));
                    close("along theta", of(&at.along_theta)[j], difference(&mixtures, &theta, &theta, gradient));
                    let bias = [0.0, 0.0, 0.0, 1.0];
                    close("along bias", of(&at.along_bias)[j], difference(&mixtures, &theta, &bias, gradient));
                    let sum = |b: &Batch| 0.5 * dot(&WEIGHTS, &b.squares[e * 4..(e + 1) * 4]);
                    close("squares", of(&at.square_products)[j], difference(&mixtures, &theta, &unit, sum));
                }
            }
        }
    }

    #[test]
    fn squares_are_those_of_single_samples() {
        // Gauss-Hermite in two directions would be another rule; a long stratified sum is another way altogether
        let mixtures = Mixtures::new(&[0.3, 0.7], &[1.0, 0.0], &[0.5, -1.0], &[0.36], 1, 1).unwrap();
        let theta = [1.4, -0.2];
        let needs = Needs { squares: true, ..Needs::default() };
        let mut batch = Batch::new(&mixtures, needs, 1).unwrap();
        mixtures.first(&theta, needs, &mut batch);
        let mut want = [0.0; 2];
        for (probability, mean, label) in [(0.3, 0.5, 1.0), (0.7, -1.0, 0.0)] {
            for i in 0..4000 {
                let z = (f64::from(i) - 1999.5) * 0.005;
                let weight = 0.005 * probability * (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
                let x = mean + 0.6 * z;
                let residual = 1.0 / (1.0 + (-(theta[0] * x + theta[1])).exp()) - label;
                want[0] += weight * residual * residual * x * x;
                want[1] += weight * residual * residual;
            }
        }
        assert!(
            batch.squares.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12),
            "{:?} {want:?}",
            batch.squares
        );
    }

    #[test]
    fn errors_are_known_where_they_are() {
        // Example 3 at its invariant optimum, and Example 2 with the shortcut alone
        let n = 5;
        let means: Vec<f64> = [vec![0.1; n], vec![-0.1; n]].concat();
        let mut covariance = vec![0.0; n * n];
        for i in 0..n {
            covariance[i * n + i] = 0.01;
        }
        let third = Mixtures::new(&[0.5, 0.5], &[0.0, 1.0], &means, &covariance, 1, n).unwrap();
        let error = third.errors(&[-1.0, -1.0, -1.0, -1.0, -1.0, 0.0])[0];
        assert!((error - 0.012_673_659_338_734_1).abs() < 1e-15, "{error}");
        assert_eq!(third.errors(&[0.0; 6]), [0.5]);
        assert!(third.errors(&[0.0, 0.0, f64::NAN, 0.0, 0.0, 0.0])[0].is_nan());
        let mut theta = [0.0; 6];
        theta[5] = 2.0; // all are called 1
        assert_eq!(third.errors(&theta), [0.5]);
    }

    #[test]
    fn inputs_are_second_moments() {
        let mixtures = problem(1.0);
        let second = &mixtures.inputs()[16..];
        let mean = |j: usize| {
            [0.25, 0.25, 0.5]
                .iter()
                .zip(&[[0.3, 0.2, 0.1], [0.9, 0.5, -0.3], [-0.4, 0.1, -0.1]])
                .map(|(p, m)| p * m[j])
                .sum::<f64>()
        };
        assert!((0..3).all(|j| (second[12 + j] - mean(j)).abs() < 1e-15) && (second[15] - 1.0).abs() < 1e-15);
        assert!((second[1] - (0.25 * 0.06 + 0.25 * 0.45 - 0.5 * 0.04 + 0.1)).abs() < 1e-15);
    }

    #[test]
    fn a_run_does_not_depend_on_the_others() {
        let mixtures = problem(1.0);
        let (a, b) = ([0.4, -0.3, 0.2, 0.1], [3.0, 1.5, -2.0, -0.5]);
        let both = look(&mixtures, &[a, b].concat());
        for (i, theta) in [a, b].iter().enumerate() {
            let alone = look(&mixtures, theta);
            assert_eq!(alone.products, both.products[i * 8..(i + 1) * 8]);
            assert_eq!(alone.square_products, both.square_products[i * 8..(i + 1) * 8]);
            assert_eq!(alone.risks, both.risks[i * 2..(i + 1) * 2]);
        }
    }

    #[test]
    fn directions_stay_right_where_gradients_vanish() {
        // classes 22 deviations apart: the gradient is some 1e-100, and a scale of theta does not turn it round
        let mixtures =
            Mixtures::new(&[0.5, 0.5], &[1.0, 0.0], &[22.0, 0.0, -22.0, 0.0], &[1.0, 0.0, 0.0, 1.0], 1, 2).unwrap();
        let mut batch = Batch::new(&mixtures, Needs::default(), 1).unwrap();
        mixtures.first(&[30.0, 3.0, 0.0], Needs::default(), &mut batch);
        let gradient = &batch.gradients;
        // the logit's deviation is 30: from here the weight of the feature must grow and that of the noise must shrink
        assert!(gradient[0].abs() < 1e-60 && gradient[0] < 0.0 && gradient[1] > 0.0, "{gradient:?}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let new = |p: &[f64], labels: &[f64], means: &[f64], covariance: &[f64]| {
            Mixtures::new(p, labels, means, covariance, 1, 1).unwrap_err().to_string()
        };
        assert!(new(&[0.5, 0.4], &[0.0, 1.0], &[0.0; 2], &[1.0]).contains("probabilities[0] sum up to 0.9"));
        assert!(new(&[1.5, -0.5], &[0.0, 1.0], &[0.0; 2], &[1.0]).contains("probabilities[0, 1] is -0.5"));
        assert!(new(&[0.5, 0.5], &[0.0, 2.0], &[0.0; 2], &[1.0]).contains("labels[0, 1] is 2"));
        assert!(new(&[0.5, 0.5], &[0.0, 1.0], &[0.0, f64::NAN], &[1.0]).contains("means[0, 1, 0] is NaN"));
        assert!(new(&[0.5, 0.5], &[0.0, 1.0], &[0.0; 2], &[-1.0]).contains("covariance[0, 0] is -1"));
        let covariance = [1.0, 2.0, 2.0, 1.0];
        let error = Mixtures::new(&[1.0], &[1.0], &[0.0; 2], &covariance, 1, 2).unwrap_err().to_string();
        assert!(error.contains("negative eigenvalue"), "{error}");
    }
}
