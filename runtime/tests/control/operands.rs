//! Variables that arms assign and move, and that the code right beside the control flow reads: another operand, the branches
//! under a condition, and what follows a block whose value the control flow is.

#![expect(unused_assignments, reason = "no code may read the value from before")]
#![expect(clippy::blocks_in_conditions, reason = "the control flow is in conditions")]

use graphable::prelude::*;

use crate::support::{build, setups};

type Row = [f32; 2];

/// Takes its argument.
fn eaten(x: Tensor<'_, f32>) -> Result<Tensor<'_, f32>> {
    ops::scale(&x, 0.5)
}

/// With a value from the start, and with one that is assigned afterwards.
#[graphable]
fn operands(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] c: &Scalar<bool>,
) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let mut y = ops::neg(x)?;
    let z = ops::add(
        &(#[device]
        if c {
            y = ops::scale(x, 3.0)?;
            let e = eaten(y)?;
            y = ops::add(x, 1.0)?;
            e
        } else {
            y = ops::add(x, 2.0)?;
            ops::neg(x)?
        }),
        &y,
    )?;
    let (mut late, other);
    (late, other) = (ops::neg(x)?, ops::scale(x, 2.0)?);
    let w = ops::sub(
        &(#[device]
        if c {
            late = ops::scale(x, 4.0)?;
            let e = eaten(late)?;
            late = ops::add(x, 3.0)?;
            e
        } else {
            late = ops::scale(x, 8.0)?;
            ops::mul(&late, &other)?
        }),
        &late,
    )?;
    Ok((z, w))
}

fn operands_by_hand(x: Row, c: bool) -> (Row, Row) {
    let z = x.map(|v| if c { v * 3.0 * 0.5 + (v + 1.0) } else { -v + (v + 2.0) });
    let w = x.map(|v| if c { v * 4.0 * 0.5 - (v + 3.0) } else { v * 8.0 * (v * 2.0) - v * 8.0 });
    (z, w)
}

#[test]
fn another_operand_reads_what_arms_assign() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(OperandsGraph, setup, &mut rt);
        for turn in 0..3 {
            for c in [true, false] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let (z, w) = graph.call(&step, &x, c).unwrap();
                let expected = operands_by_hand(x, c);
                assert_eq!(step.read(&z).unwrap(), expected.0, "{setup:?} {c}");
                assert_eq!(step.read(&w).unwrap(), expected.1, "{setup:?} {c}");
            }
        }
    }
}

/// The control flow is in the condition of an `if` of the host, and in what its `match` matches.
#[graphable]
fn conditions(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] c: &Scalar<bool>,
    #[key] which: usize,
) -> Result<(Tensor<f32>, Tensor<f32>)> {
    let mut y = ops::neg(x)?;
    let mut log = x.clone();
    let z = if {
        #[device]
        if c {
            y = ops::scale(x, 3.0)?;
            log = eaten(y)?;
            y = ops::add(x, 1.0)?;
        } else {
            y = ops::add(x, 2.0)?;
        }
        which == 0
    } {
        ops::scale(&y, 10.0)?
    } else {
        ops::scale(&y, 20.0)?
    };
    let mut u = ops::neg(x)?;
    let v = match {
        #[device]
        if c {
            u = ops::scale(&z, 3.0)?;
            log = eaten(u)?;
            u = ops::add(&z, 1.0)?;
        } else {
            u = ops::add(&z, 2.0)?;
        }
        which
    } {
        0 => ops::add(&u, &log)?,
        _ => ops::sub(&u, &log)?,
    };
    Ok((z, v))
}

fn conditions_by_hand(x: Row, c: bool, which: usize) -> (Row, Row) {
    let z = x.map(|v| (if c { v + 1.0 } else { v + 2.0 }) * if which == 0 { 10.0 } else { 20.0 });
    let one = |at: usize| {
        let (u, log) = if c { (z[at] + 1.0, z[at] * 3.0 * 0.5) } else { (z[at] + 2.0, x[at]) };
        if which == 0 { u + log } else { u - log }
    };
    (z, [one(0), one(1)])
}

#[test]
fn branches_read_what_arms_in_the_condition_assign() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(ConditionsGraph, setup, &mut rt);
        for turn in 0..3 {
            for (c, which) in [(true, 0), (false, 0), (true, 1), (false, 1)] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let (z, v) = graph.call(&step, &x, c, which).unwrap();
                let expected = conditions_by_hand(x, c, which);
                assert_eq!(step.read(&z).unwrap(), expected.0, "{setup:?} {c} {which}");
                assert_eq!(step.read(&v).unwrap(), expected.1, "{setup:?} {c} {which}");
            }
        }
    }
}

