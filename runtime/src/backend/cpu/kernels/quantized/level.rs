//! The instruction sets of the machine.

use std::sync::LazyLock;

/// The instructions with which products are computed. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Rust without instructions of a kind of its own.
    Plain,
    /// AVX2, with conversions of half precision.
    #[cfg(target_arch = "x86_64")]
    Avx2(Found),
    /// AVX2 and the integer products of AVX-512 VNNI, on vectors of 256 and 512 bits.
    #[cfg(target_arch = "x86_64")]
    Vnni(Found),
}

/// That the instructions of a level are there. Only this file makes one.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found(());

impl Level {
    /// The fastest that this machine has.
    pub(crate) fn best() -> Self {
        static BEST: LazyLock<Level> = LazyLock::new(|| Level::all().last().copied().unwrap_or(Level::Plain));
        *BEST
    }

    /// All that this machine has, from the slowest to the fastest.
    pub(crate) fn all() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
            let vnni = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni");
            let found = [avx2.then_some(Self::Avx2(Found(()))), vnni.then_some(Self::Vnni(Found(())))];
            [Self::Plain].into_iter().chain(found.into_iter().flatten()).collect()
        }
        #[cfg(not(target_arch = "x86_64"))]
        vec![Self::Plain]
    }
}
