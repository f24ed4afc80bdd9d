//! Control flow: described to the runtime, or decided on the host.

use std::cell::RefCell;

use graphable::{Eager, Error, Result, Tensor, bf16, control, ops};

use super::{Env, Val, nonsense};
use crate::program::{Elem, Flow, FlowKind, Instr, Part};

/// Where a decision comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The first element of a tensor.
    Element,
    /// The real size of a dimension.
    Size,
    /// A random number.
    Drawn,
}

/// Values by their types, which control flow can carry.
type Packed<'s> = (
    (Vec<Tensor<'s, f32>>, Vec<Tensor<'s, bf16>>, Vec<Tensor<'s, u32>>, Vec<Tensor<'s, bool>>),
    (Vec<Tensor<'s, f64>>, Vec<Tensor<'s, i64>>, Vec<Tensor<'s, i8>>),
);

fn pack<'s>(values: &[Val<'s>]) -> Packed<'s> {
    let mut packed = Packed::default();
    for value in values {
        match value {
            Val::F(t) => packed.0.0.push(t.clone()),
            Val::H(t) => packed.0.1.push(t.clone()),
            Val::U(t) => packed.0.2.push(t.clone()),
            Val::B(t) => packed.0.3.push(t.clone()),
            Val::D(t) => packed.1.0.push(t.clone()),
            Val::L(t) => packed.1.1.push(t.clone()),
            Val::S(t) => packed.1.2.push(t.clone()),
        }
    }
    packed
}

fn unpack<'s>(packed: Packed<'s>, elems: &[Elem]) -> Result<Vec<Val<'s>>> {
    let ((f, h, u, b), (d, l, s)) = packed;
    let (mut f, mut h, mut u, mut b) = (f.into_iter(), h.into_iter(), u.into_iter(), b.into_iter());
    let (mut d, mut l, mut s) = (d.into_iter(), l.into_iter(), s.into_iter());
    let next = |elem: &Elem| match elem {
        Elem::F32 => f.next().map(Val::F),
        Elem::Bf16 => h.next().map(Val::H),
        Elem::U32 => u.next().map(Val::U),
        Elem::Bool => b.next().map(Val::B),
        Elem::F64 => d.next().map(Val::D),
        Elem::I64 => l.next().map(Val::L),
        Elem::I8 => s.next().map(Val::S),
    };
    let values: Vec<Val<'s>> = elems.iter().map_while(next).collect();
    if values.len() == elems.len() { Ok(values) } else { Err(nonsense("a value of another type".into())) }
}

fn elems(values: &[Val<'_>]) -> Vec<Elem> {
    values.iter().map(Val::elem).collect()
}

/// The first element, as a scalar.
fn first<'s, T: graphable::Element>(t: &Tensor<'s, T>) -> Result<Tensor<'s, T>> {
    let one = (0..t.rank()).try_fold(t.clone(), |t, axis| ops::narrow(&t, axis, 0, 1))?;
    ops::reshape(&ops::contiguous(&one)?, ())
}

/// The rounds of loops, at most.
const ROUNDS: u32 = 4;