/// The value of a block with a boundary is that of the control flow. One variable has a value before, and one has none.
#[graphable]
fn tails(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] c: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    let mut y = ops::neg(x)?;
    let z = {
        let u = #[eager(support = Always)]
        ops::scale(x, 1.0)?;
        #[device]
        if c {
            y = ops::scale(&u, 3.0)?;
            let e = eaten(y)?;
            y = ops::add(&u, 1.0)?;
            e
        } else {
            y = ops::add(&u, 2.0)?;
            ops::neg(&u)?
        }
    };
    let mut later;
    let w = {
        let u = #[eager(support = Always)]
        ops::scale(&z, 1.0)?;
        #[device]
        if c {
            later = ops::scale(&u, 3.0)?;
            let e = eaten(later)?;
            later = ops::add(&u, 5.0)?;
            e
        } else {
            later = ops::add(&u, 7.0)?;
            ops::neg(&u)?
        }
    };
    ops::add(&ops::add(&z, &y)?, &ops::scale(&ops::sub(&w, &later)?, 16.0)?)
}

fn tails_by_hand(x: Row, c: bool) -> Row {
    x.map(|v| {
        let (z, y) = if c { (v * 3.0 * 0.5, v + 1.0) } else { (-v, v + 2.0) };
        let (w, later) = if c { (z * 3.0 * 0.5, z + 5.0) } else { (-z, z + 7.0) };
        z + y + (w - later) * 16.0
    })
}

#[test]
fn code_after_a_block_reads_what_the_arms_at_its_end_assign() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(TailsGraph, setup, &mut rt);
        for turn in 0..3 {
            for c in [true, false] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let w = graph.call(&step, &x, c).unwrap();
                assert_eq!(step.read(&w).unwrap(), tails_by_hand(x, c), "{setup:?} {c}");
            }
        }
    }
}

/// One arm reads the variable before it assigns it and both move it, so nothing carries it out of them but what is evaluated
/// afterwards: another operand, also around a block, the branches under a condition, the next round of a loop. An operand
/// before the control flow asks for nothing, and what arms have moved stays moved.
#[graphable]
fn read_first(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] c: &Scalar<bool>,
    #[key] which: usize,
) -> Result<Tensor<f32>> {
    let mut y = ops::neg(x)?;
    let beside = ops::add(
        &(#[device]
        if c {
            y = ops::scale(&y, 3.0)?;
            let e = eaten(y)?;
            y = ops::add(x, 1.0)?;
            e
        } else {
            y = ops::add(&y, 2.0)?;
            ops::neg(x)?
        }),
        &y,
    )?;
    let mut y = ops::neg(&beside)?;
    let around = [
        {
            let y = ops::scale(&y, 1.0)?;
            let _ = y;
            0
        },
        {
            #[device]
            if c {
                let e = eaten(y)?;
                y = ops::add(&e, 1.0)?;
            } else {
                y = ops::add(&y, 2.0)?;
            }
            1
        },
        y.rank(),
    ];
    let mut y = ops::scale(&beside, around.len() as f32)?;
    let before = ops::sub(
        &ops::neg(&y)?,
        &(#[device]
        if c {
            y = ops::scale(&y, 3.0)?;
            eaten(y)?
        } else {
            eaten(y)?
        }),
    )?;
    let mut y = ops::neg(&before)?;
    let branch = if {
        #[device]
        if c {
            let e = eaten(y)?;
            y = ops::add(&e, 1.0)?;
        }
        which == 0
    } {
        ops::scale(&y, 10.0)?
    } else {
        ops::scale(&before, 20.0)?
    };
    let mut y = ops::neg(&branch)?;
    let mut sum = ops::scale(&branch, 1.0)?;
    for turn in 0..2 {
        {
            let y = turn as f32;
            sum = ops::add(&sum, y)?;
        }
        sum = ops::add(
            &sum,
            &(#[device]
            if c {
                let e = eaten(y)?;
                y = ops::add(&e, 1.0)?;
                e
            } else {
                ops::neg(&y)?
            }),
        )?;
    }
    Ok(sum)
}

fn read_first_by_hand(x: Row, c: bool, which: usize) -> Row {
    x.map(|v| {
        let beside = if c { -v * 3.0 * 0.5 + (v + 1.0) } else { -v + (-v + 2.0) };
        let y = beside * 3.0;
        let before = -y - if c { y * 3.0 * 0.5 } else { y * 0.5 };
        let y = if c { -before * 0.5 + 1.0 } else { -before };
        let branch = if which == 0 { y * 10.0 } else { before * 20.0 };
        let (mut y, mut sum) = (-branch, branch);
        for turn in 0..2 {
            sum += turn as f32;
            sum += if c { y * 0.5 } else { -y };
            y = if c { y * 0.5 + 1.0 } else { y };
        }
        sum
    })
}

