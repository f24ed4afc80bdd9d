//! Operations that know sizes: of padded dimensions, of masks, of rows that are there or not, of what grows.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

use crate::{
    generate::WIDTHS,
    instr::Locals,
    program::{Arg, Code, Elem, Size, Ty},
};

impl Locals<'_> {
    /// Adds an operation that knows sizes; sometimes none fits.
    pub(crate) fn sized(&mut self, rng: &mut StdRng) {
        for _ in 0..4 {
            if self.attempt_sized(rng).is_some() {
                return;
            }
        }
    }

    fn attempt_sized(&mut self, rng: &mut StdRng) -> Option<()> {
        // What few functions may do they do.
        if (self.may.number || self.may.pick) && rng.random_bool(0.4) {
            return if self.may.number { self.number(rng) } else { self.perhaps_there(rng) };
        }
        match rng.random_range(0..16) {
            0 => {
                let (t, _, axis) = self.axis_of(rng, |_| true)?;
                let ty = Ty { elem: Elem::U32, dims: Vec::new(), bound: 0 };
                self.emit(Code::SizeOf, vec![Arg::Local(t)], vec![axis], ty).map(drop)
            }
            1 | 2 => {
                let (t, _, axis) = self.axis_of(rng, |_| true)?;
                let (x, ty) = self.floats(rng, 0)?;
                let args = vec![Arg::Local(x), Arg::Local(t)];
                self.emit(Code::DivSize, args, vec![axis], ty).map(drop)
            }
            3 | 4 => {
                let (t, ty, axis) = self.axis_of(rng, |_| true)?;
                let width = WIDTHS[rng.random_range(0..WIDTHS.len())];
                let made = Ty { elem: Elem::F32, dims: vec![ty.dims[axis], Size::N(width)], bound: 0 };
                let nums = vec![rng.random_range(0..4), axis, width];
                self.emit(Code::FullDim, vec![Arg::Local(t)], nums, made).map(drop)
            }
            5 | 6 => {
                let (t, ty, axis) = self.axis_of(rng, |_| true)?;
                let bound = if let Size::N(n) = ty.dims[axis] { n } else { 0 };
                let made = Ty { elem: Elem::U32, dims: vec![ty.dims[axis]], bound };
                self.emit(Code::ArangeDim, vec![Arg::Local(t)], vec![axis], made).map(drop)
            }
            7 => {
                let (t, mut ty, axis) = self.axis_of(rng, |_| true)?;
                ty.dims[axis] = Size::N(1);
                self.emit(Code::LastRow, vec![Arg::Local(t)], vec![axis], ty).map(drop)
            }
            8 => {
                let (t, ty, axis) = self.axis_of(rng, |_| true)?;
                self.emit(Code::Reverse, vec![Arg::Local(t)], vec![axis], ty).map(drop)
            }
            9..=12 => {
                let (t, mut ty, axis) = self.axis_of(rng, |ty| ty.elem == Elem::F32)?;
                ty.dims.remove(axis);
                let nums = vec![axis, rng.random_range(0..4)];
                self.emit(Code::AllMean, vec![Arg::Local(t)], nums, ty).map(drop)
            }
            13..=15 => {
                let heads = |ty: &Ty| matches!(ty.dims[..], [_, Size::N(_)]);
                let (t, ty) = self.pick(rng, |ty| ty.elem == Elem::F32 && heads(ty))?;
                let nums = vec![rng.random_range(0..4), rng.random_range(0..10)];
                self.emit(Code::SeenKeys, vec![Arg::Local(t)], nums, ty).map(drop)
            }
            _ => None,
        }
    }

    /// A value and one of its axes, mostly one of the call's own size.
    fn axis_of(&self, rng: &mut StdRng, fits: impl Fn(&Ty) -> bool) -> Option<(usize, Ty, usize)> {
        let (t, ty) = self.pick(rng, |ty| !ty.dims.is_empty() && fits(ty))?;
        let own: Vec<usize> = (0..ty.dims.len()).filter(|&a| ty.dims[a] == Size::B).collect();
        let axis = match own.choose(rng) {
            Some(&axis) if rng.random_bool(0.8) => axis,
            _ => rng.random_range(0..ty.dims.len()),
        };
        Some((t, ty, axis))
    }

    /// A row by number, which is there in some calls, in the padding in others, and beyond it.
    fn perhaps_there(&mut self, rng: &mut StdRng) -> Option<()> {
        if !std::mem::take(&mut self.may.pick) {
            return None;
        }
        let nums = vec![rng.random_range(0..9)];
        let tables = |ty: &Ty| ty.elem == Elem::F32 && matches!(ty.dims[..], [Size::B, Size::N(_)]);
        if let Some((t, mut ty)) = self.pick(rng, tables).filter(|_| rng.random_bool(0.4)) {
            ty.dims[0] = Size::N(2);
            return self.emit(Code::EmbedPick, vec![Arg::Local(t)], nums, ty).map(drop);
        }
        let (t, mut ty, axis) = self.axis_of(rng, |ty| ty.dims.contains(&Size::B))?;
        ty.dims[axis] = Size::N(1);
        self.emit(Code::Pick, vec![Arg::Local(t)], vec![nums[0], axis], ty).map(drop)
    }

    /// A size as a number.
    fn number(&mut self, rng: &mut StdRng) -> Option<()> {
        if !self.may.number {
            return None;
        }
        let (t, ty, axis) = self.axis_of(rng, |ty| ty.elem == Elem::F32)?;
        let own = usize::from(ty.dims[axis] == Size::B);
        let nums = vec![axis, own, rng.random_range(0..3), rng.random_range(0..3)];
        self.emit(Code::Number, vec![Arg::Local(t)], nums, ty).map(drop)
    }

    /// A tensor whose size is another one in each step.
    pub(crate) fn grown(&mut self, rng: &mut StdRng) -> Option<(usize, Ty)> {
        let (t, _) = self.pick(rng, |_| true)?;
        let ty = Ty { elem: Elem::F32, dims: vec![Size::V], bound: 0 };
        let made = self.emit(Code::Grown, vec![Arg::Local(t)], vec![rng.random_range(0..4)], ty.clone())?;
        Some((made, ty))
    }
}
