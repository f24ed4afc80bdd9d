//! Values copied out of their step.

use crate::{Eager, Keep, Kept, Result, tensor::live_out::LiveOut, value::entry::Encoder};

impl<'s> Eager<'s> {
    /// Copies a value out of the step: its tensors get memory of their own, which later steps do not reuse.
    ///
    /// Each storage is copied once ([`CopySlot::Kept`](crate::CopySlot::Kept)), limited to the range that the
    /// kept views cover; its views remain views of one storage. Parameters and values that are already kept
    /// are not copied. Padding is cut off.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment),
    /// [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes),
    /// [`Error::NeverComputed`](crate::Error::NeverComputed) or
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn keep<O>(&self, value: &O) -> Result<Kept<<O as Keep<'static>>::At>>
    where
        O: LiveOut<'s> + Keep<'static>,
    {
        self.check("keep")?;
        let mut encoder = Encoder::of(self.rt);
        value.encode(&mut encoder);
        encoder.check("keep")?;
        let pieces = self.rt.keep(&encoder.entries)?;
        Ok(Kept::new(pieces, self.rt.id()))
    }
}
