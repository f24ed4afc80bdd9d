//! Rust as it is usually written, which means in a graph what it means outside: names, lifetimes, attributes, branches,
//! moves.
#![allow(
    clippy::non_minimal_cfg,
    clippy::needless_late_init,
    clippy::unused_unit,
    reason = "what is refused or not is the point"
)]

use graphable::{graphable, prelude::*};

use crate::support::{Layer, Model, attention, check, model};

/// Upper-case names, of a segment and of the driver.
#[allow(non_snake_case, reason = "sizes are often written so")]
#[graphable]
fn upper_case(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let B = x.shape()[0];
    let N = n + 1;
    let h = ops::reshape(x, (B, N - n))?;
    let a = #[eager]
    attention(&h)?;
    let mut y = ops::reshape(&a, &[B])?;
    for I in 0..N {
        y = ops::scale(&y, (I + 1) as f32)?;
    }
    let b = #[eager]
    attention(&y)?;
    ops::scale(&ops::reshape(&b, &[B])?, N as f32)
}

#[test]
fn upper_case_names_bind() {
    check!(
        UpperCaseGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[2], &[1.0, 2.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x, 2)
        },
        vec![18.0, 36.0]
    );
}

/// A lifetime of the user's on the first parameter.
#[graphable]
fn own_lifetime<'a>(x: &'a Tensor<f32>, model: &'a Model) -> Result<Tensor<f32>> {
    let a = #[eager]
    attention(x)?;
    ops::mul(&a, &model.embed)
}

/// The step's lifetime, written out, on a host parameter.
#[graphable]
fn step_named<'s>(x: &Tensor<'s, f32>, model: &'s Model) -> Result<Tensor<'s, f32>> {
    let a = #[eager]
    attention(x)?;
    ops::mul(&a, &model.embed)
}

trait HasScale: Params {
    fn by(&self) -> &Param<f32>;
}

impl HasScale for Layer {
    fn by(&self) -> &Param<f32> {
        &self.b
    }
}

/// A generic first parameter.
#[graphable]
fn generic_first<M: HasScale>(model: &M, x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    attention(x)?;
    ops::mul(&a, model.by())
}

/// References in the first parameter's references.
#[graphable]
fn nested_references(xs: &[&Tensor<f32>], y: &Tensor<f32>) -> Result<Tensor<f32>> {
    let a = #[eager]
    attention(y)?;
    ops::add(&a, xs[0])
}

/// All of them as callees.
#[graphable]
fn calls_them(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let h = #[piecewise]
    own_lifetime(x, model)?;
    let h = #[piecewise]
    generic_first(&model.layers[0], &h)?;
    let xs = [&h];
    #[piecewise]
    nested_references(&xs[..], &h)
}

#[test]
fn lifetimes_of_functions_with_boundaries() {
    check!(
        OwnLifetimeGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[3.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m)
        },
        vec![6.0]
    );
    check!(
        GenericFirstGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[3.0]).unwrap();
            let _ = n;
            g.call(&step, &m.layers[1], &x)
        },
        vec![15.0]
    );
    check!(
        CallsThemGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[3.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m)
        },
        vec![36.0]
    );
}

/// Steps that end before the model does: `'s` of the caller is the model's borrow, made shorter.
#[test]
fn the_steps_own_lifetime_on_a_host_parameter() {
    check!(
        StepNamedGraph,
        |rt| model(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[3.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m)
        },
        vec![6.0]
    );
}

/// Underscored values of the device are no guards.
#[graphable]
fn underscored(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let _h = ops::neg(x)?;
    let _rank = x.rank();
    let a = #[eager]
    attention(x)?;
    ops::scale(&a, 2.0)
}

#[test]
fn underscored_values_are_no_guards() {
    check!(
        UnderscoredGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[3.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x)
        },
        vec![6.0]
    );
}

/// A key that the function changes for itself.
#[graphable]
fn mutable_key(x: &Tensor<f32>, #[key] mut sizes: Vec<usize>) -> Result<Tensor<f32>> {
    sizes.push(1);
    let h = ops::reshape(x, &sizes)?;
    let a = #[eager]
    attention(&h)?;
    sizes.pop();
    ops::reshape(&a, &sizes)
}

