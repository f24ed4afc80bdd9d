//! Chains of element-wise operations become one.
//!
//! An operation that reads what another one has written, element by element, joins it: the results of the first stay in
//! registers, and go to memory only if something else reads them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    Program,
    joining::{self, Join, Piece, is_in},
    pass::Pass,
};
use crate::{
    backend::{ElementSource, ElementStep, JoinsElements, Launch, View},
    observe::inspect::{PassRefusal, PassReport},
};

/// The pass.
#[derive(Debug, Default)]
pub(super) struct FuseElementwise {
    /// A reason to refuse that is ignored, to see what happens then.
    #[cfg(test)]
    pub(super) ignored: Option<PassRefusal>,
    /// Set if memory that is read later is freed and poisoned where it was, for the same purpose.
    #[cfg(test)]
    pub(super) keeps_frees: bool,
}

impl Pass for FuseElementwise {
    fn name(&self) -> &'static str {
        "fuse_elementwise"
    }

    fn run(&self, program: &mut Program, report: &mut PassReport) {
        program.rewrite_pieces(|commands, first| joining::join(self, commands, first, report));
    }
}

impl Join for FuseElementwise {
    fn is_part(&self, launch: &Launch) -> bool {
        let Some(first) = launch.outputs.first() else { return false };
        launch.op.operation().joins_elements().is_some()
            && !launch.op.operation().writes_in_place()
            && launch.outputs.iter().all(|view| view.layout.is_contiguous())
            && launch
                .inputs
                .iter()
                .chain(&launch.outputs)
                .all(|view| view.layout.shape() == first.layout.shape())
    }

    fn joins_siblings(&self, _: &Launch) -> bool {
        false
    }

    fn check(&self, piece: &Piece<'_>, members: &[usize]) -> Result<(), Option<PassRefusal>> {
        check_shapes(piece, members)?;
        for (at, launch) in piece.launches(members) {
            check_wiring(piece, at, launch, members).or_else(|reason| self.refuse(reason))?;
        }
        let parts = Parts::of(piece, members);
        check_places(&parts).or_else(|reason| self.refuse(reason))?;
        if parts.are_few() { Ok(()) } else { Err(Some(PassRefusal::TooLong)) }
    }

    fn make(&self, piece: &Piece<'_>, members: &[usize]) -> Option<Launch> {
        Parts::of(piece, members).joined()
    }

    #[cfg(test)]
    fn refuse(&self, reason: PassRefusal) -> Result<(), PassRefusal> {
        if self.ignored == Some(reason) { Ok(()) } else { Err(reason) }
    }

    #[cfg(test)]
    fn moves_frees(&self) -> bool {
        !self.keeps_frees
    }
}

/// All compute as many elements, in the same shape.
fn check_shapes(piece: &Piece<'_>, members: &[usize]) -> Result<(), PassRefusal> {
    let mut shapes = piece.launches(members).filter_map(|(_, launch)| Some(launch.outputs.first()?.layout));
    let first = shapes.next();
    match shapes.all(|layout| first.is_some_and(|first| first.shape() == layout.shape())) {
        true => Ok(()),
        false => Err(PassRefusal::OtherElements),
    }
}

/// What a member reads of the others must be exactly what one of them has computed for the same element: other elements are
/// computed by other threads.
fn check_wiring(piece: &Piece<'_>, at: usize, launch: &Launch, members: &[usize]) -> Result<(), PassRefusal> {
    for (input, view) in launch.inputs.iter().enumerate() {
        let read = piece.values().read(at, input);
        if !read.iter().any(|id| is_in(members, piece.values().get(*id).writer)) {
            continue;
        }
        match read {
            [id] if is_same(&piece.values().get(*id).view, view) => {}
            _ => return Err(PassRefusal::OtherElements),
        }
    }
    Ok(())
}

/// Returns whether both show the same elements in the same order.
fn is_same(one: &View, other: &View) -> bool {
    one.dtype == other.dtype && is_same_memory(one, other)
}

fn is_same_memory(one: &View, other: &View) -> bool {
    one.addr == other.addr
        && one.dtype.size() == other.dtype.size()
        && one.layout.shape() == other.layout.shape()
        && one.layout.meaning().eq(other.layout.meaning())
}

/// An output may lie in the memory of an input that was freed meanwhile. Then each thread must write exactly the elements that
/// it has read.
fn check_places(parts: &Parts) -> Result<(), PassRefusal> {
    let is_fine = |output: &View, input: &View| !output.overlaps(input) || is_same_memory(output, input);
    match parts.outputs.iter().all(|output| parts.inputs.iter().all(|input| is_fine(output, input))) {
        true => Ok(()),
        false => Err(PassRefusal::PlaceInUse),
    }
}

/// The parts of a chain.
#[derive(Default)]
struct Parts {
    joins: Option<&'static dyn JoinsElements>,
    steps: Vec<ElementStep>,
    inputs: Vec<View>,
    /// The results that are stored, by their step, and where.
    stored: Vec<(u8, u8)>,
    outputs: Vec<View>,
}

impl Parts {
    fn of(piece: &Piece<'_>, members: &[usize]) -> Self {
        let mut parts = Self::default();
        let steps: FxHashMap<usize, u8> = members.iter().copied().zip(0..).collect();
        for ((at, launch), step) in piece.launches(members).zip(0u8..) {
            parts.joins = launch.op.operation().joins_elements();
            let mut sources = SmallVec::new();
            for (input, view) in launch.inputs.iter().enumerate() {
                let from = piece.producer(at, input, members);
                let result = from.and_then(|(writer, part)| Some((*steps.get(&writer)?, part)));
                sources.push(match result {
                    Some((step, part)) => ElementSource::Result { step, part },
                    None => ElementSource::Input(parts.input(view)),
                });
            }
            for (part, view) in launch.outputs.iter().enumerate() {
                if !piece.is_internal(at, part, members) {
                    parts.stored.push((step, part as u8));
                    parts.outputs.push(*view);
                }
            }
            let stored = launch.outputs.iter().map(|view| view.dtype).collect();
            parts.steps.push(ElementStep { op: launch.op.clone(), sources, stored });
        }
        parts
    }

    /// The number of an input, which is the same for equal views.
    fn input(&mut self, view: &View) -> u8 {
        let known = self.inputs.iter().position(|other| other == view);
        known.unwrap_or_else(|| {
            self.inputs.push(*view);
            self.inputs.len() - 1
        }) as u8
    }

    /// Returns whether one operation can have so many.
    fn are_few(&self) -> bool {
        let most = self.joins.map(|joins| joins.most()).unwrap_or_default();
        let counts = [self.steps.len(), self.inputs.len(), self.outputs.len()];
        counts.iter().zip(most).all(|(count, most)| *count <= most)
    }

    /// The launch of all of them.
    fn joined(self) -> Option<Launch> {
        Some(Launch {
            op: self.joins?.join(self.steps, self.inputs.len(), &self.stored)?,
            inputs: self.inputs.into_iter().collect(),
            outputs: self.outputs.into_iter().collect(),
            workspace: 0,
        })
    }
}
