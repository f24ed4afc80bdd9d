//! Products by cuBLASLt, the algorithm chosen by measurement.
//!
//! The backend uses it as follows, for each [`Product`]:
//!
//! ```text
//! let mut blas = Blas::open(context, &props, disk, plans);   // once, the context being current
//!
//! match blas.plan(product)? {                           // at warm-up and at capture
//!     None => product.kernels
//!     Some(plan) => {
//!         if !plan.tuned && warming up && !blas.is_fixed(&plan) {
//!             plan = blas.tune(&plan, product, &mut |blas, candidate| time(blas, candidate))?;
//!         }
//!         let workspace = alloc(plan.workspace);          // aligned to 256 bytes
//!         if plan.is_own() { product.kernels.launch(gpu, product.inputs, product.output, workspace)? }
//!         else { unsafe { blas.run(&plan, stream, Addresses::of(&inputs, &output), workspace)? } }
//!     }
//! }
//! ```
//!
//! A plan is plain data: it can be stored, and run with any addresses of the same alignment. Products in a
//! recording pin theirs: the body must keep using the recorded plan, or an audit would compare two
//! algorithms. Nothing here waits, allocates on the device, or is needed at replay.

use std::sync::Once;

use super::{DeviceProperties, disk::Disk, kernels::Product};
use crate::{CacheStats, Error, Result};

#[cfg(test)]
mod accuracy;
mod cache;
mod calls;
mod key;
mod library;
mod pinned;
pub(crate) mod problem;
#[cfg(test)]
mod tests;

pub(crate) use calls::Addresses;
pub(crate) use key::Key;
pub(crate) use library::Algo;
pub(crate) use pinned::Pin;
use problem::Problem;

use cache::Cache;
use calls::{Descriptors, Lt, Workspace};
use pinned::PinnedMap;

/// Algorithms of the library that are measured for one product.
const CANDIDATES: usize = 8;
/// Times within this factor of the best count as equal: the smaller workspace wins.
const TIE: f32 = 1.01;

/// The implementation of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// One algorithm of the library.
    Library(Algo),
    /// The kernels that came with the product.
    Own,
}

/// The way in which one product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The product that it is for.
    pub(crate) key: Key,
    /// The implementation.
    pub(crate) choice: Choice,
    /// Workspace that it needs, in bytes.
    pub(crate) workspace: u64,
    /// Set if it was measured, now or by an earlier process; otherwise it is the heuristics' guess.
    pub(crate) tuned: bool,
}

impl Plan {
    /// Returns true if the kernels that came with the product compute it: [`Blas::run`] must not be called for it.
    pub(crate) fn is_own(&self) -> bool {
        self.choice == Choice::Own
    }
}

/// The known facts about one product.
#[derive(Debug)]
struct Known {
    /// `None`: the library cannot compute it.
    plan: Option<Plan>,
    descriptors: Descriptors,
}

/// The library for one device, and the choices made so far.
#[derive(Debug)]
pub(crate) struct Blas {
    lt: Lt,
    props: DeviceProperties,
    cache: Option<Cache>,
    /// Bounded besides those of recordings: eager calls may have any number of shapes.
    known: PinnedMap<Key, Known>,
    measured: u64,
    on_disk: u64,
}

impl Blas {
    /// Loads the library and makes its handle in the current context. Choices are kept on `disk`; at most `plans` are
    /// known, besides those of recordings.
    ///
    /// # Errors
    /// Returns [`Error::NoDevice`], which names the files that were tried, if the library or one of its
    /// functions is missing, and [`Error::Device`] if the library rejects the device.
    pub(crate) fn new(context: usize, props: &DeviceProperties, disk: &Disk, plans: usize) -> Result<Self> {
        let lt = Lt::new(context)?;
        let (version, path) = lt.version();
        tracing::debug!(version, path, "cuBLASLt loaded");
        let cache = Cache::new(disk, &props.name, version);
        let known = PinnedMap::new(plans);
        Ok(Self { lt, props: props.clone(), cache, known, measured: 0, on_disk: 0 })
    }

