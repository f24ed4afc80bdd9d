//! Sources of kernels, made once for each variant and kept as long as their code is.

use std::{
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use rustc_hash::FxHashMap;

use crate::backend::cuda::kernels::SourceFile;

/// Arithmetic as the language defines it. Generic lambdas run on the device, too.
const OPTIONS: &[&str] = &[
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--device-as-default-execution-space",
];

/// The source of a variant, and the name of its entry.
pub(crate) struct Instance {
    pub(crate) source: SourceFile,
    pub(crate) entry: String,
}

/// The instances of one kind of kernels. The process keeps them: at most as many as its kernels have variants.
pub(super) struct Instances<V>(Mutex<Option<FxHashMap<V, &'static Instance>>>);

impl<V: Eq + Hash> Instances<V> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the instance of a variant, whose entry and text `write` returns if there is none yet. `name` is that of its
    /// source in messages.
    pub(super) fn of(
        &self,
        name: &'static str,
        variant: V,
        write: impl FnOnce(&V) -> (String, String),
    ) -> &'static Instance {
        let mut instances = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        instances.get_or_insert_default().entry(variant).or_insert_with_key(|variant| {
            let (entry, text) = write(variant);
            Box::leak(Box::new(Instance { source: source(name, text), entry }))
        })
    }
}

/// A source in the language of kernels.
pub(super) fn source(name: &'static str, text: String) -> SourceFile {
    SourceFile::ours(name, text.leak()).with_options(OPTIONS)
}
