//! Operands and results of operations of the tables.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

use crate::{
    instr::{Locals, within},
    program::{Elem, Size, Ty},
};

/// Operands that were drawn, and the type of the result.
pub(super) struct Drawn {
    pub(super) args: Vec<usize>,
    pub(super) axis: usize,
    pub(super) numbers: [usize; 3],
    pub(super) ty: Ty,
}

/// What an operation of a table is drawn from.
pub(crate) struct Draw<'a, 'r> {
    locals: &'a Locals<'r>,
    rng: &'a mut StdRng,
    /// What the call may use as it likes.
    numbers: [usize; 3],
}

impl<'a, 'r> Draw<'a, 'r> {
    pub(super) fn new(locals: &'a Locals<'r>, rng: &'a mut StdRng) -> Self {
        let numbers = std::array::from_fn(|_| rng.random_range(0..420));
        Self { locals, rng, numbers }
    }

    fn drawn(&self, args: impl Into<Vec<usize>>, axis: usize, ty: Ty) -> Option<Drawn> {
        Some(Drawn { args: args.into(), axis, numbers: self.numbers, ty })
    }

    /// A value that fits; where sizes are padded, mostly one of these, if there is one.
    fn pick(&mut self, fits: impl Fn(&Ty) -> bool) -> Option<(usize, Ty)> {
        let own = self.locals.rules.padded && self.rng.random_bool(0.75);
        let padded =
            if own { self.locals.pick(self.rng, |ty| ty.dims.contains(&Size::B) && fits(ty)) } else { None };
        padded.or_else(|| self.locals.pick(self.rng, fits))
    }

    fn float(&mut self, rank: usize) -> Option<(usize, Ty)> {
        self.pick(|ty| ty.elem == Elem::F32 && ty.dims.len() >= rank)
    }

    /// A value of this type of elements that broadcasts to `dims`.
    fn other(&mut self, elem: Elem, dims: &[Size]) -> Option<usize> {
        Some(self.pick(|ty| ty.elem == elem && within(dims, &ty.dims))?.0)
    }

    fn any_axis(&mut self, ty: &Ty) -> Option<usize> {
        (0..ty.dims.len()).collect::<Vec<_>>().choose(self.rng).copied()
    }

    /// A float and one of its axes that an operation may mix.
    fn along(&mut self) -> Option<(usize, Ty, usize)> {
        let (x, ty) = self.float(1)?;
        let axis = self.locals.axis(self.rng, &ty)?;
        Some((x, ty, axis))
    }

    /// A value of any type and one of its axes whose size is a constant.
    fn along_constant(&mut self) -> Option<(usize, Ty, usize, usize)> {
        let (x, ty) = self.pick(|ty| !ty.dims.is_empty())?;
        let axis = self.any_axis(&ty)?;
        let Size::N(size) = ty.dims[axis] else { return None };
        Some((x, ty, axis, size))
    }

    // ---- element by element

    /// A float; the result is one of its shape.
    pub(super) fn same(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(0)?;
        self.drawn([x], 0, ty)
    }

    /// A float; the result is a `bool` of its shape.
    pub(super) fn test(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(0)?;
        self.drawn([x], 0, Ty { elem: Elem::Bool, ..ty })
    }

