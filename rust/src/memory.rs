//! Allocations that grow with the input: where there is no room, an error and not the end of the process.

use crate::error::{Error, Result};
use crate::parallel::Interrupt;

/// Bytes that are written between two looks at the interrupt.
const PIECE: usize = 1 << 25;

fn lacking<T>(n: usize, what: &str) -> Error {
    let bytes = n as u128 * size_of::<T>() as u128;
    Error::memory(format_args!("there is no room for {what}: {bytes} bytes were asked for"))
}

/// An empty vector with room for `n` values.
///
/// # Errors
/// [`Error::memory`].
pub fn room<T>(n: usize, what: &str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(n).map_err(|_| lacking::<T>(n, what))?;
    Ok(values)
}

/// Room for `more` values behind those that are there.
///
/// # Errors
/// [`Error::memory`].
pub fn reserve<T>(values: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    values
        .try_reserve(more)
        .or_else(|_| values.try_reserve_exact(more)) // the first asks for more than it needs
        .map_err(|_| lacking::<T>(values.len().saturating_add(more), what))
}

/// `value`, `n` times.
///
/// # Errors
/// [`Error::memory`].
pub fn filled<T: Clone>(value: T, n: usize, what: &str) -> Result<Vec<T>> {
    let mut values = room(n, what)?;
    values.resize(n, value);
    Ok(values)
}

/// As [`filled`], of so many values that even to write them takes long.
///
/// # Errors
/// [`Error::memory`], or [`Error::interrupted`].
pub fn many<T: Clone>(value: &T, n: usize, what: &str, interrupt: &Interrupt) -> Result<Vec<T>> {
    let step = (PIECE / size_of::<T>().max(1)).max(1);
    let mut values = room(n, what)?;
    while values.len() < n {
        interrupt.check()?;
        values.resize((values.len() + step).min(n), value.clone());
    }
    Ok(values)
}

/// What an iterator of known length yields.
///
/// # Errors
/// [`Error::memory`].
pub fn collect<I: ExactSizeIterator>(items: I, what: &str) -> Result<Vec<I::Item>> {
    let mut values = room(items.len(), what)?;
    values.extend(items);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error_that_names_the_bytes() {
        let error = room::<u64>(1 << 59, "the keys").unwrap_err();
        assert_eq!(error.to_string(), "there is no room for the keys: 4611686018427387904 bytes were asked for");
        assert!(room::<u64>(usize::MAX, "x").is_err() && filled(0u8, usize::MAX, "x").is_err());
        assert!(reserve(&mut vec![1u8], usize::MAX, "x").is_err());
    }

    #[test]
    fn many_values_are_written_piece_by_piece() {
        let interrupt = Interrupt::default();
        let values = many(&7u64, 3 * PIECE / 8 + 1, "x", &interrupt).unwrap();
        assert!(values.len() == 3 * PIECE / 8 + 1 && values.iter().all(|&v| v == 7));
        assert!(many(&7, 0, "x", &interrupt).unwrap().is_empty());
        interrupt.raise();
        assert_eq!(many(&7, 1, "x", &interrupt).unwrap_err(), Error::interrupted());
    }

    #[test]
    fn what_fits_is_given() {
        assert_eq!(filled(7, 3, "x").unwrap(), [7, 7, 7]);
        assert_eq!(collect([1, 2].iter().map(|i| i + 1), "x").unwrap(), [2, 3]);
        assert!(room::<u8>(0, "x").unwrap().is_empty());
    }
}