    /// Like [`new`](Self::new). If it fails, all products are left to our own kernels, and the first time in
    /// a process a warning is logged. It is not tried again, because recordings and their bodies must agree.
    pub(crate) fn open(context: usize, props: &DeviceProperties, disk: &Disk, plans: usize) -> Option<Self> {
        static WARNED: Once = Once::new();
        match Self::new(context, props, disk, plans) {
            Ok(blas) => Some(blas),
            Err(reason) => {
                WARNED.call_once(|| {
                    tracing::warn!(%reason, "matrix products run on graphable's own kernels, which are slower");
                });
                None
            }
        }
    }

    /// Returns how to compute a product: as measured, or otherwise as the heuristics guess. `None` means that
    /// the library cannot compute it, and the product's kernels must.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(crate) fn plan(&mut self, product: Product<'_>) -> Result<Option<Plan>> {
        let Some(key) = self.key(product) else { return Ok(None) };
        if let Some(known) = self.known.get(&key) {
            return Ok(known.plan);
        }
        let descriptors = self.lt.describe(&key)?;
        let plan = match self.remembered(&key, &descriptors, product) {
            Some(plan) => {
                self.on_disk += 1;
                Some(plan)
            }
            None => guessed(&self.lt, &key, &descriptors)?.into_iter().next(),
        };
        self.known.insert(key, Known { plan, descriptors });
        Ok(plan)
    }

    /// Returns the key of a request to the library; `None` if it cannot compute the product.
    fn key(&self, product: Product<'_>) -> Option<Key> {
        let key = Problem::new(product.inputs, product.output).as_ref().and_then(Key::of)?;
        Some(key.with_numerics(product.numerics, self.props.has_tf32()))
    }

    /// Fixes the plan of a product that goes into a recording: while the pin lives it is not measured anew,
    /// and not forgotten. `None` for a product that was not [planned](Self::plan), for which its own kernels
    /// are the only way.
    pub(crate) fn pin(&self, product: Product<'_>) -> Option<Pin> {
        self.known.pin(&self.key(product)?)
    }

    /// Returns whether this plan must not be measured: a recording needs it unchanged, or results must not depend on
    /// measurements.
    pub(crate) fn is_fixed(&self, plan: &Plan) -> bool {
        plan.key.numerics.deterministic || self.known.is_pinned(&plan.key)
    }

    /// Adds what it keeps.
    pub(crate) fn add_to(&self, stats: &mut CacheStats) {
        stats.product_plans = self.known.len();
        stats.pinned_product_plans = self.known.pinned();
        stats.product_plans_evicted = self.known.evicted();
        (stats.measured, stats.measured_on_disk) = (self.measured, self.on_disk);
    }

    /// Forgets the plans that no recording needs.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    /// Returns the choice of an earlier process. It was measured, so the deterministic mode ignores it.
    fn remembered(&self, key: &Key, descriptors: &Descriptors, product: Product<'_>) -> Option<Plan> {
        let cache = self.cache.as_ref().filter(|_| !key.numerics.deterministic);
        let choice = cache.and_then(|cache| cache.read(&key.text()))?;
        let workspace = match choice {
            Choice::Own => product.workspace_bytes(&self.props),
            Choice::Library(algo) => self.lt.accepts(descriptors, &algo).or_else(|| {
                tracing::warn!(key = key.text(), "the library refuses a cached algorithm; measuring again");
                None
            })?,
        };
        Some(Plan { key: *key, choice, workspace, tuned: true })
    }

    /// The library's algorithms for a key, the likely fastest first.
    ///
    /// # Errors
    /// Returns [`Error::Device`].
    pub(crate) fn candidates(&mut self, key: &Key) -> Result<Vec<Plan>> {
        match self.known.get(key) {
            Some(known) => guessed(&self.lt, key, &known.descriptors),
            None => guessed(&self.lt, key, &self.lt.describe(key)?),
        }
    }

    /// Returns the known facts about the product of a plan, which may have been forgotten since.
    fn known(&mut self, plan: &Plan) -> Result<(&Lt, &mut Known)> {
        if self.known.get(&plan.key).is_none() {
            let descriptors = self.lt.describe(&plan.key)?;
            self.known.insert(plan.key, Known { plan: Some(*plan), descriptors });
        }
        match self.known.get(&plan.key) {
            Some(known) => Ok((&self.lt, known)),
            None => unreachable!("it was there, or inserted just now"),
        }
    }

    /// Measures the candidates, including the product's kernels where these may be faster, and stores the fastest here and on
    /// disk. `time` runs a plan on memory like the product's own and returns the microseconds of one run; a
    /// candidate for which it fails is excluded. Must not be called for a plan that [is
    /// fixed](Self::is_fixed).
    ///
    /// # Errors
    /// Returns the error of `time` if it fails for all candidates, or if it is [`Error::ContextLost`].
    pub(crate) fn tune(
        &mut self,
        plan: &Plan,
        product: Product<'_>,
        time: &mut dyn FnMut(&mut Self, &Plan) -> Result<f32>,
    ) -> Result<Plan> {
        let mut candidates = self.candidates(&plan.key)?;
        if product.kernels.may_be_faster(&self.props, product.inputs, product.output) {
            let workspace = product.workspace_bytes(&self.props);
            candidates.push(Plan { choice: Choice::Own, workspace, ..*plan });
        }
        let (mut best, micros) = fastest(&candidates, &mut |candidate| time(self, candidate))?;
        best.tuned = true;
        self.measured += 1;
        if let Some(cache) = &self.cache {
            cache.write(&best.key.text(), &best.choice, micros);
        }
        self.known(&best)?.1.plan = Some(best);
        Ok(best)
    }

    /// Adds a product to `stream`, or to the current capture there.
    ///
    /// # Safety
    /// `stream` is a stream of the context that was current in [`new`](Self::new). The addresses
    /// show the operands that the plan was made for, or others of the same layout and alignment
    /// class; `workspace` shows [`Plan::workspace`] bytes, aligned to 256. All of it until the
    /// product has run.
    ///
    /// # Errors
    /// Returns [`Error::Device`]; [`Error::Argument`] for a plan of the product's own kernels.
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
                reason: "the plan is for the product's own kernels; launch those".into(),
            });
        };
        let (lt, known) = self.known(plan)?;
        let workspace = Workspace { addr: workspace, bytes: plan.workspace };
        // SAFETY: our caller must uphold the same requirements.
        unsafe { lt.matmul(&mut known.descriptors, &algo, at, workspace, stream) }
    }
}

/// Returns the plans of the library's heuristics, in order of expected speed.
fn guessed(lt: &Lt, key: &Key, descriptors: &Descriptors) -> Result<Vec<Plan>> {
    let found = lt.candidates(key, descriptors, CANDIDATES)?;
    let plan = |(algo, workspace)| Plan { key: *key, choice: Choice::Library(algo), workspace, tuned: false };
    Ok(found.into_iter().map(plan).collect())
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
            Err(reason) => {
                tracing::debug!(?candidate, %reason, "a candidate cannot run");
                failed = Some(reason);
            }
        }
    }
    let best = times.iter().map(|t| t.1).fold(f32::INFINITY, f32::min);
    let equals = times.into_iter().filter(|t| t.1 <= best * TIE);
    equals.min_by_key(|(plan, _)| plan.workspace).ok_or_else(|| {
        failed.unwrap_or_else(|| Error::Device {
            device: "cuBLASLt".into(),
            call: "tuning",
            reason: "no algorithm gave a time".into(),
        })
    })
}
