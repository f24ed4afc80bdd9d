//! The lists in which a launch collects its arguments. A thread uses them again, so that a launch allocates none.

use std::cell::Cell;

use super::argument::Argument;
use crate::{Error, backend::View, value::layout::PaddedDims};

/// The operands that were named so far.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) arguments: Vec<Argument>,
    pub(super) inputs: Vec<View>,
    pub(super) input_marks: Vec<PaddedDims>,
    /// If an input is padded.
    pub(super) is_padded: bool,
    pub(super) outputs: Vec<View>,
    pub(super) output_marks: Vec<PaddedDims>,
    pub(super) states: Vec<View>,
    pub(super) real_sizes: Vec<View>,
    /// The symbols whose real size is passed.
    pub(super) counted: Vec<u8>,
    /// The first mistake.
    pub(super) mistake: Option<Error>,
}

impl Lists {
    fn clear(&mut self) {
        let Self {
            arguments,
            inputs,
            input_marks,
            is_padded,
            outputs,
            output_marks,
            states,
            real_sizes,
            counted,
            mistake,
        } = self;
        arguments.clear();
        inputs.clear();
        input_marks.clear();
        *is_padded = false;
        outputs.clear();
        output_marks.clear();
        states.clear();
        real_sizes.clear();
        counted.clear();
        *mistake = None;
    }
}

thread_local! {
    /// Empty lists that no launch of the thread uses.
    static CACHED: Cell<Option<Box<Lists>>> = const { Cell::new(None) };
}

/// The lists of one launch, which go back to the thread with it.
#[derive(Debug)]
pub(super) struct Parts(Option<Box<Lists>>);

impl Parts {
    #[inline]
    pub(super) fn new() -> Self {
        // No lists are kept once the thread is ending.
        let cached = CACHED.try_with(Cell::take).ok().flatten();
        Self(Some(cached.unwrap_or_default()))
    }

    #[inline]
    pub(super) fn lists(&mut self) -> &mut Lists {
        self.0.get_or_insert_default()
    }

    /// Returns the arguments so far.
    pub(super) fn arguments(&self) -> &[Argument] {
        self.0.as_ref().map_or(&[], |lists| &lists.arguments)
    }
}

impl Drop for Parts {
    #[inline]
    fn drop(&mut self) {
        let Some(mut lists) = self.0.take() else { return };
        lists.clear();
        let _ = CACHED.try_with(|cached| cached.set(Some(lists)));
    }
}
