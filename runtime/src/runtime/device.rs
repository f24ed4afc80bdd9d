//! Choosing a device.

#[cfg(feature = "cuda")]
use std::sync::Arc;
use std::{fmt, str::FromStr};

#[cfg(feature = "cuda")]
use crate::backend::cuda::{self, CudaBackend, CudaOptions};
use crate::{
    Error, Result,
    backend::{
        Backend,
        cpu::{CpuBackend, CpuOptions},
    },
};

/// The device of a [`Runtime`](crate::Runtime).
#[derive(Clone, Debug)]
pub struct Device(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Cpu(CpuOptions),
    #[cfg(feature = "cuda")]
    Cuda(usize, CudaOptions),
    #[cfg(feature = "cuda")]
    Stream(Arc<cudarc::driver::CudaStream>, CudaOptions),
}

impl Default for Device {
    fn default() -> Self {
        Self::cpu()
    }
}

impl Device {
    /// Returns the first GPU if one can be used, and the CPU otherwise.
    ///
    /// A driver that is present but cannot be used is logged as a `tracing` warning. Without the feature
    /// `cuda`, this is always the CPU.
    ///
    /// # Errors
    /// Currently none: the CPU is always available.
    pub fn best() -> Result<Self> {
        #[cfg(feature = "cuda")]
        match cuda::device_count() {
            Ok(0) => {}
            Ok(_) => match cuda::check(0) {
                Ok(()) => return Ok(Self::cuda(0)),
                Err(error) => {
                    tracing::warn!(target: "graphable::device", %error, "the GPU cannot be used; working on the CPU")
                }
            },
            Err(error) => tracing::debug!(target: "graphable::device", %error, "no GPU; working on the CPU"),
        }
        Ok(Self::cpu())
    }

    /// Returns the CPU, with all cores.
    pub fn cpu() -> Self {
        Self(Kind::Cpu(CpuOptions::default()))
    }

    /// Returns the CPU with options, such as the test mode.
    pub fn cpu_with(options: CpuOptions) -> Self {
        Self(Kind::Cpu(options))
    }

    /// Returns whether this is the CPU.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0, Kind::Cpu(_))
    }

    /// Checks that a runtime could currently be opened on the device: that a GPU of that number exists,
    /// together with everything that it needs. Nothing is allocated, so a lack of memory is not detected.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`] with what is missing.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Kind::Cpu(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Kind::Cuda(ordinal, _) => cuda::check(*ordinal),
            // A caller that has a stream has already opened the device.
            #[cfg(feature = "cuda")]
            Kind::Stream(..) => Ok(()),
        }
    }

    pub(crate) fn open(self) -> Result<Box<dyn Backend>> {
        Ok(match self.0 {
            Kind::Cpu(options) => Box::new(CpuBackend::new(options)?),
            #[cfg(feature = "cuda")]
            Kind::Cuda(ordinal, options) => Box::new(CudaBackend::new(ordinal, options)?),
            #[cfg(feature = "cuda")]
            Kind::Stream(stream, options) => Box::new(CudaBackend::on(stream, options)?),
        })
    }

    /// Parses `cuda:0` for this build.
    #[cfg(feature = "cuda")]
    fn named_cuda(ordinal: usize) -> Result<Self> {
        Ok(Self::cuda(ordinal))
    }

    /// Reports that this build has no `cuda:0`.
    #[cfg(not(feature = "cuda"))]
    fn named_cuda(ordinal: usize) -> Result<Self> {
        Err(Error::NoDevice {
            device: format!("cuda:{ordinal}"),
            reason: "graphable was built without its feature `cuda`".into(),
        })
    }
}

#[cfg(feature = "cuda")]
#[cfg_attr(docsrs, doc(cfg(feature = "cuda")))]
impl Device {
    /// Returns NVIDIA GPU number `ordinal`, from 0, in the numbering of the driver (`CUDA_VISIBLE_DEVICES`
    /// applies). The device is not opened until [`Runtime::new`](crate::Runtime::new).
    pub fn cuda(ordinal: usize) -> Self {
        Self::cuda_with(ordinal, CudaOptions::default())
    }

    /// Returns an NVIDIA GPU with options, such as the test mode.
    pub fn cuda_with(ordinal: usize, options: CudaOptions) -> Self {
        Self(Kind::Cuda(ordinal, options))
    }

    /// Selects the GPU of a stream of yours: work of the runtime goes to it, in order with your own launches.
    ///
    /// The stream must not be the default stream, nor wait for it: `context.new_stream()` makes one that
    /// can be captured. One runtime a stream; launch on it between the runtime's calls only, on the thread
    /// that makes them (see [`Eager::cuda_stream`](crate::Eager::cuda_stream)).
    pub fn cuda_stream(stream: Arc<cudarc::driver::CudaStream>) -> Self {
        Self::cuda_stream_with(stream, CudaOptions::default())
    }

    /// Selects the GPU of a stream as [`cuda_stream`](Self::cuda_stream) does, with options.
    pub fn cuda_stream_with(stream: Arc<cudarc::driver::CudaStream>, options: CudaOptions) -> Self {
        Self(Kind::Stream(stream, options))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Cpu(_) => f.write_str("cpu"),
            #[cfg(feature = "cuda")]
            Kind::Cuda(ordinal, _) => write!(f, "cuda:{ordinal}"),
            #[cfg(feature = "cuda")]
            Kind::Stream(stream, _) => write!(f, "cuda:{}", stream.context().ordinal()),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu`, `cuda:0` (or another number), `cuda` (the first GPU), or `auto` for [`Device::best`].
    fn from_str(s: &str) -> Result<Self, Error> {
        match s {
            "cpu" => Ok(Self::cpu()),
            // The second is what it was called first.
            "auto" | "best" => Self::best(),
            "cuda" => Self::named_cuda(0),
            _ => match s.strip_prefix("cuda:").and_then(|n| n.parse().ok()) {
                Some(ordinal) => Self::named_cuda(ordinal),
                None => Err(Error::NoDevice {
                    device: format!("device `{s}`"),
                    reason: "there are `cpu`, `cuda:0` (or another number) and `auto`".into(),
                }),
            },
        }
    }
}
