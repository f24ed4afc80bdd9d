//! The target of compilation: the GPU itself, or an architecture that its driver can compile for it.

use std::borrow::Cow;

/// An architecture of the compiler's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One GPU's machine code, such as `sm_90a`.
    Machine(String),
    /// PTX of a virtual architecture, such as `compute_90`, which the driver compiles to machine code for any
    /// newer GPU.
    Virtual(String),
}

impl Target {
    /// As the compiler spells it.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Machine(name) | Self::Virtual(name) => Cow::Borrowed(name),
        }
    }

    /// Returns the targets that the driver can compile for a GPU and that a compiler may have produced, the
    /// newest first.
    pub(crate) fn older(capability: (u32, u32)) -> impl Iterator<Item = Self> {
        let oldest = if capability.0 >= 9 { 90 } else { 50 };
        (oldest..capability.0 * 10 + capability.1).rev().map(|n| Self::Virtual(format!("compute_{n}")))
    }

    /// Returns the target for a GPU, given the architectures that the compiler knows; `None` if those are
    /// unknown, in which case all are assumed.
    ///
    /// # Errors
    /// Returns the reason why the compiler cannot compile for it.
    pub(crate) fn of(arch: &str, capability: (u32, u32), known: Option<&[u32]>) -> Result<Self, String> {
        let number = capability.0 * 10 + capability.1;
        match known {
            None => Ok(Self::Machine(arch.to_owned())),
            Some(known) if known.contains(&number) => Ok(Self::Machine(arch.to_owned())),
            // The newest one older than the GPU, excluding those for a single generation (`compute_90a`).
            Some(known) => match known.iter().filter(|&&one| one < number).max() {
                // Such GPUs start a kernel before the one before it has ended, and only code for them waits.
                Some(newest) if *newest < 90 && capability.0 >= 9 => Err(format!(
                    "it compiles for compute capability up to {}.{}, and this GPU has {}.{}: version 12 or newer is \
                     needed (`pip install nvidia-cuda-nvrtc`, or GRAPHABLE_NVRTC)",
                    newest / 10,
                    newest % 10,
                    capability.0,
                    capability.1
                )),
                Some(newest) => Ok(Self::Virtual(format!("compute_{newest}"))),
                None => Err(format!(
                    "it compiles for compute capability {} and newer, and this GPU has {}.{}; an older version of it \
                     is needed: point GRAPHABLE_NVRTC at one",
                    known.iter().min().map_or("?".into(), |oldest| format!(
                        "{}.{}",
                        oldest / 10,
                        oldest % 10
                    )),
                    capability.0,
                    capability.1
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NVRTC_12_0: [u32; 11] = [50, 52, 53, 60, 61, 70, 75, 80, 86, 89, 90];

    fn of(arch: &str, capability: (u32, u32), known: &[u32]) -> Result<Target, String> {
        Target::of(arch, capability, Some(known))
    }

    #[test]
    fn a_known_gpu_gets_its_own_machine_code() {
        assert_eq!(of("sm_90a", (9, 0), &NVRTC_12_0), Ok(Target::Machine("sm_90a".into())));
        assert_eq!(of("sm_86", (8, 6), &NVRTC_12_0), Ok(Target::Machine("sm_86".into())));
        assert_eq!(Target::of("sm_90a", (9, 0), None), Ok(Target::Machine("sm_90a".into())));
    }

    #[test]
    fn code_that_does_not_wait_is_not_made_for_gpus_on_which_kernels_overlap() {
        for (arch, capability) in [("sm_90a", (9, 0)), ("sm_100a", (10, 0))] {
            let reason = of(arch, capability, &[75, 80, 86, 89]).unwrap_err();
            assert!(reason.contains("up to 8.9") && reason.contains("version 12"), "{reason}");
        }
    }

    #[test]
    fn an_unknown_gpu_gets_the_newest_that_its_driver_can_finish() {
        let newest = Ok(Target::Virtual("compute_90".into()));
        assert_eq!(of("sm_103a", (10, 3), &NVRTC_12_0), newest);
        assert_eq!(
            of("sm_120a", (12, 0), &[120, 90, 75].map(|n| n - 1)),
            Ok(Target::Virtual("compute_119".into()))
        );
        assert_eq!(
            of("sm_87", (8, 7), &NVRTC_12_0),
            Ok(Target::Virtual("compute_86".into())),
            "not a newer one"
        );
    }

    #[test]
    fn a_gpu_that_is_too_old_for_the_compiler_is_said() {
        let reason = of("sm_80", (8, 0), &[90, 100]).unwrap_err();
        assert!(
            reason.contains("9.0") && reason.contains("8.0") && reason.contains("GRAPHABLE_NVRTC"),
            "{reason}"
        );
    }
}
