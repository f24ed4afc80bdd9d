//! The rows of the operands, and the launch of a kernel on them.

use smallvec::SmallVec;

use super::super::{
    call::{Call, Results},
    definition::{Extent, Kind, Padded, Rows},
    random::draws::Draws,
};
use crate::{
    Error, Operand, Result,
    backend::View,
    base::rank::MAX_RANK,
    tensor::{
        Shown,
        broadcast::{Shape, broadcast, spread},
    },
    value::layout::{Layout, PaddedDims},
};

/// Longer rows have indices that an `i32` does not hold.
const LONGEST: usize = i32::MAX as usize;

/// An operand: a tensor of rows, of which `size` and `stride` are those of a row, or of single values.
struct Given {
    operand: Operand,
    row: Option<(usize, usize)>,
}

impl<'s> Call<'s> {
    /// Allocates the outputs and launches, for rows along the last dimension.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if the operands do not fit together, and [`Error::PaddedMix`] if the dimension of the rows
    /// is padded, or another one is by different symbols.
    pub fn launch_rows<R: Results<'s>>(&self) -> Result<R> {
        self.along(1)
    }

    /// Launches likewise, for rows along dimension `axis` of the first parameter that is a row.
    ///
    /// # Errors
    /// As [`launch_rows`](Self::launch_rows), and [`Error::Axis`].
    pub fn launch_along<R: Results<'s>>(&self, axis: usize) -> Result<R> {
        let Kind::Rows(rows) = self.definition.kind else { return self.launch() };
        let first = self.operands().find(|(i, _)| rows.inputs[*i] == Extent::Row);
        let rank = first.map_or(0, |(_, operand)| operand.view.layout.rank());
        if axis >= rank {
            return Err(Error::Axis { op: self.definition.name, axis, rank });
        }
        self.along(rank - axis)
    }

    /// Rows along the dimension `back` from the end.
    fn along<R: Results<'s>>(&self, back: usize) -> Result<R> {
        let Kind::Rows(rows) = self.definition.kind else { return self.launch() };
        let given = self.given(&rows, back)?;
        let size = self.size(&given)?;
        let (lead, marks) = self.lead(&given)?;
        let mut inputs: SmallVec<[View; 4]> = SmallVec::new();
        for Given { operand, row } in &given {
            inputs.push(self.view(operand.view, *row, &lead)?);
        }
        let mut whole = lead.clone();
        whole.push(size);
        if whole.len() > MAX_RANK && rows.outputs.contains(&Extent::Row) {
            return Err(Error::Rank { rank: whole.len() });
        }
        inputs.extend(self.generators());
        let ahead = self.ahead();
        let padded = match rows.indexed || !ahead.is_empty() {
            true => self.padded(marks, &mut inputs),
            false => Padded::default(),
        };
        let op = match ahead.is_empty() {
            true => self.operation(padded),
            false => self.operation(Draws { ahead, padded }),
        };
        let results = R::allocate(self.scope, &op, &|i| match rows.outputs[i] {
            Extent::One => (&lead[..], marks),
            Extent::Row => (&whole[..], marks),
        })?;
        self.refuse_mixed(&inputs, &results.views())?;
        // Devices refuse empty grids; an empty row has results, if they are not rows.
        let rows_only = !rows.outputs.contains(&Extent::One);
        if !lead.contains(&0) && (size > 0 || !rows_only) {
            self.scope.launch(op, &inputs, &results.views())?;
        }
        self.advance()?;
        Ok(results)
    }

    /// The operands without the dimension of their rows.
    fn given(&self, rows: &Rows, back: usize) -> Result<SmallVec<[Given; 4]>> {
        let name = self.definition.name;
        let mut all = SmallVec::new();
        for (i, operand) in self.operands() {
            if rows.inputs[i] == Extent::One {
                all.push(Given { operand: *operand, row: None });
                continue;
            }
            let layout = operand.view.layout;
            let Some(axis) = layout.rank().checked_sub(back) else {
                let reason = format!("parameter {i} has no rows: it needs {back} dimensions");
                return Err(self.scope.shape_error(name, &[Shown::from(operand)], reason));
            };
            self.scope.refuse_padded(name, operand.marks, axis)?;
            let row = (layout.shape()[axis], layout.strides()[axis]);
            let (shape, strides) = (without(layout.shape(), axis), without(layout.strides(), axis));
            let layout = Layout::strided(&shape, &strides)?;
            let marks = (0..layout.rank()).fold(PaddedDims::NONE, |marks, i| {
                marks.with(i, operand.marks.get(if i < axis { i } else { i + 1 }))
            });
            let operand = Operand { view: View { layout, ..operand.view }, marks };
            all.push(Given { operand, row: Some(row) });
        }
        Ok(all)
    }

    /// The number of values in a row.
    fn size(&self, given: &[Given]) -> Result<usize> {
        let mut sizes = given.iter().filter_map(|given| given.row).map(|(size, _)| size);
        let size = sizes.next().unwrap_or(0);
        let reason = match sizes.find(|other| *other != size) {
            Some(other) => {
                format!("a row has {size} values, another one {other}; all rows must be equally long")
            }
            None if size > LONGEST => format!("a row has {size} values; the largest possible is {LONGEST}"),
            None => return Ok(size),
        };
        Err(self.misfit(reason))
    }

    /// The shape that all operands without their rows broadcast to, and its padding.
    fn lead(&self, given: &[Given]) -> Result<(Shape, PaddedDims)> {
        let operands: SmallVec<[Shown<'_>; 4]> = given.iter().map(|given| (&given.operand).into()).collect();
        match broadcast(self.definition.name, self.scope, &operands) {
            Err(Error::Shape { .. }) => Err(self.misfit(
                "without the dimension of their rows, the sizes, aligned at the last dimension, must be equal, or 1".into(),
            )),
            other => other,
        }
    }

    /// The padded dimensions; their real sizes become inputs.
    fn padded(&self, marks: PaddedDims, inputs: &mut SmallVec<[View; 4]>) -> Padded {
        let mut padded = Padded::default();
        for axis in 0..MAX_RANK {
            if let Some(count) = marks.get(axis).and_then(|symbol| self.scope.real_count(symbol)) {
                inputs.push(count);
                padded = padded.with(axis);
            }
        }
        padded
    }

    fn misfit(&self, reason: String) -> Error {
        self.scope.shape_error(self.definition.name, &self.shown(), reason)
    }

    /// An operand repeated to `lead`, with its rows as the last dimension; single values have one of size 1.
    fn view(&self, view: View, row: Option<(usize, usize)>, lead: &[usize]) -> Result<View> {
        let spread = spread(self.definition.name, view, lead)?;
        let (size, stride) = row.unwrap_or((1, 0));
        let mut shape = Shape::from_slice(lead);
        let mut strides = Shape::from_slice(spread.layout.strides());
        shape.push(size);
        strides.push(stride);
        Ok(View { layout: Layout::strided(&shape, &strides)?, ..view })
    }
}

fn without(all: &[usize], axis: usize) -> Shape {
    all.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, one)| *one).collect()
}
