//! Chains for passes over recordings, which know operations and no kernels.

use super::{Chain, Elementwise, Step};
use crate::backend::{ElementStep, JoinsElements, Op};

/// Joins kernels of elements.
pub(in crate::kernel) static JOINER: Joiner = Joiner;

/// Joins kernels of elements.
#[derive(Debug)]
pub(in crate::kernel) struct Joiner;

impl JoinsElements for Joiner {
    fn most(&self) -> [usize; 3] {
        [Chain::MOST_STEPS, Chain::MOST_INPUTS, Chain::MOST_OUTPUTS]
    }

    fn join(&self, steps: Vec<ElementStep>, inputs: usize, outputs: &[(u8, u8)]) -> Option<Op> {
        let steps: Option<Vec<Step>> = steps.iter().map(step).collect();
        Some(Chain::new(steps?, inputs, outputs)?.into())
    }
}

fn step(of: &ElementStep) -> Option<Step> {
    let kernel = Elementwise::of(&of.op)?;
    Some(Step {
        definition: kernel.definition,
        constants: kernel.constants.into(),
        arguments: of.sources.clone(),
        stored: of.stored.clone(),
    })
}
