//! Structs that derive `Carried`: generic, nested, of tuples, and without fields; in loops, in arms, and by `control`.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Clone, GraphOutput, Carried)]
struct Moments<'s, T> {
    sum: Tensor<'s, T>,
    parts: (Scalar<'s, i32>, [Tensor<'s, f32>; 2]),
    list: Vec<Tensor<'s, f32>>,
    r#type: Option<Tensor<'s, f32>>,
}

#[derive(Clone, Carried)]
struct Wrapped<C: Clone>(C, Nothing)
where
    C: Sized;

#[derive(Clone, Copy, Carried)]
struct Nothing;

/// Has no `Clone`: only the value of a node.
#[derive(Carried)]
struct Both<'s> {
    l: Tensor<'s, f32>,
    r: Tensor<'s, f32>,
}

impl<'s> Moments<'s, f32> {
    fn next(&self, x: &Tensor<'s, f32>) -> Result<Self> {
        Ok(Self {
            sum: ops::add(&self.sum, x)?,
            parts: (Scalar::from_tensor(ops::add(&self.parts.0, 1)?)?, self.parts.1.clone()),
            list: self.list.iter().map(ops::neg).collect::<Result<_>>()?,
            r#type: Some(ops::scale(x, 2.0)?),
        })
    }
}

#[graphable]
fn looped(x: &Tensor<f32>, #[host] q: &Scalar<i32>) -> Result<(Tensor<f32>, Scalar<i32>, Tensor<f32>)> {
    let zero = Scalar::from_tensor(ops::full(x.scope(), (), 0i32)?)?;
    let mut state = Moments {
        sum: x.clone(),
        parts: (zero, [x.clone(), x.clone()]),
        list: vec![x.clone()],
        r#type: Some(x.clone()),
    };
    let y = #[eager(support = Always)]
    ops::neg(x)?;
    #[device]
    while ops::lt(&state.parts.0, q)? {
        state = state.next(&y)?;
        #[device]
        if ops::gt(&state.parts.0, 1)? {
            state.sum = ops::scale(&state.sum, 10.0)?;
        }
    }
    let both = #[device]
    if ops::gt(q, 0)? {
        Both { l: state.list[0].clone(), r: state.sum.clone() }
    } else {
        Both { l: ops::scale(x, 7.0)?, r: x.clone() }
    };
    let wrapped = control::while_loop(
        1,
        Wrapped(both.l, Nothing),
        |Wrapped(l, _)| Scalar::from_tensor(ops::lt(&ops::sum(l, 0)?, 50.0)?),
        |Wrapped(l, nothing)| Ok::<_, Error>(Wrapped(ops::add(&l, 100.0)?, nothing)),
    )?;
    Ok((ops::add(&both.r, &wrapped.0)?, state.parts.0, state.r#type.unwrap()))
}

fn main() -> Result<()> {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = Runtime::new(Device::cpu())?;
        let graph = LoopedGraph::builder().mode(mode).build(&mut rt)?;
        for _ in 0..4 {
            for (q, expected, last) in [(0, 108.0, 1.0), (1, 99.0, -2.0), (2, 91.0, -2.0), (3, -11.0, -2.0)] {
                let step = rt.step()?;
                let x = step.tensor(&[1], &[1.0f32])?;
                let (y, n, doubled) = graph.call(&step, &x, q)?;
                assert_eq!((step.read(&y)?, step.item(&n)?, step.read(&doubled)?), (vec![expected], q, vec![last]));
            }
        }
    }
    Ok(())
}
