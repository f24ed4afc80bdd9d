//! Values moved out of their step.

use crate::{Eager, Keep, Kept, Result, tensor::live_out::LiveOut, value::entry::Encoder};

impl<'s> Eager<'s> {
    /// Moves a value out of the step: its tensors get memory of their own, which no later step uses for
    /// anything else.
    ///
    /// Each storage is copied once ([`CopySlot::Kept`](crate::CopySlot::Kept)), and of it what the kept views
    /// show; views of it stay views of one storage. Parameters and what was kept before are not copied.
    /// Padding is cut off.
    ///
    /// # Errors
    /// [`Error::CapabilityInSegment`](crate::Error::CapabilityInSegment), [`Error::DifferentRuntimes`](crate::Error::DifferentRuntimes), [`Error::NeverComputed`](crate::Error::NeverComputed),
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
