//! The sizes of the operands of a launch, by kind.

use super::View;

/// The sizes of the operands of a launch, as the device sees them: those of padded dimensions are the bucket's.
#[derive(Clone, Copy, Debug)]
pub struct Shapes<'a> {
    pub(crate) inputs: &'a [View],
    pub(crate) outputs: &'a [View],
    pub(crate) states: &'a [View],
}

fn sizes(views: &[View], index: usize) -> &[usize] {
    views.get(index).map_or(&[], |view| view.layout.shape())
}

impl<'a> Shapes<'a> {
    /// Returns the sizes of an input, by the order of the inputs and views of the call; none if there is no such input.
    pub fn input(&self, index: usize) -> &'a [usize] {
        sizes(self.inputs, index)
    }

    /// Returns the sizes of an output.
    pub fn output(&self, index: usize) -> &'a [usize] {
        sizes(self.outputs, index)
    }

    /// Returns the sizes of a state that is written.
    pub fn state(&self, index: usize) -> &'a [usize] {
        sizes(self.states, index)
    }
}
