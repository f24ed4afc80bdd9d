//! The structure of a chain, everything but its numbers and its inputs' element types, and what the process keeps of it.

use std::{
    any::TypeId,
    sync::{Mutex, PoisonError},
};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{ElementSource, Step};
use crate::DType;

/// Chains of different structure that a process makes. Their names and their code are kept as long as the process, as those
/// of kernels are; but a program whose data decide what it computes could make any number of them.
pub(super) const MOST: usize = 4096;

/// Steps whose names are in the name of a chain; of a longer one, fewer, and how many there are besides.
const MOST_NAMES: usize = 8;

/// A structure as a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Structure {
    steps: Vec<StepStructure>,
    outputs: SmallVec<[(u8, u8); 2]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StepStructure {
    id: TypeId,
    /// A bit for each parameter that is a number.
    fixed: u32,
    arguments: SmallVec<[ElementSource; 4]>,
    stored: SmallVec<[DType; 2]>,
}

impl Structure {
    pub(super) fn of(steps: &[Step], outputs: &[(u8, u8)]) -> Self {
        let steps = steps.iter().map(|step| StepStructure {
            id: step.definition.id,
            fixed: step.fixed(),
            arguments: step.arguments.clone(),
            stored: step.stored.clone(),
        });
        Self { steps: steps.collect(), outputs: SmallVec::from_slice(outputs) }
    }
}

/// A structure that the process has seen.
#[derive(Debug)]
pub(super) struct Known {
    /// The names of the steps.
    pub(super) name: &'static str,
    /// One that no other structure has.
    pub(super) number: usize,
}

/// Returns the entry of a structure; `None` if it is new, and there are [`MOST`] others.
pub(super) fn known(structure: Structure, steps: &[Step]) -> Option<&'static Known> {
    static ALL: Mutex<Option<FxHashMap<Structure, &'static Known>>> = Mutex::new(None);
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    known_among(all.get_or_insert_default(), MOST, structure, steps)
}

pub(super) fn known_among(
    all: &mut FxHashMap<Structure, &'static Known>,
    most: usize,
    structure: Structure,
    steps: &[Step],
) -> Option<&'static Known> {
    if let Some(known) = all.get(&structure) {
        return Some(known);
    }
    let number = all.len();
    if number >= most {
        return None;
    }
    let known = Box::leak(Box::new(Known { name: name(steps).leak(), number }));
    all.insert(structure, known);
    Some(known)
}

/// `add+silu+mul`.
fn name(steps: &[Step]) -> String {
    let names: Vec<&str> = steps.iter().map(|step| step.definition.name).collect();
    match names.len() {
        ..=MOST_NAMES => names.join("+"),
        all => format!("{}+{} more", names[..MOST_NAMES - 1].join("+"), all - (MOST_NAMES - 1)),
    }
}
