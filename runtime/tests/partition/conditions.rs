//! `#[cfg]` inside functions with boundaries: what is not there hides nothing, leaves nothing and runs nothing.
#![allow(
    clippy::non_minimal_cfg,
    clippy::needless_return,
    unused_variables,
    reason = "conditions that always or never hold stand for features"
)]

use graphable::{graphable, prelude::*};

use crate::support::{attention, check, gives};

/// Two alternatives, of which the one that is not there is the region.
#[graphable]
fn region_not_there(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    attention(x)?;
    #[cfg(all())]
    let h = ops::scale(&h, 3.0)?;
    #[cfg(any())]
    let h = #[eager]
    flash_attention(&h)?;
    ops::add(&h, x)
}

/// The other order.
#[graphable]
fn region_not_there_first(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    #[cfg(any())]
    let y = #[eager]
    flash_attention(&h)?;
    #[cfg(all())]
    let y = ops::scale(&h, 3.0)?;
    let b = #[eager]
    attention(&y)?;
    ops::add(&y, &b)
}

/// The region is there, and the segment is not.
#[graphable]
fn segment_not_there(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    #[cfg(any())]
    let h = plain_attention(&h)?;
    #[cfg(all())]
    let h = #[eager]
    attention(&h)?;
    ops::add(&h, x)
}

#[test]
fn alternatives() {
    gives!(RegionNotThereGraph, 4.0);
    gives!(RegionNotThereFirstGraph, 12.0);
    gives!(SegmentNotThereGraph, 3.0);
}

/// What a loop writes, although a `let` that is not there would shadow it.
#[graphable]
fn written_in_a_loop(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut gain = ops::scale(x, 2.0)?;
    for i in 0..3 {
        gain = ops::scale(&gain, 2.0)?;
        let a = #[eager]
        attention(&gain)?;
        gain = ops::add(&a, x)?;
    }
    #[cfg(any())]
    let gain = #[eager]
    attention(x)?;
    ops::add(&gain, x)
}

#[test]
fn loops() {
    // 2 -> 5 -> 11 -> 23
    gives!(WrittenInALoopGraph, 24.0);
}

/// Jumps that are not there.
#[graphable]
fn jumps(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    attention(x)?;
    #[cfg(any())]
    return Ok(h);
    let mut y = ops::scale(&h, 2.0)?;
    for i in 0..4 {
        #[cfg(any())]
        break;
        #[cfg(any())]
        continue;
        y = ops::add(&y, x)?;
        let a = #[eager]
        attention(&y)?;
        if i == 2 {
            #[cfg(all())]
            break;
        }
    }
    #[cfg(any())]
    {
        return Ok(y);
    }
    ops::add(&y, x)
}

/// A jump that is there, with an attribute of rustc's.
#[graphable]
fn jump_with_attributes(x: &Tensor<f32>, #[key] early: bool) -> Result<Tensor<f32>> {
    let h = #[eager]
    attention(x)?;
    if early {
        #[allow(clippy::needless_return)]
        #[cfg(all())]
        return ops::scale(&h, 7.0);
    }
    let y = 'all: loop {
        if h.rank() == 1 {
            #[allow(clippy::needless_return)]
            break 'all ops::scale(&h, 2.0)?;
        }
    };
    let a = #[eager]
    attention(&y)?;
    ops::add(&a, x)
}

#[test]
fn leaving() {
    gives!(JumpsGraph, 6.0);
    for (early, expected) in [(true, 7.0), (false, 3.0)] {
        check!(
            JumpWithAttributesGraph,
            |rt| (),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = n;
                g.call(&step, &x, early)
            },
            vec![expected]
        );
    }
}

/// A write that is not there.
#[graphable]
fn store_not_there(x: &Tensor<f32>, kept: &State<f32>) -> Result<Tensor<f32>> {
    let h = #[eager]
    attention(x)?;
    #[cfg(any())]
    ops::store(kept, &h)?;
    #[cfg(any())]
    (ops::store(kept, &h))?;
    #[cfg(any())]
    (#[eager]
    ops::store(kept, &h))?;
    #[cfg(any())]
    if #[eager]
    attention(&h)?.rank()
        == 1
    {
        ops::store(kept, &h)?;
    }
    ops::add(&h, &ops::load(x.scope(), kept)?)
}

