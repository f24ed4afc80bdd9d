//! Choosing a device.

use std::{fmt, str::FromStr};

use crate::{
    Error, Result,
    backend::{
        Backend,
        cpu::{CpuBackend, CpuOptions},
    },
};

/// Where a [`Runtime`](crate::Runtime) works.
#[derive(Clone, Debug, Default)]
pub struct Device(CpuOptions);

impl Device {
    /// The best device of this machine.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is none; the CPU is always there.
    pub fn best() -> Result<Self> {
        Ok(Self::cpu())
    }

    /// The CPU, all cores.
    pub fn cpu() -> Self {
        Self::default()
    }

    /// The CPU with options, such as the test mode.
    pub fn cpu_with(options: CpuOptions) -> Self {
        Self(options)
    }

    pub(crate) fn open(self) -> Result<Box<dyn Backend>> {
        Ok(Box::new(CpuBackend::new(self.0)?))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cpu")
    }
}

impl FromStr for Device {
    type Err = Error;

    /// `cpu` or `best`.
    fn from_str(s: &str) -> Result<Self, Error> {
        match s {
            "cpu" => Ok(Self::cpu()),
            "best" => Self::best(),
            _ => Err(Error::NoDevice {
                device: format!("device `{s}`"),
                why: "this build knows `cpu` and `best`".into(),
            }),
        }
    }
}
