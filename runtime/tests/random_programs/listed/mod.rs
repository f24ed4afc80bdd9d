//! Operations that random programs draw from tables. An operation is added by one entry: its name in `graphable::ops`, how
//! exact it is ([`Bits`]), how its operands and the shape of its result are drawn ([`Draw`]), and the call.
//!
//! The name decides what the tests of this module count (`names.rs`): every operation of `graphable::ops` has an entry here, or is
//! one of the codes of [`crate::instr`], and is drawn often, with padding where it can be.

mod axes;
mod draw;
mod elements;
mod further;
mod groups;
mod layers;
mod names;
mod sampling;

use graphable::{Error, Result, Tensor, bf16};
use rand::{Rng, rngs::StdRng};

pub(crate) use self::draw::Draw;
use self::draw::Drawn;
use crate::{
    instr::Locals,
    program::{Arg, Code, Instr},
    value::{Val, nonsense},
};

/// What a program may compare bit by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    /// The same bits in every run, whatever is beside them; a small difference stays small.
    Smooth,
    /// The same bits; a small difference may become a large one.
    Steep,
    /// The order of a sum over an axis that is not padded: a GPU divides it by the number of rows.
    Sum,
    /// Such a sum, and a small difference may become a large one.
    SteepSum,
    /// The order of a sum that depends on padded sizes.
    Product,
}

impl Bits {
    pub(crate) fn are_summed(self) -> bool {
        matches!(self, Self::Sum | Self::SteepSum | Self::Product)
    }
}

/// An operation of the tables.
pub(crate) struct Listed {
    pub(crate) name: &'static str,
    bits: Bits,
    draw: fn(&mut Draw<'_, '_>) -> Option<Drawn>,
    run: for<'a, 's> fn(&Given<'a, 's>) -> Result<Val<'s>>,
}

/// Tables of operations, as `name: bits, draw, |given| call;`. What is drawn may have a type of elements: `same_of(F64)`.
macro_rules! table {
    ($($name:ident: $bits:ident, $draw:ident $(($($elem:ident),+))?, |$g:ident| $call:expr;)*) => {
        pub(super) const TABLE: &[super::Listed] = &[$(super::Listed {
            name: stringify!($name),
            bits: super::Bits::$bits,
            draw: |draw| draw.$draw($($($crate::program::Elem::$elem),+)?),
            run: |$g| Ok($crate::value::Val::from($call?)),
        }),*];
    };
}
use table;

const TABLES: [&[Listed]; 6] =
    [further::TABLE, elements::TABLE, axes::TABLE, layers::TABLE, groups::TABLE, sampling::TABLE];

fn all() -> impl Iterator<Item = &'static Listed> {
    TABLES.into_iter().flatten()
}

/// The operation of an instruction.
pub(crate) fn of(instr: &Instr) -> Option<&'static Listed> {
    let number = instr.nums.first().filter(|_| instr.op == Code::Listed)?;
    all().nth(*number)
}

/// Whether a GPU may compute other last bits for an instruction.
pub(crate) fn is_summed(instr: &Instr) -> bool {
    of(instr).is_some_and(|listed| listed.bits.are_summed())
}

/// What a call of a table works on.
pub(crate) struct Given<'a, 's> {
    vals: Vec<&'a Val<'s>>,
    axis: usize,
    numbers: &'a [usize],
}

impl<'a, 's> Given<'a, 's> {
    fn val(&self, at: usize) -> Result<&'a Val<'s>> {
        self.vals.get(at).copied().ok_or_else(|| nonsense(format!("no argument {at}")))
    }

    fn f(&self, at: usize) -> Result<&'a Tensor<'s, f32>> {
        if let Val::F(t) = self.val(at)? { Ok(t) } else { Err(nonsense("not f32".into())) }
    }

    fn h(&self, at: usize) -> Result<&'a Tensor<'s, bf16>> {
        if let Val::H(t) = self.val(at)? { Ok(t) } else { Err(nonsense("not bf16".into())) }
    }

