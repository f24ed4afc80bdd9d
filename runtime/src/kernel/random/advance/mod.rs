//! The operations that change a generator: a call that drew from it has been made, or a generator is derived from it.
//!
//! The numbers of a call depend on the counter that its kernel finds in memory, and the counter moves by an operation of
//! its own, behind that kernel. So a recording has no counter: warm-up, replays, audits and eager calls all go on from
//! what is in memory, and whatever saves and restores state does so here.

use std::hash::Hasher;

use super::{
    Random,
    philox::{philox, words},
};
#[cfg(feature = "cuda")]
use crate::backend::cuda::kernels::Submit;
use crate::{
    Result, Rng, Scope,
    backend::{
        Launch, Op, Operation, View,
        cpu::{Access, Fault},
    },
};

#[cfg(feature = "cuda")]
mod cuda;

/// `[] -> [generator]`, in place: so many calls have been made.
#[derive(Debug)]
struct Advance(u32);

/// `[] -> [parent, child]`, in place: the child begins where nothing of the parent's numbers can be found again, and the
/// parent has made one call.
#[derive(Debug)]
struct Fork;

/// A generator in memory: the words of its seed, and of the number of its next call.
fn generator<'a>(access: &Access<'a>, view: &View) -> Option<&'a mut [u32; 4]> {
    access.slice_mut::<u32>(view).first_chunk_mut()
}

fn advance([_, _, low, high]: &mut [u32; 4], by: u32) {
    let call = u64::from(*high) << 32 | u64::from(*low);
    [*low, *high] = words(call.wrapping_add(by.into()));
}

impl Operation for Advance {
    fn name(&self) -> &'static str {
        "advance"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u32(self.0);
    }

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        if let Some(generator) = generator(access, &launch.outputs[0]) {
            advance(generator, self.0);
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::advance(gpu, &launch.outputs[0], self.0)
    }
}

impl Operation for Fork {
    fn name(&self) -> &'static str {
        "fork"
    }

    fn parameters(&self, _: &mut dyn Hasher) {}

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        let [parent, child] = [0, 1].map(|i| generator(access, &launch.outputs[i]));
        if let (Some(parent), Some(child)) = (parent, child) {
            let [seed, above, call, after] = *parent;
            let (low, high) = Random::of_block(philox([0, 0, call, after], [seed, above]), 0).words();
            *child = [low, high, 0, 0];
            advance(parent, 1);
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::fork(gpu, &launch.outputs[0], &launch.outputs[1])
    }
}

/// Notes that `by` calls have drawn from the generator at `state`.
///
/// # Errors
/// Returns errors of the device, and those of an operation that writes state.
pub(in crate::kernel) fn advance_by(scope: Scope<'_>, state: View, by: u32) -> Result<()> {
    let op = match by {
        1 => const { Op::fixed(&Advance(1)) },
        _ => Advance(by).into(),
    };
    scope.launch(op, &[], &[state])
}

/// Derives `child` from `parent`.
///
/// # Errors
/// Returns errors of the device, and those of an operation that writes state.
pub(crate) fn fork(scope: Scope<'_>, parent: &Rng, child: &Rng) -> Result<()> {
    let states = [parent.operand("fork", scope)?, child.operand("fork", scope)?];
    scope.launch(const { Op::fixed(&Fork) }, &[], &states)
}
