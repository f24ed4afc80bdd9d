//! Choosing a device.

use std::{fmt, str::FromStr, sync::Arc};

use crate::{
    Error, Result,
    backend::{
        Backend,
        cpu::{CpuBackend, CpuOptions},
        cuda::{self, CudaBackend, CudaOptions},
    },
};

/// Where a [`Runtime`](crate::Runtime) works.
#[derive(Clone, Debug)]
pub struct Device(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Cpu(CpuOptions),
    Cuda(usize, CudaOptions),
    Stream(Arc<cudarc::driver::CudaStream>, CudaOptions),
}

impl Default for Device {
    fn default() -> Self {
        Self::cpu()
    }
}

impl Device {
    /// The first GPU where there is one that can be used, else the CPU.
    ///
    /// A driver that is there but cannot be used is told through `tracing`, as a warning.
    ///
    /// # Errors
    /// None now: the CPU is always there.
    pub fn best() -> Result<Self> {
        match cuda::device_count() {
            Ok(0) => Ok(Self::cpu()),
            Ok(_) => match cuda::check(0) {
                Ok(()) => Ok(Self::cuda(0)),
                Err(error) => {
                    tracing::warn!(%error, "the GPU cannot be used; working on the CPU");
                    Ok(Self::cpu())
                }
            },
            Err(error) => {
                tracing::debug!(%error, "no GPU; working on the CPU");
                Ok(Self::cpu())
            }
        }
    }

    /// The CPU, all cores.
    pub fn cpu() -> Self {
        Self(Kind::Cpu(CpuOptions::default()))
    }

    /// The CPU with options, such as the test mode.
    pub fn cpu_with(options: CpuOptions) -> Self {
        Self(Kind::Cpu(options))
    }

    /// NVIDIA GPU number `ordinal`, from 0, as the driver counts them (`CUDA_VISIBLE_DEVICES` applies).
    /// Nothing is opened yet: [`Runtime::new`](crate::Runtime::new) does that.
    pub fn cuda(ordinal: usize) -> Self {
        Self::cuda_with(ordinal, CudaOptions::default())
    }

    /// An NVIDIA GPU with options, such as the test mode.
    pub fn cuda_with(ordinal: usize, options: CudaOptions) -> Self {
        Self(Kind::Cuda(ordinal, options))
    }

    /// The GPU of a stream of yours: work of the runtime goes to it, in order with your own launches.
    ///
    /// The stream must not be the default stream, nor wait for it: `context.new_stream()` makes one that
    /// can be captured. One runtime a stream; launch on it between the runtime's calls only, on the thread
    /// that makes them (see [`Eager::cuda_stream`](crate::Eager::cuda_stream)).
    pub fn cuda_stream(stream: Arc<cudarc::driver::CudaStream>) -> Self {
        Self(Kind::Stream(stream, CudaOptions::default()))
    }

    pub(crate) fn open(self) -> Result<Box<dyn Backend>> {
        Ok(match self.0 {
            Kind::Cpu(options) => Box::new(CpuBackend::new(options)?),
            Kind::Cuda(ordinal, options) => Box::new(CudaBackend::new(ordinal, options)?),
            Kind::Stream(stream, options) => Box::new(CudaBackend::on(stream, options)?),
        })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Cpu(_) => f.write_str("cpu"),
            Kind::Cuda(ordinal, _) => write!(f, "cuda:{ordinal}"),
            Kind::Stream(stream, _) => write!(f, "cuda:{}", stream.context().ordinal()),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu`, `cuda:0`, `cuda` (the first GPU) or `best`.
    fn from_str(s: &str) -> Result<Self, Error> {
        match s {
            "cpu" => Ok(Self::cpu()),
            "best" => Self::best(),
            "cuda" => Ok(Self::cuda(0)),
            _ => match s.strip_prefix("cuda:").and_then(|n| n.parse().ok()) {
                Some(ordinal) => Ok(Self::cuda(ordinal)),
                None => Err(Error::NoDevice {
                    device: format!("device `{s}`"),
                    why: "there are `cpu`, `cuda:0` (or another number) and `best`".into(),
                }),
            },
        }
    }
}
