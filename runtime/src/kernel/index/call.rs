//! The launch of a kernel of indices: shapes are checked, and real sizes of padded dimensions become inputs.

use smallvec::SmallVec;

use super::{
    super::{
        call::{Call, Results},
        definition::{Index, Kind},
    },
    operation::{Indexed, Owner, PaddedDim},
};
use crate::{
    IntoShape, Operand, Result, backend::View, base::rank::MAX_RANK, tensor::Shown, value::layout::PaddedDims,
};

/// The largest size of a dimension, of which all indices are an `i32`.
const LARGEST: usize = i32::MAX as usize;

impl<'s> Call<'s> {
    /// Allocates results of this shape and launches.
    ///
    /// # Errors
    /// Returns [`Error::Shape`](crate::Error::Shape) if an operand, or the shape, does not have the dimensions that the kernel
    /// expects or is too large, and [`Error::PaddedMix`](crate::Error::PaddedMix) if a value is padded; errors of the shape, as
    /// [`ops::full`](crate::ops::full).
    pub fn launch_indexed<R: Results<'s>>(&self, shape: impl IntoShape<'s>) -> Result<R> {
        let Kind::Index(index) = &self.definition.kind else { return self.launch() };
        let given = self.scope.resolve(self.definition.name, shape.into_sizes())?;
        self.check_shape(index, &given.sizes, given.marks)?;
        let operands: SmallVec<[Operand; 4]> = self.checked(index)?;
        let mut inputs: SmallVec<[View; 4]> = operands.iter().map(|operand| operand.view).collect();
        inputs.extend(self.generators());
        let of = operands.iter().enumerate().map(|(i, operand)| (Owner::Input(i as u8), operand.marks));
        let padded = self.count(of.chain([(Owner::Results, given.marks)]), &mut inputs);
        let op = self.operation(Indexed { index, padded, ahead: self.ahead() });
        let results = R::allocate(self.scope, &op, &|_| (&given.sizes[..], given.marks))?;
        self.refuse_mixed(&inputs, &results.views())?;
        // Devices refuse empty grids.
        if !given.sizes.contains(&0) {
            self.scope.launch(op, &inputs, &results.views())?;
        }
        self.advance()?;
        Ok(results)
    }

    fn check_shape(&self, index: &Index, sizes: &[usize], marks: PaddedDims) -> Result<()> {
        let reason = match sizes.iter().find(|size| **size > LARGEST) {
            _ if sizes.len() != index.rank => {
                format!("the results have {}, one for each index of the kernel", dimensions(index.rank))
            }
            Some(size) => too_large(*size),
            None => return Ok(()),
        };
        Err(self.scope.shape_error(self.definition.name, &[Shown(sizes, marks)], reason))
    }

    /// The tensors among the arguments, which have the dimensions that the kernel expects.
    fn checked(&self, index: &Index) -> Result<SmallVec<[Operand; 4]>> {
        let mut all = SmallVec::new();
        for (i, operand) in self.operands() {
            match index.views[i] {
                Some(rank) => self.check_view(i, operand, rank)?,
                None => self.check_value(i, operand)?,
            }
            all.push(*operand);
        }
        Ok(all)
    }

    fn check_view(&self, parameter: usize, operand: &Operand, rank: usize) -> Result<()> {
        let sizes = operand.view.layout.shape();
        let (name, _) = self.definition.inputs[parameter];
        let reason = match sizes.iter().find(|size| **size > LARGEST) {
            _ if sizes.len() != rank => format!("`{name}` must have {}", dimensions(rank)),
            Some(size) => too_large(*size),
            None => return Ok(()),
        };
        Err(self.scope.shape_error(self.definition.name, &[Shown::from(operand)], reason))
    }

    /// Padding is refused first, so that it does not depend on the size of the bucket.
    fn check_value(&self, parameter: usize, operand: &Operand) -> Result<()> {
        for axis in 0..operand.view.layout.rank() {
            self.scope.refuse_padded(self.definition.name, operand.marks, axis)?;
        }
        if operand.view.layout.count() == 1 {
            return Ok(());
        }
        let (name, _) = self.definition.inputs[parameter];
        let reason = format!("`{name}` is a value: a number, or a tensor of one element");
        Err(self.scope.shape_error(self.definition.name, &[Shown::from(operand)], reason))
    }

    /// Lists the padded dimensions of the operands and the results, and adds their real sizes to the inputs, each once.
    fn count(
        &self,
        all: impl Iterator<Item = (Owner, PaddedDims)>,
        inputs: &mut SmallVec<[View; 4]>,
    ) -> SmallVec<[PaddedDim; 4]> {
        let mut symbols: SmallVec<[u8; 4]> = SmallVec::new();
        let mut padded = SmallVec::new();
        for (of, marks) in all {
            for axis in 0..MAX_RANK {
                let Some(symbol) = marks.get(axis) else { continue };
                let count = match symbols.iter().position(|known| *known == symbol) {
                    Some(known) => known,
                    None => {
                        let Some(view) = self.scope.real_count(symbol) else { continue };
                        inputs.push(view);
                        symbols.push(symbol);
                        symbols.len() - 1
                    }
                };
                padded.push(PaddedDim { of, axis: axis as u8, count: count as u8 });
            }
        }
        padded
    }
}

fn dimensions(rank: usize) -> String {
    if rank == 1 { "1 dimension".to_owned() } else { format!("{rank} dimensions") }
}

fn too_large(size: usize) -> String {
    format!("a dimension has {size} places; the largest that kernels of indices count is {LARGEST}")
}
