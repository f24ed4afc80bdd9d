//! Floating-point elements as the kernels see them: loaded into f32, computed, rounded once.

use bytemuck::Pod;
use half::{bf16, f16, slice::HalfFloatSliceExt};

use crate::value::layout::Layout;

#[cfg(test)]
pub(crate) mod testing;

/// An element that kernels compute with in f32.
pub(crate) trait Real: Pod + Send + Sync {
    /// The exact value.
    fn widen(self) -> f32;
    /// The nearest element.
    fn narrow(value: f32) -> Self;
    /// Exact values of `src`; the lengths are equal.
    fn load(src: &[Self], dst: &mut [f32]);
    /// Nearest elements of `src`; the lengths are equal.
    fn store(src: &[f32], dst: &mut [Self]);
    /// The elements themselves, if they are f32: saves the copy.
    fn as_f32(src: &[Self]) -> Option<&[f32]>;
    /// As [`as_f32`](Self::as_f32), to write to.
    fn as_f32_mut(dst: &mut [Self]) -> Option<&mut [f32]>;
}

impl Real for f32 {
    fn widen(self) -> f32 {
        self
    }
    fn narrow(value: f32) -> Self {
        value
    }
    fn load(src: &[Self], dst: &mut [f32]) {
        dst.copy_from_slice(src);
    }
    fn store(src: &[f32], dst: &mut [Self]) {
        dst.copy_from_slice(src);
    }
    fn as_f32(src: &[Self]) -> Option<&[f32]> {
        Some(src)
    }
    fn as_f32_mut(dst: &mut [Self]) -> Option<&mut [f32]> {
        Some(dst)
    }
}

macro_rules! half_real {
    ($t:ty, $load:expr) => {
        impl Real for $t {
            fn widen(self) -> f32 {
                self.to_f32()
            }
            fn narrow(value: f32) -> Self {
                Self::from_f32(value)
            }
            fn load(src: &[Self], dst: &mut [f32]) {
                $load(src, dst);
            }
            fn store(src: &[f32], dst: &mut [Self]) {
                dst.convert_from_f32_slice(src);
            }
            fn as_f32(_: &[Self]) -> Option<&[f32]> {
                None
            }
            fn as_f32_mut(_: &mut [Self]) -> Option<&mut [f32]> {
                None
            }
        }
    };
}

half_real!(f16, |src: &[f16], dst: &mut [f32]| src.convert_to_f32_slice(dst));
// bf16 is the upper half of f32. `half` looks for NaN first, which costs up to a third of the speed.
half_real!(bf16, |src: &[bf16], dst: &mut [f32]| {
    for (to, from) in dst.iter_mut().zip(src) {
        *to = f32::from_bits(u32::from(from.to_bits()) << 16);
    }
});

/// A typed view: the elements it spans, and how they are laid out.
#[derive(Clone, Copy)]
pub(crate) struct Strided<'a, T> {
    /// From the first element of the view to the last that it touches.
    pub(crate) data: &'a [T],
    /// Shape and strides over `data`.
    pub(crate) layout: Layout,
}

/// `dst[i] = src[offset + i * stride]`, in f32.
pub(crate) fn gather<T: Real>(src: &[T], offset: usize, stride: usize, dst: &mut [f32]) {
    if dst.is_empty() {
        return;
    }
    if stride == 1 {
        T::load(&src[offset..offset + dst.len()], dst);
    } else if stride == 0 {
        dst.fill(src[offset].widen());
    } else {
        for (to, from) in dst.iter_mut().zip(src[offset..].iter().step_by(stride)) {
            *to = from.widen();
        }
    }
}

/// Offset of the `linear`-th element, in row-major order, of a view of `shape` and `strides`.
pub(crate) fn offset_at(mut linear: usize, shape: &[usize], strides: &[usize]) -> usize {
    let mut offset = 0;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        offset += linear % n * stride;
        linear /= n;
    }
    offset
}
