//! The two ways of stepping: Adam as in torch, and the plain step of the AND-mask.

use crate::error::Result;
use crate::memory;

/// Decay of the mean of gradients.
const BETA_1: f64 = 0.9;
/// Decay of the mean of their squares.
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// How a direction becomes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Adam with the defaults of torch; the weight decay is added to the gradient.
    Adam,
    /// theta - lr direction - lr `weight_decay` theta.
    Plain,
}

/// What Adam remembers of some runs.
#[derive(Clone, Debug)]
pub(super) struct Optimiser {
    rule: Rule,
    width: usize,
    means: Vec<f64>,
    squares: Vec<f64>,
    /// Powers of the two decays, of each run.
    powers: Vec<[f64; 2]>,
}

impl Optimiser {
    pub(super) fn new(rule: Rule, n_runs: usize, width: usize) -> Result<Self> {
        let room = if rule == Rule::Adam { n_runs * width } else { 0 };
        Ok(Self {
            rule,
            width,
            means: memory::filled(0.0, room, "the state of the optimiser")?,
            squares: memory::filled(0.0, room, "the state of the optimiser")?,
            powers: memory::filled([1.0; 2], n_runs, "the state of the optimiser")?,
        })
    }

    /// Forget what was seen of a run.
    pub(super) fn restart(&mut self, run: usize) {
        if self.rule == Rule::Adam {
            let here = run * self.width..(run + 1) * self.width;
            self.means[here.clone()].fill(0.0);
            self.squares[here].fill(0.0);
            self.powers[run] = [1.0; 2];
        }
    }

    /// Move a run along a direction.
    pub(super) fn step(&mut self, run: usize, lr: f64, weight_decay: f64, direction: &[f64], theta: &mut [f64]) {
        if self.rule == Rule::Plain {
            for (parameter, d) in theta.iter_mut().zip(direction) {
                *parameter = *parameter - lr * d - lr * weight_decay * *parameter;
            }
            return;
        }
        let here = run * self.width..(run + 1) * self.width;
        let power = &mut self.powers[run];
        power[0] *= BETA_1;
        power[1] *= BETA_2;
        let size = lr / (1.0 - power[0]);
        let correction = (1.0 - power[1]).sqrt();
        let moments = self.means[here.clone()].iter_mut().zip(&mut self.squares[here]);
        for ((parameter, d), (mean, square)) in theta.iter_mut().zip(direction).zip(moments) {
            let gradient = d + weight_decay * *parameter;
            *mean += (1.0 - BETA_1) * (gradient - *mean);
            *square = BETA_2 * *square + (1.0 - BETA_2) * gradient * gradient;
            *parameter -= size * *mean / (square.sqrt() / correction + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_of_adam_has_the_length_of_the_rate() {
        let mut adam = Optimiser::new(Rule::Adam, 2, 2).unwrap();
        let mut theta = [1.0, -2.0];
        adam.step(1, 0.01, 0.0, &[3.0, -1e-3], &mut theta);
        assert!((theta[0] - 0.99).abs() < 1e-9 && (theta[1] + 1.99).abs() < 1e-6, "{theta:?}");
        let before = theta;
        adam.restart(1);
        adam.step(1, 0.01, 0.0, &[3.0, -1e-3], &mut theta);
        assert!((before[0] - theta[0] - 0.01).abs() < 1e-9);
    }

    #[test]
    fn adam_follows_its_definition() {
        let mut adam = Optimiser::new(Rule::Adam, 1, 1).unwrap();
        let (mut theta, mut want, mut m, mut v) = ([0.5], 0.5f64, 0.0f64, 0.0f64);
        for t in 1..200 {
            let direction = (f64::from(t) * 0.7).sin();
            adam.step(0, 0.02, 0.1, &[direction], &mut theta);
            let g = direction + 0.1 * want;
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            want -= 0.02 * (m / (1.0 - 0.9f64.powi(t))) / ((v / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8);
            assert!((theta[0] - want).abs() < 1e-12);
        }
    }

    #[test]
    fn the_decay_of_the_plain_step_is_apart_from_the_direction() {
        let mut plain = Optimiser::new(Rule::Plain, 1, 2).unwrap();
        let mut theta = [1.0, 4.0];
        plain.step(0, 0.5, 0.25, &[2.0, 0.0], &mut theta);
        assert!((theta[0] + 0.125).abs() < 1e-15 && (theta[1] - 3.5).abs() < 1e-15, "{theta:?}");
    }
}
