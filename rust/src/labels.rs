//! The one place that decides which label is the positive one.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::memory;

const ZERO: u8 = 1;
const ONE: u8 = 2;
const MINUS_ONE: u8 = 4;
const OTHER: u8 = 8;

/// A value that may be a label.
pub trait Label: Copy + PartialEq + Display + Send + Sync {
    /// Bit of the value: 1 for zero, 2 for one, 4 for minus one, 8 for anything else.
    fn bit(self) -> u8;
    /// Whether the value is one.
    fn is_one(self) -> bool;
    /// Whether the value is zero or one, the only ones that need no second look.
    fn is_usual(self) -> bool;
}

impl Label for bool {
    #[inline]
    fn bit(self) -> u8 {
        ZERO + u8::from(self)
    }
    #[inline(always)]
    fn is_one(self) -> bool {
        self
    }
    #[inline(always)]
    fn is_usual(self) -> bool {
        true
    }
}

macro_rules! label {
    ($one:expr, $zero:expr, $minus_one:expr, $($number:ty),+) => {$(
        impl Label for $number {
            #[inline]
            #[allow(clippy::float_cmp)]
            fn bit(self) -> u8 {
                if self == $one { ONE } else if self == $zero { ZERO } else if $minus_one == Some(self) { MINUS_ONE } else { OTHER }
            }
            #[inline(always)]
            #[allow(clippy::float_cmp)]
            fn is_one(self) -> bool {
                self == $one
            }
            #[inline(always)]
            #[allow(clippy::float_cmp)]
            fn is_usual(self) -> bool {
                (self == $one) | (self == $zero)
            }
        }
    )+};
}
label!(1, 0, Some(-1), i8, i16, i32, i64);
label!(1, 0, None, u8, u16, u32, u64);
label!(1.0, 0.0, Some(-1.0), f32, f64);

/// Whether the bit is that of a positive label.
#[inline]
#[must_use]
pub fn is_positive(bit: u8) -> bool {
    bit == ONE
}

/// Whether labels with these bits together are {0, 1} or {-1, 1} (or one class of them).
#[inline]
#[must_use]
pub fn is_binary(bits: u8) -> bool {
    bits & OTHER == 0 && bits & (ZERO | MINUS_ONE) != (ZERO | MINUS_ONE)
}

/// True for each positive label.
///
/// # Errors
/// [`Error::labels`] when the labels are not {0, 1}, {-1, 1} or bool; [`Error::memory`].
pub fn binary<L: Label>(labels: &[L]) -> Result<Vec<bool>> {
    let bits = labels.iter().fold(0, |bits, label| bits | label.bit());
    if !is_binary(bits) {
        return Err(explain(labels));
    }
    memory::collect(labels.iter().map(|l| is_positive(l.bit())), "the labels")
}

/// Why `labels` are refused.
pub fn explain<L: Label>(labels: &[L]) -> Error {
    let mut values: Vec<L> = Vec::new();
    for (i, &label) in labels.iter().enumerate() {
        #[allow(clippy::eq_op)]
        if label != label {
            return Error::labels(format_args!("labels[{i}] is NaN: drop it, or give it a label"));
        }
        if !values.contains(&label) {
            values.push(label);
        }
        if values.len() == 3 {
            return Error::labels(format_args!(
                "labels must be {{0, 1}}, {{-1, 1}} or bool, but hold {}, {} and, at position {i}, {}",
                values[0], values[1], values[2]
            ));
        }
    }
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    Error::labels(format_args!(
        "labels hold {}, which does not say which is the positive class: pass pos_label={}",
        values.join(" and "),
        values.last().map_or("1", String::as_str)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_spellings_are_decided() {
        assert_eq!(binary(&[0i64, 1, 1]).unwrap(), [false, true, true]);
        assert_eq!(binary(&[-1.0f64, 1.0]).unwrap(), [false, true]);
        assert_eq!(binary(&[true, false]).unwrap(), [true, false]);
        assert_eq!(binary(&[-1i8, -1]).unwrap(), [false, false]);
    }

    #[test]
    fn anything_else_is_refused_with_a_way_out() {
        assert!(binary(&[1i64, 2]).unwrap_err().to_string().contains("pass pos_label=2"));
        assert!(binary(&[-1i64, 0]).unwrap_err().to_string().contains("pos_label"));
        assert!(binary(&[-1i64, 0, 1]).unwrap_err().to_string().contains("at position 2, 1"));
        assert!(binary(&[0.0, f64::NAN]).unwrap_err().to_string().contains("labels[1] is NaN"));
    }
}
