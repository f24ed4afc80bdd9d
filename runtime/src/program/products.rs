//! Joins operations around a product of few rows with it.
//!
//! Reading the weights is nearly all the work of such a product. Norms before it, other products of the same input, and
//! what follows (bias, activation, residual, rotation, writes to a cache) are done by the kernel that reads them, which
//! [`Operation::fuse`](crate::backend::Operation::fuse) makes if there is one.

use smallvec::SmallVec;

use super::{
    Program,
    joining::{self, Join, Piece},
    pass::Pass,
};
use crate::{
    backend::Launch,
    observe::inspect::{PassRefusal, PassReport},
};

/// The pass.
#[derive(Debug, Default)]
pub(super) struct FuseProducts {
    /// Set if places that were written in between are taken for the results of members, to see what happens then.
    #[cfg(test)]
    pub(super) trusts_places: bool,
}

impl Pass for FuseProducts {
    fn name(&self) -> &'static str {
        "fuse_products"
    }

    fn run(&self, program: &mut Program, report: &mut PassReport) {
        program.rewrite_pieces(|commands, first| joining::join(self, commands, first, report));
    }
}

impl Join for FuseProducts {
    fn is_part(&self, _: &Launch) -> bool {
        true
    }

    fn joins_siblings(&self, launch: &Launch) -> bool {
        is_product(launch)
    }

    fn check(&self, piece: &Piece<'_>, members: &[usize]) -> Result<(), Option<PassRefusal>> {
        if !piece.launches(members).any(|(_, launch)| is_product(launch)) {
            return Err(None);
        }
        if self.is_wired(piece, members) && self.make(piece, members).is_some() {
            Ok(())
        } else {
            Err(Some(PassRefusal::NoKernel))
        }
    }

    fn make(&self, piece: &Piece<'_>, members: &[usize]) -> Option<Launch> {
        let launches: SmallVec<[&Launch; 8]> = piece.launches(members).map(|(_, launch)| launch).collect();
        let product = launches.iter().find(|launch| is_product(launch))?;
        if launches.iter().any(|launch| launch.outputs.len() > u8::BITS as usize) {
            return None;
        }
        let kept: SmallVec<[u8; 8]> = piece
            .launches(members)
            .map(|(at, launch)| {
                let outputs = 0..launch.outputs.len();
                let kept = outputs.filter(|output| !piece.is_internal(at, *output, members));
                kept.fold(0, |bits, output| bits | 1 << output)
            })
            .collect();
        product.op.operation().fuse(&launches, &kept)
    }
}

impl FuseProducts {
    fn is_wired(&self, piece: &Piece<'_>, members: &[usize]) -> bool {
        #[cfg(test)]
        if self.trusts_places {
            return true;
        }
        is_wired(piece, members)
    }
}

/// Returns whether every place that a member wrote still holds its result where a later member reads it: `fuse` knows results
/// by their places, and something that is not a member may have written there in between.
fn is_wired(piece: &Piece<'_>, members: &[usize]) -> bool {
    piece.launches(members).enumerate().all(|(before, (at, launch))| {
        launch.inputs.iter().enumerate().all(|(input, view)| {
            let last = members[..before].iter().rev().find_map(|&writer| {
                let outputs = piece.launch(writer)?.outputs.iter();
                let part = outputs.enumerate().rfind(|(_, output)| output.overlaps(view))?.0;
                Some((writer, part as u8))
            });
            last.is_none() || piece.producer(at, input, members) == last
        })
    })
}

/// Returns whether there are kernels for a product with something around it.
fn is_product(launch: &Launch) -> bool {
    launch.op.operation().may_fuse(launch)
}
