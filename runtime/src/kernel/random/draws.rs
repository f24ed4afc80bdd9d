//! The random numbers that a launch of a kernel of elements or rows takes.

use smallvec::SmallVec;

use super::{
    super::{
        constants::Constants,
        definition::{Compute, Definition, Padded},
    },
    Random, block,
};
use crate::{
    RngState,
    backend::{View, cpu::Access},
    base::rank::MAX_RANK,
};

/// The inputs after the tensors in a launch: a generator for each parameter that is a random number, and the
/// real sizes of padded dimensions.
#[derive(Debug, Default, Hash)]
pub(in crate::kernel) struct Draws {
    /// For each of these parameters: how many before it draw from the same generator.
    pub(in crate::kernel) ahead: SmallVec<[u32; 2]>,
    /// Of a kernel of elements, the padded dimensions of the results, without the outermost: it does not change the index of an
    /// element. Of a kernel of rows, all padded dimensions outside the rows.
    pub(in crate::kernel) padded: Padded,
}

impl Draws {
    /// Of a launch that draws nothing.
    pub(in crate::kernel) fn none(padded: Padded) -> Self {
        Self { padded, ..Self::default() }
    }

    /// The tensors, the generators and the real sizes among the inputs of a launch.
    pub(in crate::kernel) fn split<'l>(
        &self,
        definition: &Definition,
        constants: &Constants,
        inputs: &'l [View],
    ) -> [&'l [View]; 3] {
        let is_tensor = |i: usize, compute: Compute| {
            compute != Compute::Random && constants.get(i).copied().flatten().is_none()
        };
        let all = definition.inputs.iter().enumerate();
        let tensors = all.filter(|(i, (_, compute))| is_tensor(*i, *compute)).count();
        let (tensors, rest) = inputs.split_at(tensors.min(inputs.len()));
        let (generators, real) = rest.split_at(self.ahead.len().min(rest.len()));
        [tensors, generators, real]
    }
}

/// The numbers of a launch from one generator, in host memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Numbers {
    /// The generator, and the number of the call.
    state: RngState,
    /// If a dimension besides the outermost is padded.
    places: Option<Places>,
}

/// The sizes of a result, innermost first.
#[derive(Clone, Copy, Debug)]
struct Places {
    rank: usize,
    /// Each with its real size.
    sizes: [(usize, usize); MAX_RANK],
}

impl Numbers {
    /// For each parameter that is a random number.
    pub(in crate::kernel) fn of<'n>(
        draws: &'n Draws,
        access: &'n Access<'_>,
        generators: &'n [View],
        real: &[View],
        result: &View,
    ) -> impl Iterator<Item = Self> + 'n {
        let places = (!draws.padded.is_empty()).then(|| Places::new(draws.padded, access, real, result));
        let all = generators.iter().zip(&draws.ahead);
        all.map(move |(view, ahead)| Self { state: generator(access, view).after(*ahead), places })
    }

    /// The words of elements from `start` on.
    pub(in crate::kernel) fn fill(&self, start: usize, first: &mut [u32], second: &mut [u32]) {
        let mut known: Option<(u64, [u32; 4])> = None;
        for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
            let index = self.places.map_or(start + i, |places| places.unpadded(start + i)) as u64;
            let number = index / 2;
            let words = match known {
                Some((of, words)) if of == number => words,
                _ => block(self.state, number),
            };
            known = Some((number, words));
            (*first, *second) = Random::of_block(words, index).words();
        }
    }
}

/// The words of consecutive elements, from the index `start` on.
pub(in crate::kernel) fn fill(state: RngState, start: u64, all: &mut [[u32; 2]]) {
    let mut known = block(state, start / 2);
    for (index, words) in (start..).zip(all) {
        if index.is_multiple_of(2) {
            known = block(state, index / 2);
        }
        *words = Random::of_block(known, index).words().into();
    }
}

/// The state of a generator in host memory.
pub(in crate::kernel) fn generator(access: &Access<'_>, view: &View) -> RngState {
    match access.slice::<u32>(view) {
        [a, b, c, d, ..] => RngState::of_words([*a, *b, *c, *d]),
        _ => RngState::default(),
    }
}

impl Places {
    fn new(padded: Padded, access: &Access<'_>, real: &[View], result: &View) -> Self {
        let shape = result.layout.shape();
        let mut sizes = [(1, 1); MAX_RANK];
        for (to, size) in sizes.iter_mut().zip(shape.iter().rev()) {
            *to = (*size, *size);
        }
        for (axis, view) in padded.axes().zip(real) {
            if let Some((size, real)) = shape.len().checked_sub(axis + 1).and_then(|at| sizes.get_mut(at)) {
                *real = (*size).min(access.count(view));
            }
        }
        Self { rank: shape.len(), sizes }
    }

    /// The index of element `n` of the result among those that are not padding.
    fn unpadded(&self, mut n: usize) -> usize {
        let (mut index, mut weight) = (0, 1);
        for (size, real) in &self.sizes[..self.rank] {
            index += n % size * weight;
            weight *= real;
            n /= size;
        }
        index
    }
}
