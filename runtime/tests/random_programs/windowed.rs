//! Operations on windows of matrices, on their parts, and recurrent cells of their rows.

use rand::{Rng, rngs::StdRng};

use crate::{
    instr::Locals,
    program::{Arg, Code, Elem, Size},
    value::windows::{KEEPING, PARTS},
};

impl Locals<'_> {
    /// Adds one of them, if there is a matrix.
    pub(crate) fn windowed(&mut self, rng: &mut StdRng) -> Option<()> {
        let (t, mut ty) = self.pick(rng, |ty| ty.elem == Elem::F32 && ty.dims.len() == 2)?;
        let args = vec![Arg::Local(t)];
        match rng.random_range(0..3) {
            0 => {
                let kind = rng.random_range(0..KEEPING);
                // The first two are products.
                let kind = if kind < 2 && !self.linear() { KEEPING - 1 } else { kind };
                self.emit(Code::Windows, args, vec![kind], ty)
            }
            1 => {
                let axis = rng.random_range(0..2);
                ty.dims[axis] = Size::N(PARTS);
                self.emit(Code::Parts, args, vec![rng.random_range(0..5), axis], ty)
            }
            _ if self.linear() => {
                let Size::N(width) = ty.dims[1] else { return None };
                self.emit(Code::Cell, args, vec![width], ty)
            }
            _ => None,
        }
        .map(drop)
    }
}