    fn u(&self, at: usize) -> Result<&'a Tensor<'s, u32>> {
        if let Val::U(t) = self.val(at)? { Ok(t) } else { Err(nonsense("not u32".into())) }
    }

    fn b(&self, at: usize) -> Result<&'a Tensor<'s, bool>> {
        if let Val::B(t) = self.val(at)? { Ok(t) } else { Err(nonsense("not bool".into())) }
    }

    fn d(&self, at: usize) -> Result<&'a Tensor<'s, f64>> {
        if let Val::D(t) = self.val(at)? { Ok(t) } else { Err(nonsense("not f64".into())) }
    }

    fn l(&self, at: usize) -> Result<&'a Tensor<'s, i64>> {
        if let Val::L(t) = self.val(at)? { Ok(t) } else { Err(nonsense("not i64".into())) }
    }

    fn s(&self, at: usize) -> Result<&'a Tensor<'s, i8>> {
        if let Val::S(t) = self.val(at)? { Ok(t) } else { Err(nonsense("not i8".into())) }
    }

    /// A number below `bound`.
    fn n(&self, at: usize, bound: usize) -> usize {
        self.numbers.get(at).map_or(0, |n| n % bound.max(1))
    }

    /// A number around zero, in steps of 3/8.
    fn x(&self, at: usize) -> f32 {
        self.n(at, 7) as f32 * 0.375 - 1.0
    }
}

/// Runs an instruction.
pub(crate) fn run<'s>(instr: &Instr, vals: Vec<&Val<'s>>) -> Result<Val<'s>> {
    let (Some(listed), [_, axis, numbers @ ..]) = (of(instr), &instr.nums[..]) else {
        return Err(nonsense(format!("no operation {:?}", instr.nums)));
    };
    // What the shrinker has made of a program may not fit any more, and no other program has a misfit.
    (listed.run)(&Given { vals, axis: *axis, numbers }).map_err(|error| match error {
        Error::Shape { .. } | Error::Axis { .. } => nonsense(error.to_string()),
        error => error,
    })
}

impl Locals<'_> {
    /// Adds an operation of the tables; another one, if the operands of the first are not there.
    pub(crate) fn listed(&mut self, rng: &mut StdRng) -> Option<()> {
        self.any_listed(rng).or_else(|| self.any_listed(rng))
    }

    /// Adds a value of `f64`, `i64` or `i8`, or an operation on one, which hardly anything else makes; another one, if the
    /// operands of the first are not there.
    pub(crate) fn further(&mut self, rng: &mut StdRng) -> Option<()> {
        self.one_further(rng).or_else(|| self.one_further(rng))
    }

    fn one_further(&mut self, rng: &mut StdRng) -> Option<()> {
        let most = if rng.random_bool(0.5) { further::CASTS } else { further::TABLE.len() };
        let number = rng.random_range(0..most);
        self.one_listed(rng, number)
    }

    fn any_listed(&mut self, rng: &mut StdRng) -> Option<()> {
        let number = rng.random_range(0..all().count());
        self.one_listed(rng, number)
    }

    fn one_listed(&mut self, rng: &mut StdRng, number: usize) -> Option<()> {
        let listed = all().nth(number)?;
        if !self.may_be(listed.bits) {
            return None;
        }
        let Drawn { args, axis, numbers, ty } = (listed.draw)(&mut Draw::new(self, rng))?;
        let nums = [number, axis].into_iter().chain(numbers).collect();
        self.emit(Code::Listed, args.into_iter().map(Arg::Local).collect(), nums, ty).map(drop)
    }

    fn may_be(&self, bits: Bits) -> bool {
        match bits {
            Bits::Smooth | Bits::Sum => true,
            Bits::Steep | Bits::SteepSum => !self.rules.approximate,
            Bits::Product => self.linear(),
        }
    }
}
