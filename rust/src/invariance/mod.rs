//! Linear predictors trained over several environments: the risks that learners of invariance combine, and how they
//! combine them.
//!
//! A predictor is a vector theta = (w, b): one weight a feature, the bias last; xt is (x, 1). What a learner sees of the
//! data are quantities of [`Environments`]: risks, gradients and products of Hessians with vectors, of many runs at once.
//! An [`Objective`] makes of them the direction in which a run steps, and [`train`] makes the steps.
//!
//! To add a learner: a type with [`Objective`] in a file of its own, and a line in [`learners`]. To add a kind of data:
//! a type with [`Environments`].

pub mod bottleneck;
pub mod domainbed;
pub mod environments;
pub mod evaluation;
pub mod exact;
pub mod fishr;
pub mod logistic;
pub mod logits;
pub mod mixtures;
pub mod moments;
pub mod objectives;
pub mod optimiser;
mod quadrature;
pub mod quantile;
pub mod risks;
pub mod squares;
pub mod training;

pub use environments::{Batch, Environments, Needs, Task};
pub use exact::Exact;
pub use logistic::Samples;
pub use mixtures::Mixtures;
pub use moments::Moments;
pub use objectives::{Objective, Run, learner, learners};
pub use optimiser::Rule;
pub use squares::Squares;
pub use training::{Trained, objective_gradient, train};
