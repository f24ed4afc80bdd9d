//! Random weights, of which no size takes longer to make than to copy: a sample, again and again.

use graphable::{BlockFormat, Runtime, Weight, prelude::*};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Elements of a sample, which every block size divides. Weights begin anew with it at other addresses, so no cache knows that they repeat.
const SAMPLE: usize = 1 << 18;
/// The largest weight. A product of rows that a norm has brought to one stays near one in models of these sizes.
const LARGEST: f32 = 0.03;

/// The weights of a model, in floats and in blocks.
pub(super) struct Random {
    sample: Vec<f32>,
}

impl Random {
    /// The same values at each start.
    pub(super) fn new() -> Self {
        let mut rng = StdRng::seed_from_u64(18);
        Self { sample: (0..SAMPLE).map(|_| rng.random_range(-LARGEST..LARGEST)).collect() }
    }

    /// A matrix in blocks of a format, or of floats.
    pub(super) fn weight<T: Float>(
        &self,
        rt: &Runtime,
        shape: &[usize; 2],
        format: Option<BlockFormat>,
    ) -> Result<Weight<T>> {
        let Some(format) = format else {
            return Ok(self.floats(rt, shape)?.into());
        };
        let row = format.row_bytes(shape[1]).unwrap_or_default();
        Weight::blocks(rt, shape, format, filled(&format.quantize(&self.sample)?, shape[0] * row))
    }

    /// A parameter of any shape.
    pub(super) fn floats<T: Float>(&self, rt: &Runtime, shape: &[usize]) -> Result<Param<T>> {
        let sample: Vec<T> = self.sample.iter().map(|&value| T::from_f64(value.into())).collect();
        Param::new(rt, shape, &filled(&sample, shape.iter().product()))
    }
}

/// A parameter of ones, such as the weight of a norm.
pub(super) fn ones<T: Float>(rt: &Runtime, size: usize) -> Result<Param<T>> {
    Param::new(rt, &[size], &vec![T::from_f64(1.0); size])
}

/// So many elements of a sample, which starts anew when it ends.
fn filled<E: Copy>(sample: &[E], mut count: usize) -> Vec<E> {
    let mut all = Vec::with_capacity(count);
    while count > 0 {
        let some = &sample[..count.min(sample.len())];
        all.extend_from_slice(some);
        count -= some.len();
    }
    all
}
