//! Loops that are none: how a kernel keeps arrays in registers, however much the compiler likes to unroll.
//!
//! The compiler is told to unroll little (`pyproject.toml`). A loop over lanes becomes one over vectors only if it is too
//! long to be unrolled before, and these stay in registers only if so few are left that they are unrolled then: eight lanes
//! are neither too many nor too few. Kernels with more take them in parts of eight.

/// Do something for each index below a constant, at most 16, without a loop: only what is indexed by constants can stay in
/// registers, and whether the compiler unrolls a loop depends on the length of its body.
///
/// With a type before it, as in `each!(S: i < N => { .. })`, it is a loop where the operations of that type are
/// [`ROLLED`](crate::simd::Vectors::ROLLED).
macro_rules! each {
    ($simd:ident: $i:ident < $n:ident => $body:block) => {
        if $simd::ROLLED {
            for $i in 0..$n $body
        } else {
            each!($i < $n => $body)
        }
    };
    ($i:ident < $n:ident => $body:block) => {{
        debug_assert!($n <= 16);
        each!($i < $n, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => $body)
    }};
    ($i:ident < $n:ident, $($k:literal)* => $body:block) => {{
        $({
            let $i = $k;
            if $i < $n $body
        })*
    }};
}

pub(crate) use each;
