//! Random views, and references for the kernels' tests.

use bytemuck::Pod;
use rand::{Rng, rngs::StdRng, seq::SliceRandom};

use super::{Real, Strided};
use crate::value::layout::Layout;

/// A view with memory of its own. Elements outside the view are poison (NaN for floats).
#[derive(Clone)]
pub(crate) struct Owned<T> {
    data: Vec<T>,
    start: usize,
    pub(crate) layout: Layout,
}

impl<T: Pod> Owned<T> {
    /// Random axis order and gaps; the axes in `repeated` have stride 0.
    pub(crate) fn new(
        rng: &mut StdRng,
        shape: &[usize],
        repeated: &[usize],
        poison: T,
        mut value: impl FnMut(&mut StdRng) -> T,
    ) -> Self {
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        if rng.random() {
            axes.shuffle(rng);
        }
        let (mut strides, mut stride) = (vec![0; shape.len()], rng.random_range(1..3));
        for &axis in axes.iter().rev() {
            if !repeated.contains(&axis) {
                strides[axis] = stride;
                stride = stride * shape[axis].max(1) + if rng.random_bool(0.3) { 3 } else { 0 };
            }
        }
        let layout = Layout::strided(shape, &strides).unwrap();
        let mut data = vec![poison; layout.span()];
        for i in 0..layout.count() {
            data[super::offset_at(i, shape, &strides)] = value(rng);
        }
        Self { data, start: 0, layout }
    }

    pub(crate) fn view(&self) -> Strided<'_, T> {
        let data = &self.data[self.start..];
        Strided { data: &data[..self.layout.span()], layout: self.layout }
    }

    /// The same view `by` elements further.
    pub(crate) fn moved(&self, by: usize) -> Self {
        let mut data = vec![T::zeroed(); by];
        data.extend(&self.data);
        Self { data, start: self.start + by, layout: self.layout }
    }

    pub(crate) fn at(&self, index: &[usize]) -> T {
        self.data[self.start + self.layout.offset_of(index)]
    }

    pub(crate) fn set(&mut self, index: &[usize], value: T) {
        self.data[self.start + self.layout.offset_of(index)] = value;
    }
}

/// Values in `-1..1`.
pub(crate) fn floats<T: Real>(rng: &mut StdRng, shape: &[usize], repeated: &[usize]) -> Owned<T> {
    Owned::new(rng, shape, repeated, T::narrow(f32::NAN), |rng| T::narrow(rng.random_range(-1.0..1.0)))
}

/// Half an ulp, relative: the error of rounding to `T` once.
pub(crate) fn rounding<T: Real>() -> f64 {
    let mut ulp = 1.0f32;
    while T::narrow(1.0 + ulp / 2.0).widen() != 1.0 {
        ulp /= 2.0;
    }
    f64::from(ulp) / 2.0
}

/// Asserts `|got - want| <= bound` plus one rounding to `T`; NaN and infinities must be equal.
#[track_caller]
pub(crate) fn near<T: Real>(got: T, want: f64, bound: f64, what: impl std::fmt::Debug) {
    let got = f64::from(got.widen());
    let same = got == want || (got.is_nan() && want.is_nan());
    // The least normal f16 is 2^-14: below it the spacing is 2^-24.
    let bound = bound + 1.01 * rounding::<T>() * want.abs() + 3e-8;
    assert!(same || (got - want).abs() <= bound, "{what:?}: got {got}, want {want} within {bound}");
}

/// Asserts that `run(shift)`, which may move its operands by `shift` elements, returns the same bits at every
/// address and with any number of threads.
#[track_caller]
pub(crate) fn stable<T: Pod + Send>(run: impl Fn(usize) -> Vec<T> + Sync) {
    let bits = |threads: usize, shift: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        bytemuck::cast_slice::<T, u8>(&pool.install(|| run(shift))).to_vec()
    };
    let first = bits(1, 0);
    for (threads, shift) in [(2, 0), (3, 1), (1, 5), (2, 3)] {
        assert!(first == bits(threads, shift), "{threads} threads, moved by {shift}");
    }
}
