//! Products of integers, which wrap, and of `f64`, whose terms are added one after the other.

use bytemuck::Pod;

use super::{Problem, SERIAL};
use crate::backend::cpu::kernels::{
    real::{Strided, offset_at},
    strided::parts,
};

/// Numbers that are multiplied as they are.
pub(super) trait Whole: Pod + Send + Sync {
    /// `self + a * b`
    fn add_product(self, a: Self, b: Self) -> Self;
    /// `self + other`
    fn plus(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($t:ty),*) => {$(
        impl Whole for $t {
            fn add_product(self, a: Self, b: Self) -> Self {
                self.wrapping_add(a.wrapping_mul(b))
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

wrapping!(i32, i64, i8, u32, u8);

impl Whole for f64 {
    fn add_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

/// `out = a x b + bias`; `out` is contiguous.
pub(super) fn product<T: Whole>(
    a: Strided<'_, T>,
    b: Strided<'_, T>,
    bias: Option<Strided<'_, T>>,
    out: &mut [T],
) {
    if out.is_empty() {
        return;
    }
    let p = Problem::new(&a, &b);
    let row = |index: usize, out: &mut [T]| {
        out.fill(T::zeroed());
        if let Some(bias) = &bias {
            let stride = bias.layout.strides()[bias.layout.rank() - 1];
            for (j, out) in out.iter_mut().enumerate() {
                *out = out.plus(bias.data[j * stride]);
            }
        }
        let (batch, i) = (index / p.m, index % p.m);
        let a_row = offset_at(batch, &p.batch, &p.a_batch) + i * p.a_rs;
        let b_start = offset_at(batch, &p.batch, &p.b_batch);
        for l in 0..p.k {
            let left = a.data[a_row + l * p.a_cs];
            for (j, out) in out.iter_mut().enumerate() {
                *out = out.add_product(left, b.data[b_start + l * p.b_rs + j * p.b_cs]);
            }
        }
    };
    if p.batches().saturating_mul(p.work()) < SERIAL {
        out.chunks_exact_mut(p.n).enumerate().for_each(|(i, out)| row(i, out));
    } else {
        parts(out, p.n, &row);
    }
}
