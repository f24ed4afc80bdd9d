//! Products by cuBLASLt, the algorithm chosen by measurement.
//!
//! How the backend uses it, per [`Op::MatMul`](crate::backend::Op::MatMul):
//!
//! ```text
//! let mut blas = Blas::open(context, &props, folder);   // once, the context being current
//!
//! match blas.plan(&inputs, &output)? {                  // at warm-up and at capture
//!     None => own kernel: kernels::scratch_bytes, kernels::launch
//!     Some(plan) => {
//!         if !plan.tuned && warming up {
//!             plan = blas.tune(&plan, &inputs, &output, &mut |blas, candidate| time(blas, candidate))?;
//!         }
//!         let scratch = alloc(plan.workspace);          // aligned to 256 bytes
//!         if plan.is_own() { kernels::launch(gpu, &launch, scratch)? }
//!         else { unsafe { blas.run(&plan, stream, Addresses::of(&inputs, &output), scratch)? } }
//!     }
//! }
//! ```
//!
//! A plan is plain data: it may be kept, and run with any addresses of the same alignment.
//! Nothing here waits, allocates on the device, or is needed at replay.

use std::{path::PathBuf, sync::Once};

use rustc_hash::FxHashMap;

use super::{Props, kernels};
use crate::{Error, Result, backend::View};

#[cfg(test)]
mod accuracy;
mod cache;
mod calls;
mod key;
mod library;
mod problem;
#[cfg(test)]
mod tests;

pub(crate) use calls::Addresses;
pub(crate) use key::Key;
pub(crate) use library::Algo;
pub(crate) use problem::{A, B, BIAS, Problem, Y};

use cache::Cache;
use calls::{Descriptors, Lt};

/// Algorithms of the library that are measured for one product.
const CANDIDATES: usize = 8;
/// Times within this factor of the best count as equal: the smaller workspace wins.
const TIE: f32 = 1.01;

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// One algorithm of the library.
    Library(Algo),
    /// Our own kernel, as `kernels::launch` picks it.
    Own,
}

/// How one product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What it is for.
    pub(crate) key: Key,
    /// Who computes.
    pub(crate) choice: Choice,
    /// Scratch that it needs, in bytes.
    pub(crate) workspace: u64,
    /// Whether it was measured, now or by an earlier process; else it is the heuristics' guess.
    pub(crate) tuned: bool,
}

impl Plan {
    /// Whether our own kernel computes it: [`Blas::run`] is not for it.
    pub(crate) fn is_own(&self) -> bool {
        self.choice == Choice::Own
    }
}

/// The library for one device, and what was chosen.
#[derive(Debug)]
pub(crate) struct Blas {
    lt: Lt,
    props: Props,
    cache: Option<Cache>,
    plans: FxHashMap<Key, Option<Plan>>,
    descriptors: FxHashMap<Key, Descriptors>,
}

impl Blas {
    /// Loads the library and makes its handle in the current context. Choices are kept in `folder`,
    /// if one is given.
    ///
    /// # Errors
    /// [`Error::NoDevice`], which names what was tried, without the library or a function of it;
    /// [`Error::Device`] when the library refuses the device.
    pub(crate) fn new(context: usize, props: &Props, folder: Option<PathBuf>) -> Result<Self> {
        let lt = Lt::new(context)?;
        let (version, path) = lt.version();
        tracing::debug!(version, path, "cuBLASLt loaded");
        let cache = folder.map(|folder| Cache::new(folder, &props.name, version));
        Ok(Self {
            lt,
            props: props.clone(),
            cache,
            plans: FxHashMap::default(),
            descriptors: FxHashMap::default(),
        })
    }

    /// As [`new`](Self::new); where it fails all products are left to our own kernels, and the first
    /// time in a process a warning says so.
    pub(crate) fn open(context: usize, props: &Props, folder: Option<PathBuf>) -> Option<Self> {
        static WARNED: Once = Once::new();
        match Self::new(context, props, folder) {
            Ok(blas) => Some(blas),
            Err(why) => {
                WARNED.call_once(|| {
                    tracing::warn!(%why, "matrix products run on graphable's own kernels, which are slower");
                });
                None
            }
        }
    }

