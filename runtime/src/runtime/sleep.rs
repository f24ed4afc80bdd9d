//! Weights that give their memory back, and keep their addresses.

use crate::{Result, Runtime};

/// The fate of the contents of weights that [sleep](Runtime::sleep).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sleep {
    /// They are saved in memory of the host, and are there again after [`Runtime::wake`].
    Save,
    /// They are lost. After [`Runtime::wake`], each weight must be written
    /// ([`Param::write`](crate::Param::write), [`Weight::write_blocks`](crate::Weight::write_blocks)) before it is used, as when new
    /// weights come from a training that needed the memory meanwhile.
    Discard,
}

impl Runtime {
    /// Sets whether parameters and weights in blocks that are made from now on can [sleep](Self::sleep). Off by default. Call it before
    /// a model is loaded.
    ///
    /// Such weights lie in one arena, whose addresses are reserved once. A weight that is dropped leaves a gap for later ones there,
    /// and [`trim`](Self::trim) releases only what lies behind the last weight; other weights are memory of their own.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the device has no addresses left.
    pub fn weights_can_sleep(&mut self, on: bool) -> Result<()> {
        let core = self.core.get_mut();
        core.memory.let_weights_sleep(core.stream.backend_mut(), on)
    }

    /// Gives the memory of all weights back that [can sleep](Self::weights_can_sleep), for others to use. They keep their addresses and
    /// identities, so recordings stay valid, and none is made anew after [`wake`](Self::wake). Returns the number of bytes given back.
    ///
    /// Until then, using one of these weights is [`Error::Asleep`](crate::Error::Asleep), in every mode, whether it is replayed, read,
    /// written or viewed; everything else can be used, and they may be dropped. No further ones can be made. State, kept values and
    /// the arenas of tensors do not sleep ([`trim`](Self::trim) releases what recordings do not need of these), nor do weights that
    /// were made before [`weights_can_sleep`](Self::weights_can_sleep), nor [mapped](crate::Weight::is_mapped) ones, whose memory is
    /// the file's, and which the system takes back by itself when memory is short; those can be used meanwhile.
    ///
    /// On a GPU, memory goes back to the driver. Waits for the work of this runtime. If they sleep already, returns 0;
    /// [`Sleep::Discard`] then also gives up what was saved.
    ///
    /// ```
    /// use graphable::{Sleep, prelude::*};
    ///
    /// #[graphable]
    /// fn apply(#[host] #[dims(2)] x: &Tensor<f32>, by: &Param<f32>) -> Result<Tensor<f32>> {
    ///     ops::mul(x, by)
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let mut rt = Runtime::new(Device::cpu())?;
    /// rt.weights_can_sleep(true)?;
    /// let by = Param::new(&rt, &[2], &[3.0f32, 4.0])?;
    /// let graph = ApplyGraph::builder().build(&mut rt)?;
    /// graph.capture_all(&mut rt, &by)?;
    /// let recorded = rt.stats().recordings;
    ///
    /// rt.sleep(Sleep::Save)?;
    /// assert_eq!((rt.memory().weights.committed_bytes, rt.memory().sleeping_bytes), (0, 8));
    /// let step = rt.step()?;
    /// assert!(matches!(graph.call(&step, &[1.0, 1.0], &by), Err(Error::Asleep { .. })));
    /// drop(step);
    ///
    /// rt.wake()?;
    /// let step = rt.step()?;
    /// let y = graph.call(&step, &[1.0, 1.0], &by)?;
    /// assert_eq!(step.read(&y)?, [3.0, 4.0]);
    /// assert_eq!(rt_recordings(&step), recorded); // a replay
    /// # Ok(())
    /// # }
    /// # fn rt_recordings(step: &Step<'_>) -> u64 { step.stats().recordings }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Config`](crate::Error::Config) if no weight can sleep, and on a GPU whose driver cannot unmap memory;
    /// [`Error::InsideEstimate`](crate::Error::InsideEstimate) in the plan of an estimate; and errors of the device. The weights are
    /// awake then, and hold what they held.
    pub fn sleep(&mut self, contents: Sleep) -> Result<u64> {
        self.core.get_mut().estimate.refuse("sleep")?;
        // Recordings of dropped weights go first, and with them the weights.
        drop(self.begin_counted_step()?);
        let core = self.core.get_mut();
        core.memory.sleep(core.stream.backend_mut(), contents == Sleep::Save)
    }

    /// Takes memory for the weights that [sleep](Self::sleep) again, at their addresses, and restores what was saved. Returns the
    /// number of bytes taken; 0 if they do not sleep.
    ///
    /// # Errors
    /// Returns [`Error::OutOfMemory`](crate::Error::OutOfMemory) and errors of the device; the weights still sleep then, with what was
    /// saved, and can be woken again. Returns [`Error::InsideEstimate`](crate::Error::InsideEstimate) in the plan of an estimate.
    pub fn wake(&mut self) -> Result<u64> {
        self.core.get_mut().estimate.refuse("wake")?;
        drop(self.begin_counted_step()?);
        let core = self.core.get_mut();
        core.memory.wake(core.stream.backend_mut())
    }

    /// Returns whether the weights [sleep](Self::sleep).
    pub fn is_asleep(&self) -> bool {
        self.core.borrow().memory.are_weights_asleep()
    }
}