#[test]
fn a_key_that_is_mutable() {
    check!(
        MutableKeyGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[2], &[3.0, 4.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x, vec![2, 1])
        },
        vec![3.0, 4.0]
    );
}

fn not_ten(x: &Tensor<'_, f32>) -> Result<()> {
    assert_ne!(x.shape()[0], 10);
    Ok(())
}

/// Attributes of others before a boundary.
#[graphable]
fn attributed(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    #[cfg(any())]
    #[eager]
    no_such_function(&h)?;
    #[allow(clippy::unit_arg)]
    #[eager]
    not_ten(&h)?;
    let y = ops::scale(&h, 2.0)?;
    #[allow(clippy::needless_borrow)]
    #[eager]
    attention(&&y)
}

#[test]
fn attributes_of_others_before_a_boundary() {
    check!(
        AttributedGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[3.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x)
        },
        vec![-6.0]
    );
}

/// An error type of one's own.
#[derive(Debug)]
enum Failure {
    Graph(Error),
    Negative,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Graph(error)
    }
}

/// One `?` behind branches whose errors have several types.
#[graphable]
fn one_question_mark(x: &Tensor<f32>) -> Result<Tensor<f32>, Failure> {
    let k = #[eager(cx)]
    cx.item(x)?;
    let y = if k > 5.0 {
        ops::scale(x, 2.0)
    } else if k > 1.0 {
        let h = ops::neg(x)?;
        #[eager]
        attention(&h)
    } else {
        ops::neg(x)
    }?;
    (if k > 50.0 { Err(Failure::Negative) } else { not_ten(x).map_err(Failure::Graph) })?;
    let z = match k {
        k if k < 0.0 => return Err(Failure::Negative),
        k if k < 4.0 => ops::scale(&y, 3.0),
        _ => ops::scale(&y, 4.0),
    }?;
    #[key]
    let checked = {
        let limit = 100.0;
        if k > limit { Err(Failure::Negative) } else { Ok(k) }
    }?;
    let z = if checked > 100.0 { return Err(Failure::Negative) } else { ops::scale(&z, 2.0)? };
    let z = if k > 200.0 {
        return Err(Failure::Negative);
    } else {
        ops::scale(&z, 5.0)?
    };
    let z = match k {
        k if k > 300.0 => {
            let _unused = ops::neg(&z)?;
            unreachable!("refused above");
        }
        _ => ops::scale(&z, 1.0)?,
    };
    Ok(ops::scale(&z, 1.0)?)
}

#[test]
fn one_question_mark_behind_branches() {
    for (value, expected) in [(6.0, 480.0), (2.0, -60.0), (1.0, -30.0)] {
        check!(
            OneQuestionMarkGraph,
            |rt| (),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[value]).unwrap();
                let _ = (&m, n);
                g.call(&step, &x)
            },
            vec![expected]
        );
    }
    let mut rt = crate::support::runtime();
    let g = OneQuestionMarkGraph::builder().build(&mut rt).unwrap();
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[1], &[-1.0]).unwrap();
        let error = g.call(&step, &x).unwrap_err();
        if let Failure::Graph(error) = error {
            panic!("{error}");
        }
    }
}

/// A user's type of the name `Step`, in a body.
mod own_step {
    use graphable::{graphable, prelude::*};

    #[derive(Clone, Copy, PartialEq, ConfigValue)]
    pub(crate) enum Step {
        Up,
        Down,
    }

    #[derive(Params)]
    pub(crate) struct Stairs {
        #[config]
        pub(crate) step: Step,
        pub(crate) by: Param<f32>,
    }

    #[graphable]
    pub(crate) fn climb(x: &Tensor<f32>, stairs: &Stairs) -> Result<Tensor<f32>> {
        let step: Step = stairs.step;
        let up = |s: Step| s == Step::Up;
        if up(step) { ops::add(x, &stairs.by) } else { ops::sub(x, &stairs.by) }
    }
}