    /// How to compute a product: as measured, or else as the heuristics guess. `None`: the library
    /// cannot, our own kernel must.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn plan(&mut self, inputs: &[View], output: &View) -> Result<Option<Plan>> {
        let Some(problem) = Problem::new(inputs, output) else { return Ok(None) };
        let Some(key) = Key::of(&problem) else { return Ok(None) };
        if let Some(plan) = self.plans.get(&key) {
            return Ok(*plan);
        }
        let plan = match self.remembered(&key, inputs, output)? {
            Some(plan) => Some(plan),
            None => self.candidates(&key)?.into_iter().next(),
        };
        self.plans.insert(key, plan);
        Ok(plan)
    }

    /// What an earlier process chose.
    fn remembered(&mut self, key: &Key, inputs: &[View], output: &View) -> Result<Option<Plan>> {
        let Some(choice) = self.cache.as_ref().and_then(|cache| cache.read(&key.text())) else {
            return Ok(None);
        };
        let workspace = match choice {
            Choice::Own => kernels::product_scratch(&self.props, inputs, output),
            Choice::Library(algo) => {
                let descriptors = described(&mut self.descriptors, &self.lt, key)?;
                let Some(bytes) = self.lt.accepts(descriptors, &algo) else {
                    tracing::warn!(
                        key = key.text(),
                        "the library refuses a cached algorithm; measuring again"
                    );
                    return Ok(None);
                };
                bytes
            }
        };
        Ok(Some(Plan { key: *key, choice, workspace, tuned: true }))
    }

    /// The library's algorithms for a key, the likely fastest first.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn candidates(&mut self, key: &Key) -> Result<Vec<Plan>> {
        let descriptors = described(&mut self.descriptors, &self.lt, key)?;
        let found = self.lt.candidates(key, descriptors, CANDIDATES)?;
        let plan =
            |(algo, workspace)| Plan { key: *key, choice: Choice::Library(algo), workspace, tuned: false };
        Ok(found.into_iter().map(plan).collect())
    }

    /// Measures the candidates, our own kernel for few rows among them, and keeps the fastest here
    /// and on disk. `time` runs a plan on memory like the product's own and gives the microseconds
    /// of one run; a candidate for which it fails is out.
    ///
    /// # Errors
    /// What `time` says, if it fails for all, or with [`Error::ContextLost`].
    pub(crate) fn tune(
        &mut self,
        plan: &Plan,
        inputs: &[View],
        output: &View,
        time: &mut dyn FnMut(&mut Self, &Plan) -> Result<f32>,
    ) -> Result<Plan> {
        let mut candidates = self.candidates(&plan.key)?;
        if kernels::product_is_thin(&self.props, inputs, output) {
            let workspace = kernels::product_scratch(&self.props, inputs, output);
            candidates.push(Plan { choice: Choice::Own, workspace, ..*plan });
        }
        let (mut best, micros) = fastest(&candidates, &mut |candidate| time(self, candidate))?;
        best.tuned = true;
        if let Some(cache) = &self.cache {
            cache.write(&best.key.text(), &best.choice, micros);
        }
        self.plans.insert(best.key, Some(best));
        Ok(best)
    }

    /// Puts a product on `stream`, or into the capture under way there.
    ///
    /// # Safety
    /// `stream` is a stream of the context that was current in [`new`](Self::new). The addresses
    /// show the operands that the plan was made for, or others of the same layout and alignment
    /// class; `workspace` shows [`Plan::workspace`] bytes, aligned to 256. All of it until the
    /// product has run.
    ///
    /// # Errors
    /// [`Error::Device`]; [`Error::Argument`] for a plan of our own kernel.
    pub(crate) unsafe fn run(
        &mut self,
        plan: &Plan,
        stream: *mut std::ffi::c_void,
        at: Addresses,
        workspace: u64,
    ) -> Result<()> {
        let Choice::Library(algo) = plan.choice else {
            return Err(Error::Argument {
                op: "matmul",
                why: "the plan is for our own kernel; launch that".into(),
            });
        };
        let descriptors = described(&mut self.descriptors, &self.lt, &plan.key)?;
        // SAFETY: what is asked of our caller is what is asked of us.
        unsafe { self.lt.matmul(descriptors, &algo, at, (workspace, plan.workspace), stream) }
    }
}

/// The descriptors of a key, made once.
fn described<'a>(
    all: &'a mut FxHashMap<Key, Descriptors>,
    lt: &Lt,
    key: &Key,
) -> Result<&'a mut Descriptors> {
    use std::collections::hash_map::Entry;
    match all.entry(*key) {
        Entry::Occupied(entry) => Ok(entry.into_mut()),
        Entry::Vacant(entry) => Ok(entry.insert(lt.describe(key)?)),
    }
}

/// The fastest candidate with its time; among equals the one with the smallest workspace, then the
/// first.
fn fastest(candidates: &[Plan], time: &mut dyn FnMut(&Plan) -> Result<f32>) -> Result<(Plan, f32)> {
    let mut times = Vec::with_capacity(candidates.len());
    let mut failed = None;
    for candidate in candidates {
        match time(candidate) {
            Ok(micros) if micros.is_finite() => times.push((*candidate, micros)),
            Ok(_) => {}
            Err(lost @ Error::ContextLost { .. }) => return Err(lost),
            Err(why) => {
                tracing::debug!(?candidate, %why, "a candidate cannot run");
                failed = Some(why);
            }
        }
    }
    let best = times.iter().map(|t| t.1).fold(f32::INFINITY, f32::min);
    let equals = times.into_iter().filter(|t| t.1 <= best * TIE);
    equals.min_by_key(|(plan, _)| plan.workspace).ok_or_else(|| {
        failed.unwrap_or_else(|| Error::Device {
            device: "cuBLASLt".into(),
            call: "tuning",
            why: "no algorithm gave a time".into(),
        })
    })
}