    /// A `bf16`; the result is a `bool` of its shape.
    pub(super) fn half_test(&mut self) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == Elem::Bf16)?;
        self.drawn([x], 0, Ty { elem: Elem::Bool, ..ty })
    }

    /// A `bf16`; the result is one of its shape.
    pub(super) fn half(&mut self) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == Elem::Bf16)?;
        self.drawn([x], 0, ty)
    }

    /// A float, and another one that broadcasts to it.
    pub(super) fn pair(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(0)?;
        let y = self.other(Elem::F32, &ty.dims)?;
        self.drawn([x, y], 0, ty)
    }

    /// As [`pair`](Self::pair); the result is a `bool`.
    pub(super) fn pair_test(&mut self) -> Option<Drawn> {
        let mut drawn = self.pair()?;
        drawn.ty.elem = Elem::Bool;
        Some(drawn)
    }

    /// A float, and two others that broadcast to it.
    pub(super) fn three(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(0)?;
        let (y, z) = (self.other(Elem::F32, &ty.dims)?, self.other(Elem::F32, &ty.dims)?);
        self.drawn([x, y, z], 0, ty)
    }

    /// A float, and a mask that broadcasts to it.
    pub(super) fn with_mask(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(0)?;
        let mask = self.other(Elem::Bool, &ty.dims)?;
        self.drawn([x, mask], 0, ty)
    }

    /// A `bool`; the result is one of its shape.
    pub(super) fn truth(&mut self) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == Elem::Bool)?;
        self.drawn([x], 0, ty)
    }

    /// A `bool`; the result is a float of its shape.
    pub(super) fn picked(&mut self) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == Elem::Bool)?;
        self.drawn([x], 0, Ty { elem: Elem::F32, ..ty })
    }

    /// A `bool`, and another one that broadcasts to it.
    pub(super) fn truths(&mut self) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == Elem::Bool)?;
        let y = self.other(Elem::Bool, &ty.dims)?;
        self.drawn([x, y], 0, ty)
    }

    // ---- of other types

    /// A value of a type; the result is one of its shape.
    pub(super) fn same_of(&mut self, elem: Elem) -> Option<Drawn> {
        self.becomes(elem, elem)
    }

    /// A value of a type; the result is one of another type, and of its shape.
    pub(super) fn becomes(&mut self, from: Elem, to: Elem) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == from)?;
        self.drawn([x], 0, Ty { elem: to, bound: 0, ..ty })
    }

    /// A value of a type, and another one that broadcasts to it.
    pub(super) fn pair_of(&mut self, elem: Elem) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == elem)?;
        let y = self.other(elem, &ty.dims)?;
        self.drawn([x, y], 0, ty)
    }

    /// As [`pair_of`](Self::pair_of); the result is a `bool`.
    pub(super) fn pair_test_of(&mut self, elem: Elem) -> Option<Drawn> {
        let mut drawn = self.pair_of(elem)?;
        drawn.ty.elem = Elem::Bool;
        Some(drawn)
    }

    /// A value of a type and an axis that is not padded; the shape stays.
    pub(super) fn lines_of(&mut self, elem: Elem) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == elem && !ty.dims.is_empty())?;
        let axis = self.locals.axis(self.rng, &ty)?;
        self.drawn([x], axis, ty)
    }

    /// As [`lines_of`](Self::lines_of); the result does not have the axis.
    pub(super) fn removed_of(&mut self, elem: Elem) -> Option<Drawn> {
        let mut drawn = self.lines_of(elem)?;
        drawn.ty.dims.remove(drawn.axis);
        Some(drawn)
    }

    /// As [`removed_of`](Self::removed_of); the result is an index along the axis.
    pub(super) fn index_of(&mut self, elem: Elem) -> Option<Drawn> {
        let mut drawn = self.lines_of(elem)?;
        let Size::N(bound) = drawn.ty.dims.remove(drawn.axis) else { return None };
        (drawn.ty.elem, drawn.ty.bound) = (Elem::U32, bound);
        Some(drawn)
    }

    // ---- along an axis

    /// A float and an axis that is not padded; the shape stays.
    pub(super) fn lines(&mut self) -> Option<Drawn> {
        let (x, ty, axis) = self.along()?;
        self.drawn([x], axis, ty)
    }

    /// A float and an axis that is not padded; the result has indices along it.
    pub(super) fn indices(&mut self) -> Option<Drawn> {
        let (x, ty, axis) = self.along()?;
        let Size::N(bound) = ty.dims[axis] else { return None };
        self.drawn([x], axis, Ty { elem: Elem::U32, bound, ..ty })
    }

    /// A float and an axis that is not padded, which the result does not have.
    pub(super) fn removed(&mut self) -> Option<Drawn> {
        let mut drawn = self.lines()?;
        drawn.ty.dims.remove(drawn.axis);
        Some(drawn)
    }

    /// As [`removed`](Self::removed); the result is an index along the axis.
    pub(super) fn index(&mut self) -> Option<Drawn> {
        let mut drawn = self.indices()?;
        drawn.ty.dims.remove(drawn.axis);
        Some(drawn)
    }

    /// A float and an axis that is not padded, of which one element is left.
    pub(super) fn kept(&mut self) -> Option<Drawn> {
        let mut drawn = self.lines()?;
        drawn.ty.dims[drawn.axis] = Size::N(1);
        Some(drawn)
    }

    /// A `bool` and an axis that is not padded, which the result does not have.
    pub(super) fn decided(&mut self) -> Option<Drawn> {
        let (x, mut ty) = self.pick(|ty| ty.elem == Elem::Bool && !ty.dims.is_empty())?;
        let axis = self.locals.axis(self.rng, &ty)?;
        ty.dims.remove(axis);
        self.drawn([x], axis, ty)
    }

    /// A float, a mask that broadcasts to it, and an axis, mostly a padded one; the shape stays.
    pub(super) fn masked(&mut self) -> Option<Drawn> {
        self.masked_of(Elem::F32)
    }

    /// Likewise, of a type.
    pub(super) fn masked_of(&mut self, elem: Elem) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == elem && !ty.dims.is_empty())?;
        let mask = self.other(Elem::Bool, &ty.dims)?;
        let own = ty.dims.iter().position(|d| *d == Size::B).filter(|_| self.rng.random_bool(0.7));
        let axis = own.or_else(|| self.any_axis(&ty))?;
        self.drawn([x, mask], axis, ty)
    }

    /// As [`masked`](Self::masked); the result does not have the axis.
    pub(super) fn masked_removed(&mut self) -> Option<Drawn> {
        let mut drawn = self.masked()?;
        drawn.ty.dims.remove(drawn.axis);
        Some(drawn)
    }

    /// Likewise, of a type.
    pub(super) fn masked_removed_of(&mut self, elem: Elem) -> Option<Drawn> {
        let mut drawn = self.masked_of(elem)?;
        drawn.ty.dims.remove(drawn.axis);
        Some(drawn)
    }

    /// A float and any axis, mostly a padded one; the shape stays.
    pub(super) fn ordered(&mut self) -> Option<Drawn> {
        let mut drawn = self.masked()?;
        drawn.args.truncate(1);
        Some(drawn)
    }

    /// As [`ordered`](Self::ordered); the result has indices along the axis.
    pub(super) fn ordered_indices(&mut self) -> Option<Drawn> {
        let mut drawn = self.ordered()?;
        let bound = if let Size::N(n) = drawn.ty.dims[drawn.axis] { n } else { 0 };
        (drawn.ty.elem, drawn.ty.bound) = (Elem::U32, bound);
        Some(drawn)
    }

    /// As [`masked_removed`](Self::masked_removed); the result is an index along the axis.
    pub(super) fn masked_index(&mut self) -> Option<Drawn> {
        let mut drawn = self.masked()?;
        let bound = if let Size::N(n) = drawn.ty.dims.remove(drawn.axis) { n } else { 0 };
        (drawn.ty.elem, drawn.ty.bound) = (Elem::U32, bound);
        Some(drawn)
    }

    /// A float and an axis of a constant size, of which the first number says how many are left, at least one.
    pub(super) fn some_of(&mut self) -> Option<Drawn> {
        let (x, mut ty) = self.float(1)?;
        let axis = self.any_axis(&ty)?;
        let Size::N(size) = ty.dims[axis] else { return None };
        self.numbers[0] = 1 + self.numbers[0] % size;
        ty.dims[axis] = Size::N(self.numbers[0]);
        self.drawn([x], axis, ty)
    }

    /// As [`some_of`](Self::some_of); the result has indices.
    pub(super) fn indices_of_some(&mut self) -> Option<Drawn> {
        let (x, before) = self.float(1)?;
        let axis = self.any_axis(&before)?;
        let Size::N(bound) = before.dims[axis] else { return None };
        self.numbers[0] = 1 + self.numbers[0] % bound;
        let mut ty = Ty { elem: Elem::U32, bound, ..before };
        ty.dims[axis] = Size::N(self.numbers[0]);
        self.drawn([x], axis, ty)
    }

    // ---- other places

    /// Two floats of one shape; the result has a new axis of both.
    pub(super) fn joined(&mut self) -> Option<Drawn> {
        let (x, mut ty) = self.float(0)?;
        let (y, _) = self.pick(|other| *other == ty)?;
        let axis = self.rng.random_range(0..=ty.dims.len());
        ty.dims.insert(axis, Size::N(2));
        self.drawn([x, y], axis, ty)
    }

    /// A value and an axis of a constant size; the result has as many times of it as the first number says, up to 3.
    pub(super) fn repeated(&mut self) -> Option<Drawn> {
        let (x, mut ty, axis, size) = self.along_constant().filter(|(_, ty, ..)| ty.elem == Elem::F32)?;
        self.numbers[0] = 1 + self.numbers[0] % 3;
        ty.dims[axis] = Size::N(size * self.numbers[0]);
        self.drawn([x], axis, ty)
    }

    /// A float, an axis, and indices for it.
    pub(super) fn selected(&mut self) -> Option<Drawn> {
        let (i, index) = self.pick(|ty| ty.elem == Elem::U32 && ty.bound > 0 && ty.dims.len() == 1)?;
        let (x, mut ty, axis, _) =
            self.along_constant().filter(|(_, ty, _, size)| ty.elem == Elem::F32 && *size >= index.bound)?;
        ty.dims[axis] = index.dims[0];
        self.drawn([x, i], axis, ty)
    }

    /// Integers; the result has a further axis of as many floats as the first number says.
    pub(super) fn classes(&mut self) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == Elem::U32)?;
        self.numbers[0] = 1 + self.numbers[0] % 5;
        let dims = ty.dims.into_iter().chain([Size::N(self.numbers[0])]).collect();
        self.drawn([x], 0, Ty { elem: Elem::F32, dims, bound: 0 })
    }

    /// A float of at least two dimensions; the shape stays.
    pub(super) fn matrices(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(2)?;
        self.drawn([x], 0, ty)
    }

    /// A value of at least one dimension; the result is a `bool` of its first size and its last.
    pub(super) fn square(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(1)?;
        let dims = vec![ty.dims[0], ty.dims[ty.dims.len() - 1]];
        self.drawn([x], 0, Ty { elem: Elem::Bool, dims, bound: 0 })
    }

    /// A float whose first two axes change places.
    pub(super) fn turned(&mut self) -> Option<Drawn> {
        let (x, mut ty) = self.float(2)?;
        ty.dims.rotate_left(1);
        self.drawn([x], 0, ty)
    }

    /// A float and an axis of an even size, of which a half is left.
    pub(super) fn halves(&mut self) -> Option<Drawn> {
        let (x, mut ty, axis, size) = self.along_constant().filter(|(_, ty, ..)| ty.elem == Elem::F32)?;
        if !size.is_multiple_of(2) {
            return None;
        }
        ty.dims[axis] = Size::N(size / 2);
        self.drawn([x], axis, ty)
    }

    /// A value of any shape and an axis; the result is its size.
    pub(super) fn number(&mut self) -> Option<Drawn> {
        let (x, ty) = self.float(1)?;
        let axis = self.any_axis(&ty)?;
        self.drawn([x], axis, Ty { elem: Elem::U32, dims: Vec::new(), bound: 0 })
    }

    // ---- layers

    /// A float whose last size is a constant; the shape stays.
    pub(super) fn rows(&mut self) -> Option<Drawn> {
        self.rows_of(Elem::F32)
    }

    /// Likewise, of a type.
    pub(super) fn rows_of(&mut self, elem: Elem) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == elem && matches!(ty.dims.last(), Some(Size::N(_))))?;
        self.drawn([x], ty.dims.len() - 1, ty)
    }

    /// As [`rows`](Self::rows); the result has one element for each.
    pub(super) fn row_results(&mut self) -> Option<Drawn> {
        let mut drawn = self.rows()?;
        drawn.ty.dims.pop();
        Some(drawn)
    }

    /// Likewise, of a type.
    pub(super) fn row_results_of(&mut self, elem: Elem) -> Option<Drawn> {
        let mut drawn = self.rows_of(elem)?;
        drawn.ty.dims.pop();
        Some(drawn)
    }

    /// As [`row_results`](Self::row_results); the result is a token, or `NO_TOKEN`, so it is no index.
    pub(super) fn choices(&mut self) -> Option<Drawn> {
        let mut drawn = self.row_results()?;
        drawn.ty.elem = Elem::U32;
        Some(drawn)
    }

    /// A float of at least two dimensions, of which only the first one may be padded; the shape stays.
    pub(super) fn items(&mut self) -> Option<Drawn> {
        let constant = |d: &Size| matches!(d, Size::N(_));
        let fits = |ty: &Ty| ty.elem == Elem::F32 && ty.dims.len() >= 2 && ty.dims[1..].iter().all(constant);
        let (x, ty) = self.pick(fits)?;
        self.drawn([x], 1, ty)
    }

    /// A float whose second size is a constant; the shape stays.
    pub(super) fn channels(&mut self) -> Option<Drawn> {
        let (x, ty) = self.pick(|ty| ty.elem == Elem::F32 && matches!(ty.dims.get(1), Some(Size::N(_))))?;
        self.drawn([x], 1, ty)
    }

    /// `[any, n]`, or `[any, a, b]`, of which each constant becomes another one.
    fn resized(&mut self, rank: usize, size: impl Fn(usize) -> usize) -> Option<Drawn> {
        let mut drawn = self.items().filter(|drawn| drawn.ty.dims.len() == rank)?;
        for dim in &mut drawn.ty.dims[1..] {
            let Size::N(n) = *dim else { return None };
            *dim = Size::N(size(n));
        }
        Some(drawn)
    }

    /// `[any, n]`; the shape stays.
    pub(super) fn tokens(&mut self) -> Option<Drawn> {
        self.resized(2, |n| n)
    }

    /// `[any, n]`; the result is `[n, n]`.
    pub(super) fn columns(&mut self) -> Option<Drawn> {
        let mut drawn = self.tokens()?;
        drawn.ty.dims[0] = drawn.ty.dims[1];
        Some(drawn)
    }

    /// `[any, n]`, with every second element left.
    pub(super) fn halved(&mut self) -> Option<Drawn> {
        self.resized(2, |n| n.div_ceil(2))
    }

    /// `[any, a, b]`, with every second element left along both.
    pub(super) fn halved_2d(&mut self) -> Option<Drawn> {
        self.resized(3, |n| n.div_ceil(2))
    }

    /// `[any, n]`, twice as long.
    pub(super) fn doubled(&mut self) -> Option<Drawn> {
        self.resized(2, |n| 2 * n)
    }

    /// `[any, a, b]`, twice as large along both.
    pub(super) fn doubled_2d(&mut self) -> Option<Drawn> {
        self.resized(3, |n| 2 * n)
    }

    /// `[any, a, b]`, with three parts along both.
    pub(super) fn parts_2d(&mut self) -> Option<Drawn> {
        self.resized(3, |_| 3)
    }
}
