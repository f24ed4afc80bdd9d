//! Convolutions by cuDNN, the algorithm chosen by its heuristics.
//!
//! The choice depends on shapes, the order of the dimensions in memory and the [`Numerics`](crate::Numerics), which are part of a
//! recording's key, so warm-up, captures, audits and eager calls of equal ones compute alike. Nothing here waits, allocates on the
//! device, or is needed at replay.

use std::sync::Once;

use rustc_hash::FxHashMap;

use super::kernels::{Convolution, ConvolutionAddresses, Fourier, Order};
use crate::{DType, Error, Result};

mod calls;
mod library;
#[cfg(test)]
mod tests;

use calls::{Algorithm, Calls, Descriptors};

/// Most bytes of workspace that an algorithm may ask for.
const WORKSPACE: u64 = 256 << 20;

/// A convolution that every version and device has.
const SMALL: Convolution = Convolution {
    dtype: DType::F32,
    order: Order::ChannelsLast,
    x: [1, 8, 8, 8],
    w: [8, 3, 3, 8],
    y: [1, 6, 6, 8],
    stride: [1; 2],
    padding: [0; 2],
    dilation: [1; 2],
    groups: 1,
    tf32: false,
    fourier: Fourier::Never,
};

#[derive(Debug)]
struct Plan {
    descriptors: Descriptors,
    algorithm: Algorithm,
}

/// The library for one device, and the choices made so far.
#[derive(Debug)]
pub(crate) struct Dnn {
    calls: Calls,
    /// `None`: the library cannot compute it.
    known: FxHashMap<Convolution, Option<Plan>>,
    /// The maximum number of known shapes: eager calls may have any number of them. Heuristics answer again as they did, so
    /// what is forgotten is not missed.
    bound: usize,
}

impl Dnn {
    /// Loads the library and makes a handle in the current context. If that, or the description of a small convolution, fails, convolutions are left to our own
    /// kernels, and the first time in a process this is logged. It is not tried again, because recordings and their bodies
    /// must agree.
    ///
    /// # Safety
    /// `stream` must be a stream of that context that lives until the result has been dropped.
    pub(crate) unsafe fn open(context: usize, stream: *mut std::ffi::c_void, bound: usize) -> Option<Self> {
        static LOGGED: Once = Once::new();
        // SAFETY: our caller must uphold the same requirement.
        let tried = unsafe { Calls::new(context, stream) }.and_then(|calls| {
            let dnn = Self { calls, known: FxHashMap::default(), bound };
            // An installation that lacks a part shows it here at the latest.
            dnn.choose(&SMALL).map(|plan| (dnn, plan.is_some()))
        });
        match tried {
            Ok((dnn, true)) => {
                let (version, path) = dnn.calls.version();
                tracing::debug!(version, path, "cuDNN loaded");
                Some(dnn)
            }
            Ok((_, false)) => {
                LOGGED.call_once(|| tracing::info!("cuDNN has no convolutions for this device"));
                None
            }
            Err(reason) => {
                LOGGED.call_once(|| {
                    tracing::info!(%reason, "convolutions run as copies of windows and matrix products, which are slower");
                });
                None
            }
        }
    }

    fn plan(&mut self, of: &Convolution) -> Result<Option<&mut Plan>> {
        if !self.known.contains_key(of) {
            let plan = self.choose(of)?;
            tracing::debug!(convolution = ?of, algorithm = ?plan.as_ref().map(|plan| plan.algorithm), "a convolution by cuDNN");
            if self.known.len() >= self.bound {
                self.known.clear();
            }
            self.known.insert(*of, plan);
        }
        Ok(self.known.get_mut(of).and_then(Option::as_mut))
    }

    /// Returns the number of known shapes.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Forgets all shapes.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    fn choose(&self, of: &Convolution) -> Result<Option<Plan>> {
        let Some(descriptors) = self.calls.describe(of)? else { return Ok(None) };
        let algorithms = self.calls.algorithms(of, &descriptors)?;
        let fits = |algorithm: &Algorithm| algorithm.workspace <= WORKSPACE;
        // Nobody asks for the transforms of Winograd, whose errors no switch names.
        let mut sums = algorithms.iter().filter(|a| !a.is_winograd());
        let algorithm = match of.fourier {
            Fourier::Never => sums.find(|a| !a.is_fourier() && fits(a)),
            Fourier::Allowed => sums.find(|a| fits(a)),
            Fourier::Only => algorithms.first().filter(|a| a.is_fourier() && fits(a)),
        };
        let algorithm = algorithm.copied();
        Ok(algorithm.map(|algorithm| Plan { descriptors, algorithm }))
    }

    /// Returns the workspace of a convolution, in bytes; `None` if the library cannot compute it.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(crate) fn workspace(&mut self, of: &Convolution) -> Result<Option<u64>> {
        Ok(self.plan(of)?.map(|plan| plan.algorithm.workspace))
    }

    /// Adds a convolution to the stream, or to the current capture there.
    ///
    /// # Safety
    /// The addresses must refer to the operands that `of` describes, aligned to 16 bytes, and `workspace` to as many bytes as
    /// [`workspace`](Self::workspace) asked for, aligned to 256; all of them must remain valid until the convolution has run.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(crate) unsafe fn run(
        &mut self,
        of: &Convolution,
        at: ConvolutionAddresses,
        workspace: u64,
    ) -> Result<()> {
        self.plan(of)?;
        let Some(Some(plan)) = self.known.get_mut(of) else {
            return Err(Error::Device {
                device: "cuDNN".into(),
                call: "launch",
                reason: "the library has no algorithm for this convolution".into(),
            });
        };
        // SAFETY: our caller must uphold the same requirements.
        unsafe { self.calls.forward(&mut plan.descriptors, plan.algorithm, at, workspace) }
    }
}