impl<'s> Env<'_, 's, '_> {
    fn decided(&self, i: &Instr) -> Result<Tensor<'s, u32>> {
        let value = self.val(i, 0)?;
        match i.nums.first() {
            Some(&n) if n == Decision::Drawn as usize => {
                ops::randint(self.generator(i, 1)?, value.scope(), (), 0..12u32)
            }
            Some(&n) if n == Decision::Size as usize => {
                let axis = i.nums.get(1).copied().unwrap_or(0);
                each!(value, t => ops::size(t, axis))
            }
            _ => match value {
                Val::U(t) => first(t),
                Val::F(t) => ops::cast(&ops::gt(&first(t)?, 0.0)?),
                other => Err(nonsense(format!("{other:?} decides nothing"))),
            },
        }
    }

    pub(super) fn flow(&mut self, i: &Instr, flow: &Flow) -> Result<()> {
        let decision = self.decided(i)?;
        let carried = flow.carried.iter().map(|&t| self.local(t).cloned()).collect::<Result<Vec<_>>>()?;
        let results = match self.plain {
            Some(cx) => self.plainly(flow, cx.item(&decision)?, carried)?,
            None => self.described(flow, &decision, carried)?,
        };
        for (&to, value) in flow.results.iter().zip(results) {
            self.set(to, value);
        }
        Ok(())
    }

    /// The host knows what happens. As on the device, what control flow carries and returns is in memory of its own, contiguous: the
    /// bits of a product depend on the layout of what it multiplies.
    fn plainly(&mut self, flow: &Flow, decision: u32, mut values: Vec<Val<'s>>) -> Result<Vec<Val<'s>>> {
        let parts = &flow.parts;
        let contiguous =
            |values: Vec<Val<'s>>| values.iter().map(Val::contiguous).collect::<Result<Vec<_>>>();
        match flow.kind {
            FlowKind::Cond => {
                contiguous(self.part(&parts[usize::from(decision.is_multiple_of(2))], Vec::new())?)
            }
            FlowKind::Switch => contiguous(self.part(&parts[decision as usize % parts.len()], Vec::new())?),
            FlowKind::While => {
                values = contiguous(values)?;
                let outer = parts[0].first.min(self.locals.len());
                for _ in 0..decision % ROUNDS {
                    // What a round drops is gone after the loop, and not for its next round.
                    let before = self.locals[..outer].to_vec();
                    values = contiguous(self.part(&parts[0], values)?)?;
                    self.locals[..outer].clone_from_slice(&before);
                }
                Ok(values)
            }
        }
    }

    /// The device decides.
    fn described(
        &mut self,
        flow: &Flow,
        decision: &Tensor<'s, u32>,
        values: Vec<Val<'s>>,
    ) -> Result<Vec<Val<'s>>> {
        let parts = &flow.parts;
        let types = RefCell::new(elems(&values));
        let env = RefCell::new(self);
        let body = |part: &Part| {
            let outs = env.borrow_mut().part(part, Vec::new())?;
            types.replace(elems(&outs));
            Ok::<_, Error>(pack(&outs))
        };
        let packed = match flow.kind {
            FlowKind::Cond => {
                let is_odd = ops::eq(&ops::remainder(decision, 2u32)?, 1u32)?;
                control::cond(&is_odd, || body(&parts[0]), || body(&parts[1]))?
            }
            FlowKind::Switch => {
                let index = ops::remainder(decision, parts.len() as u32)?;
                let values: Vec<u32> = (0..parts.len() as u32 - 1).collect();
                let cases: Vec<&[u32]> = values.chunks(1).collect();
                control::switch(&index, &cases, |at| body(&parts[at]))?
            }
            FlowKind::While => {
                let rounds = ops::remainder(decision, ROUNDS)?;
                let start = (ops::full(decision.scope(), (), 0u32)?, pack(&values));
                drop(values);
                let known = types.borrow().clone();
                let (_, packed) = control::while_loop(
                    ROUNDS,
                    start,
                    |(i, _)| ops::lt(i, &rounds),
                    |(i, packed)| {
                        let outs = env.borrow_mut().part(&parts[0], unpack(packed, &known)?)?;
                        Ok::<_, Error>((ops::add(&i, 1)?, pack(&outs)))
                    },
                )?;
                packed
            }
        };
        let types = types.into_inner();
        unpack(packed, &types)
    }

    /// Runs the code of a body. What it made and does not return is gone.
    fn part(&mut self, part: &Part, values: Vec<Val<'s>>) -> Result<Vec<Val<'s>>> {
        for (&to, value) in part.params.iter().zip(values) {
            self.set(to, value);
        }
        self.run_code(&part.code, None)?;
        let outs = part.outs.iter().map(|&t| self.local(t).cloned()).collect::<Result<_>>()?;
        let end = part.end.min(self.locals.len());
        for local in self.locals.get_mut(part.first..end).into_iter().flatten() {
            *local = None;
        }
        Ok(outs)
    }

    /// Defines a local.
    pub(super) fn set(&mut self, to: usize, value: Val<'s>) {
        if let Some(keep) = &mut self.keep {
            keep.push(value.clone());
        }
        if self.locals.len() <= to {
            self.locals.resize(to + 1, None);
        }
        self.locals[to] = Some(value);
    }
}

/// Where plain code looks at decisions.
pub(crate) type Plain<'k, 's> = Option<&'k Eager<'s>>;
