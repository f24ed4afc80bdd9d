//! The instruction sets of the machine.

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected;
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
    /// NEON, which every machine that Rust's standard library is compiled for has.
    #[cfg(target_arch = "aarch64")]
    Neon(Found),
    /// NEON with dot products of four bytes each (`FEAT_DotProd`).
    #[cfg(target_arch = "aarch64")]
    DotProd(Found),
}

/// That the instructions of a level are there. Only this file makes one.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
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
        #[cfg(target_arch = "aarch64")]
        {
            let neon = is_aarch64_feature_detected!("neon");
            let dotprod = neon && is_aarch64_feature_detected!("dotprod");
            let found = [neon.then_some(Self::Neon(Found(()))), dotprod.then_some(Self::DotProd(Found(())))];
            [Self::Plain].into_iter().chain(found.into_iter().flatten()).collect()
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        vec![Self::Plain]
    }
}
