//! Everything that can go wrong in a kernel, in one enum.

use std::fmt;

/// Result of a kernel.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the argument, the position and the way out in its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Two arguments that go together differ in length.
    Length {
        /// Name of the argument that sets the length.
        first: &'static str,
        /// Its length.
        expected: usize,
        /// Name of the argument that differs.
        second: &'static str,
        /// The length it has.
        found: usize,
    },
    /// A value is NaN, or infinite where only finite values make sense.
    NotFinite {
        /// Name of the argument.
        argument: String,
        /// Position, as it is written in Python: `[3]` or `[3, 5]`.
        position: String,
        /// The value.
        value: String,
    },
    /// Labels are not two-valued.
    Labels(String),
    /// A number lies outside its range; the text is the whole message.
    Range(String),
    /// There is not enough memory; the text is the whole message.
    Memory(String),
    /// Ctrl-C: the caller asked to stop.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { first, expected, second, found } => {
                write!(f, "{first} and {second} must go together: {first} has {expected} entries, {second} has {found}")
            }
            Self::NotFinite { argument, position, value } => {
                write!(f, "{argument}{position} is {value}: drop or impute it first")
            }
            Self::Labels(message) | Self::Range(message) | Self::Memory(message) => f.write_str(message),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