#[test]
fn statements() {
    check!(
        StoreNotThereGraph,
        |rt| State::<f32>::zeros(&rt, &[1]).unwrap(),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, &m)
        },
        vec![1.0]
    );
}

fn act<'s>(x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::scale(x, 100.0)
}

/// Alternatives of a closure, with a function of its name outside.
#[graphable]
fn closures(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    #[cfg(all())]
    let act = |v| ops::scale(v, 5.0);
    #[cfg(any())]
    let act = |v| ops::scale(v, 7.0);
    let h = ops::scale(&act(x)?, 2.0)?;
    let a = #[eager]
    attention(&h)?;
    ops::add(&act(&a)?, x)
}

#[test]
fn closures_that_are_not_there() {
    gives!(ClosuresGraph, 51.0);
    let _ = act;
}

/// Blocks, arms, fields and tails.
#[graphable]
fn blocks(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
    let h = ops::scale(x, 2.0)?;
    let y = match n {
        #[cfg(any())]
        1 =>
        {
            #[eager]
            attention(x)?
        }
        #[cfg(all())]
        1 => {
            let a = #[eager]
            attention(&h)?;
            ops::scale(&a, 3.0)?
        }
        _ => ops::neg(&h)?,
    };
    #[cfg(any())]
    {
        ops::neg(&y)
    }
    #[cfg(all())]
    {
        let a = #[eager]
        attention(&y)?;
        ops::add(&a, x)
    }
}

#[test]
fn arms_and_tails() {
    for (key, expected) in [(1, 7.0), (2, -1.0)] {
        check!(
            BlocksGraph,
            |rt| (),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = n;
                g.call(&step, &x, key)
            },
            vec![expected]
        );
    }
}

/// A region under a condition, parameters, and one that is a region only where the condition holds.
#[graphable]
fn marked(x: &Tensor<f32>, #[cfg_attr(all(), key)] n: usize) -> Result<Tensor<f32>> {
    let h = ops::scale(x, n as f32)?;
    let a = #[cfg_attr(all(), eager)]
    attention(&h)?;
    let b = #[cfg_attr(any(), eager)]
    attention(&a)?;
    #[cfg_attr(all(), host)]
    let k = std::hint::black_box(n);
    ops::scale(&b, k as f32)
}

#[test]
fn conditions_on_our_attributes() {
    let kinds: Vec<_> = MarkedGraph::PLAN
        .items
        .iter()
        .map(|item| match item {
            graphable::PlanItem::Segment { .. } => 's',
            graphable::PlanItem::Boundary { .. } => 'b',
            _ => '?',
        })
        .collect();
    assert_eq!(kinds, ['s', 'b', 's', 's']);
    check!(
        MarkedGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &x, 3)
        },
        vec![9.0]
    );
}

#[derive(Params)]
struct Head {
    w: Param<f32>,
}

#[graphable]
impl Head {
    #[cfg(any())]
    fn run(&self, absent: Absent) -> Absent {}

    #[cfg(all())]
    fn run(&self, #[cfg(any())] absent: Absent, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let h = ops::mul(x, &self.w)?;
        #[cfg(any())]
        let h = #[eager]
        absent(&h)?;
        let a = #[eager]
        attention(&h)?;
        #[cfg(all())]
        let a = ops::mul(&a, &self.w)?;
        Ok(a)
    }
}

#[test]
fn methods() {
    check!(
        HeadRunGraph,
        |rt| Head { w: Param::new(&rt, &[1], &[3.0]).unwrap() },
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let _ = n;
            g.call(&step, &m, &x)
        },
        vec![9.0]
    );
}

/// Inside a function, and made by a macro.
macro_rules! made {
    ($name:ident, $condition:meta) => {
        #[graphable]
        fn $name(x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let h = ops::scale(x, 2.0)?;
            #[cfg($condition)]
            let h = #[eager]
            attention(&h)?;
            #[cfg(not($condition))]
            let h = ops::neg(&h)?;
            let b = #[eager]
            attention(&h)?;
            ops::add(&b, x)
        }
    };
}

#[test]
fn items_of_functions_and_macros() {
    made!(with, all());
    made!(without, any());
    gives!(WithGraph, 3.0);
    gives!(WithoutGraph, -1.0);
}