#[test]
fn a_type_of_the_name_step() {
    use own_step::{ClimbGraph, Stairs, Step};
    for (direction, expected) in [(Step::Up, 4.0), (Step::Down, 2.0)] {
        check!(
            ClimbGraph,
            |rt| Stairs { step: direction, by: Param::new(&rt, &[1], &[1.0]).unwrap() },
            |g, step, m, n| {
                let x = step.tensor(&[1], &[3.0]).unwrap();
                let _ = n;
                g.call(&step, &x, &m)
            },
            vec![expected]
        );
    }
}

/// Assigned in every branch, of which one has a boundary.
#[graphable]
fn nested_assignment(x: &Tensor<f32>, #[key] a: bool, #[key] b: bool) -> Result<Tensor<f32>> {
    let y;
    if a {
        let t = #[eager]
        attention(x)?;
        y = ops::neg(&t)?;
    } else {
        if b {
            y = ops::neg(x)?;
        } else {
            y = ops::scale(x, 2.0)?;
        }
    }
    let z;
    match (a, b) {
        (true, _) => {
            let t = #[eager]
            attention(x)?;
            z = ops::scale(&t, 3.0)?;
        }
        (false, true) => {
            if b {
                z = ops::scale(x, 5.0)?;
            } else {
                z = ops::neg(x)?;
            }
        }
        (false, false) => z = ops::scale(x, 7.0)?,
    }
    ops::add(&y, &z)
}

#[test]
fn assigned_in_every_branch() {
    for (a, b, expected) in [(true, true, 2.0), (false, true, 4.0), (false, false, 9.0)] {
        check!(
            NestedAssignmentGraph,
            |rt| (),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = (&m, n);
                g.call(&step, &x, a, b)
            },
            vec![expected]
        );
    }
}

/// A move in a branch that leaves the function.
#[graphable]
fn diverging_move(x: &Tensor<f32>, #[key] m: usize) -> Result<Tensor<f32>> {
    let h = #[eager]
    attention(x)?;
    let b = if m == 0 {
        drop(h);
        return Err(ops::narrow(x, 5, 0, 1).unwrap_err());
    } else {
        ops::neg(&h)?
    };
    let a = #[eager]
    attention(&b)?;
    ops::add(&a, &ops::scale(&h, 3.0)?)
}

#[test]
fn a_move_before_an_early_return() {
    check!(
        DivergingMoveGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x, 1)
        },
        vec![2.0]
    );
    let mut rt = crate::support::runtime();
    let g = DivergingMoveGraph::builder().build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let x = step.tensor(&[1], &[1.0]).unwrap();
    assert!(g.call(&step, &x, 0).is_err());
}

/// A `move` closure over a value that is no `Copy`, for the driver and for segments.
#[graphable]
fn moving_closure(x: &Tensor<f32>, #[key] names: Vec<String>) -> Result<Tensor<f32>> {
    let all = names.clone();
    let width = move |i: usize| all.len() + i;
    let mut h = ops::scale(x, width(1) as f32)?;
    for _ in 0..width(0) {
        let a = #[eager]
        attention(&h)?;
        h = ops::scale(&a, width(2) as f32)?;
    }
    Ok(h)
}

#[test]
fn a_move_closure_for_driver_and_segments() {
    check!(
        MovingClosureGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x, vec!["a".to_owned(), "b".to_owned()])
        },
        vec![48.0]
    );
}

/// `let`s that exist under a condition only, and are used so behind a boundary.
#[graphable]
fn conditional_lets(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    #[cfg(any())]
    let extra = no_such_function(&h)?;
    #[cfg(all())]
    let more = ops::scale(&h, 2.0)?;
    let y = ops::scale(&h, 10.0)?;
    #[cfg(any())]
    let y = no_such_function(&y)?;
    let a = #[eager]
    attention(&h)?;
    #[cfg(any())]
    let a = ops::add(&a, &extra)?;
    #[cfg(all())]
    let a = ops::add(&a, &more)?;
    ops::add(&a, &y)
}

#[test]
fn lets_under_a_condition() {
    check!(
        ConditionalLetsGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = (&m, n);
            g.call(&step, &x)
        },
        vec![-13.0]
    );
}
