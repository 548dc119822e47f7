//! A borrowed view of ragged bags.

use crate::error::{Error, Result};

/// Flat instances, row after row, and the offsets that cut them into bags.
#[derive(Clone, Copy, Debug)]
pub struct Bags<'a, T> {
    instances: &'a [T],
    offsets: &'a [i64],
    n_features: usize,
}

impl<'a, T> Bags<'a, T> {
    /// A view after a check of the offsets.
    ///
    /// # Errors
    /// [`Error::range`] when the offsets do not start with 0, decrease, or do not end with the number of instances.
    pub fn new(instances: &'a [T], n_features: usize, offsets: &'a [i64]) -> Result<Self> {
        let n_instances = instances.len().checked_div(n_features).unwrap_or(0);
        let sound = offsets.first() == Some(&0)
            && offsets.last() == Some(&(n_instances as i64))
            && offsets.windows(2).all(|w| w[0] <= w[1]);
        if sound {
            Ok(Self { instances, offsets, n_features })
        } else {
            Err(Error::range(format_args!("offsets must ascend from 0 to the number of instances, {n_instances}")))
        }
    }

    /// Number of bags.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no bag.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of instances in all bags.
    #[must_use]
    pub fn n_instances(&self) -> usize {
        self.offsets[self.len()] as usize
    }

    /// Number of features of an instance.
    #[must_use]
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Instances of all bags, row after row.
    #[must_use]
    pub fn instances(&self) -> &'a [T] {
        self.instances
    }

    /// Rows of bag `i` in the matrix of all instances.
    #[must_use]
    pub fn rows(&self, i: usize) -> std::ops::Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    /// Instances of bag `i`, row after row.
    #[must_use]
    pub fn bag(&self, i: usize) -> &'a [T] {
        let rows = self.rows(i);
        &self.instances[rows.start * self.n_features..rows.end * self.n_features]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_out_of_order_are_refused() {
        let x = [0.0; 6];
        let bad: [&[i64]; 7] =
            [&[], &[0], &[0, i64::MAX, -2, 3], &[0, 2, 1, 3], &[1, 3], &[0, 4], &[i64::MIN, i64::MAX, 3]];
        for offsets in bad {
            assert!(Bags::new(&x, 2, offsets).is_err(), "{offsets:?}");
        }
        assert_eq!(Bags::new(&x, 2, &[0, 0, 3]).unwrap().len(), 2);
    }
}