#[test]
fn the_rest_of_a_statement_reads_what_arms_read_move_and_assign() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(ReadFirstGraph, setup, &mut rt);
        for turn in 0..3 {
            for (c, which) in [(true, 0), (false, 0), (true, 1), (false, 1)] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let sum = graph.call(&step, &x, c, which).unwrap();
                assert_eq!(
                    step.read(&sum).unwrap(),
                    read_first_by_hand(x, c, which),
                    "{setup:?} {c} {which}"
                );
            }
        }
    }
}

/// The predicate or the index is a block with control flow of its own, and only the arms read what that assigns. The arms
/// of a loop are its rounds.
#[graphable]
fn predicates(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] c: &Scalar<bool>,
    #[host] which: &Scalar<i32>,
) -> Result<Tensor<f32>> {
    let mut y = ops::neg(x)?;
    let mut z = ops::neg(x)?;
    #[device]
    if {
        #[device]
        if c {
            let e = eaten(y)?;
            y = ops::add(&e, 1.0)?;
        }
        c.clone()
    } {
        z = ops::add(&y, 1.0)?;
    }
    let mut u = ops::scale(&z, 2.0)?;
    #[device]
    match {
        #[device]
        if c {
            let e = eaten(u)?;
            u = ops::add(&e, 1.0)?;
        }
        which.clone()
    } {
        0 => z = ops::add(&z, &u)?,
        _ => z = ops::sub(&z, 1.0)?,
    }
    Ok(z)
}

fn predicates_by_hand(x: Row, c: bool, which: i32) -> Row {
    x.map(|v| {
        let z = if c { -v * 0.5 + 1.0 + 1.0 } else { -v };
        let u = if c { z * 2.0 * 0.5 + 1.0 } else { z * 2.0 };
        if which == 0 { z + u } else { z - 1.0 }
    })
}

#[test]
fn arms_read_what_arms_in_the_predicate_or_index_assign() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(PredicatesGraph, setup, &mut rt);
        for turn in 0..3 {
            for (c, which) in [(true, 0), (false, 0), (true, 1), (false, 1)] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let z = graph.call(&step, &x, c, which).unwrap();
                assert_eq!(step.read(&z).unwrap(), predicates_by_hand(x, c, which), "{setup:?} {c} {which}");
            }
        }
    }
}

/// A method that borrows, by the name of one that takes.
trait Counts {
    fn map(&self) -> usize;
}

impl Counts for Tensor<'_, f32> {
    fn map(&self) -> usize {
        self.rank()
    }
}

/// The `let` of a condition or a guard binds a variable by the name of an outer one, and an operand that is a closure
/// changes a variable that the other operand reads.
#[graphable]
fn names_of_their_own(
    #[host]
    #[dims(2)]
    x: &Tensor<f32>,
    #[host] c: &Scalar<bool>,
    #[key] which: usize,
) -> Result<Tensor<f32>> {
    let y;
    let mut z = ops::neg(x)?;
    if let (0, y) = (
        {
            #[device]
            if c {
                y = ops::scale(x, 2.0)?;
                z = eaten(y)?;
            } else {
                y = ops::scale(x, 4.0)?;
                z = eaten(y)?;
            }
            which
        },
        ops::scale(x, 8.0)?,
    ) {
        z = ops::add(&z, &y)?;
    }
    let y = ops::scale(&z, 8.0)?;
    {
        match which {
            0 if let Ok(mut y) = ops::scale(&z, 3.0) =>
            {
                #[device]
                if c {
                    let e = eaten(y)?;
                    y = ops::add(&e, 1.0)?;
                    z = eaten(y)?;
                }
            }
            _ => (),
        }
    }
    let mut last = ops::add(&z, &y)?;
    ops::sub(
        &(|| -> Result<Tensor<'_, f32>> {
            #[device]
            if c {
                let rank = last.map();
                last = ops::add(&last, rank as f32)?;
            }
            ops::neg(x)
        })()?,
        &last,
    )
}

fn names_of_their_own_by_hand(x: Row, c: bool, which: usize) -> Row {
    x.map(|v| {
        let z = v * if c { 2.0 } else { 4.0 } * 0.5 + if which == 0 { v * 8.0 } else { 0.0 };
        let y = z * 8.0;
        let z = if c && which == 0 { (z * 3.0 * 0.5 + 1.0) * 0.5 } else { z };
        -v - (z + y + if c { 1.0 } else { 0.0 })
    })
}

#[test]
fn code_after_arms_has_names_of_its_own_and_closures_are_operands() {
    for setup in setups() {
        let mut rt = setup.runtime();
        let graph = build!(NamesOfTheirOwnGraph, setup, &mut rt);
        for turn in 0..3 {
            for (c, which) in [(true, 0), (false, 0), (true, 1), (false, 1)] {
                let step = rt.step().unwrap();
                let x = [turn as f32, 0.5];
                let z = graph.call(&step, &x, c, which).unwrap();
                let expected = names_of_their_own_by_hand(x, c, which);
                assert_eq!(step.read(&z).unwrap(), expected, "{setup:?} {c} {which}");
            }
        }
    }
}
