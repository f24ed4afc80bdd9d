//! Orders of evaluation that splitting a body could change: each graph against the same steps in plain Rust.

use graphable::{graphable, prelude::*};

use crate::support::{attention, check};

#[derive(Params)]
struct Layer {
    a: Param<f32>,
    b: Param<f32>,
}

#[derive(Params)]
struct Model {
    layers: Vec<Layer>,
    w: Param<f32>,
}

const A: [f32; 4] = [2.0, 4.0, 8.0, 16.0];
const W: f32 = 2.0;

/// Layer `i` is (`A[i]`, `A[i] + 1`), and `w` is `W`.
fn model(rt: &Runtime) -> Model {
    let scalar = |v: f32| Param::new(rt, &[1], &[v]).unwrap();
    Model { layers: A.iter().map(|v| Layer { a: scalar(*v), b: scalar(v + 1.0) }).collect(), w: scalar(W) }
}

/// Checks a graph of `(x, model)` and further arguments on `x = 1`.
macro_rules! gives {
    ($graph:ident, $expected:expr $(, $arg:expr)*) => {
        check!(
            $graph,
            |rt| model(&rt),
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = n;
                g.call(&step, &x, &m $(, $arg)*)
            },
            vec![$expected]
        )
    };
}

/// A reference by an index that goes on.
#[graphable]
fn index_goes_on(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut i = 0;
    let q = ops::mul(x, &model.layers[i].a)?;
    i += 1;
    let w = &model.layers[i];
    let b = &w.b;
    i += 1;
    let a = #[eager]
    attention(&q)?;
    let y = ops::mul(&a, &w.a)?;
    let y = ops::mul(&y, b)?;
    ops::scale(&y, i as f32)
}

/// The same, in a loop.
#[graphable]
fn index_goes_on_in_a_loop(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut h = ops::scale(x, 1.0)?;
    let mut i = 0;
    while i < 4 {
        h = ops::mul(&h, &model.layers[i].b)?;
        let w = &model.layers[i].a;
        i += 1;
        let a = #[eager]
        attention(&h)?;
        h = ops::mul(&a, w)?;
        i += 1;
    }
    Ok(h)
}

/// The index changes inside a block, and through a reference.
#[graphable]
fn index_changes_inside(x: &Tensor<f32>, model: &Model, #[key] far: bool) -> Result<Tensor<f32>> {
    let mut i = x.rank() - 1;
    let w = &model.layers[i];
    if far {
        i += 2;
    }
    let v = &model.layers[i];
    {
        let at = &mut i;
        *at += 1;
    }
    let a = #[eager]
    attention(x)?;
    let y = ops::mul(&ops::mul(&a, &w.a)?, &v.b)?;
    ops::scale(&y, i as f32)
}

#[test]
fn a_reference_keeps_the_index_it_was_made_with() {
    gives!(IndexGoesOnGraph, A[0] * A[1] * (A[1] + 1.0) * 2.0);
    gives!(IndexGoesOnInALoopGraph, (A[0] + 1.0) * A[0] * (A[2] + 1.0) * A[2]);
    gives!(IndexChangesInsideGraph, A[0] * (A[0] + 1.0) * 1.0, false);
    gives!(IndexChangesInsideGraph, A[0] * (A[2] + 1.0) * 3.0, true);
}

/// A closure of an earlier run reads `s` before `s` changes.
#[graphable]
fn closure_reads_first(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut s = 2.0f32;
    let f = |t: &Tensor<f32>| ops::scale(t, s);
    let a = #[eager]
    attention(x)?;
    let b = f(&a)?;
    s = 3.0;
    let c = ops::scale(&b, s)?;
    let d = #[eager]
    attention(&c)?;
    ops::mul(&d, &model.w)
}

/// A closure of an earlier run changes `n`, which is read after it.
#[graphable]
fn closure_writes_first(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut n = 0usize;
    let mut f = |t: &Tensor<f32>| {
        n += 1;
        ops::scale(t, 2.0)
    };
    let a = #[eager]
    attention(x)?;
    let b = f(&a)?;
    let m = n;
    let c = ops::mul(&b, &model.w)?;
    ops::scale(&c, m as f32)
}

/// The same, one closure behind another.
#[graphable]
fn closure_behind_closure(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut s = 2.0f32;
    let inner = |t: &Tensor<f32>| ops::scale(t, s);
    let f = |t: &Tensor<f32>| inner(t);
    let a = #[eager]
    attention(x)?;
    let b = f(&a)?;
    s += 3.0;
    let c = ops::scale(&b, s)?;
    ops::mul(&c, &model.w)
}

#[test]
fn closures_run_where_they_are_called() {
    gives!(ClosureReadsFirstGraph, 2.0 * 3.0 * W);
    gives!(ClosureWritesFirstGraph, 2.0 * W * 1.0);
    gives!(ClosureBehindClosureGraph, 2.0 * 5.0 * W);
}

/// An array pattern on the left of an assignment.
#[graphable]
fn array_assigned(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut a = #[eager]
    attention(x)?;
    let mut b = #[eager]
    ops::scale(x, 3.0)?;
    let y = ops::sub(&a, &b)?;
    [a, b] = [b, a];
    let z = #[eager]
    attention(&y)?;
    let s = ops::sub(&a, &b)?;
    ops::mul(&ops::mul(&z, &s)?, &model.w)
}

struct Two<'s> {
    p: Tensor<'s, f32>,
    q: Tensor<'s, f32>,
}

/// A struct pattern there.
#[graphable]
fn struct_assigned(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut p = #[eager]
    attention(x)?;
    let mut q = #[eager]
    ops::scale(x, 3.0)?;
    let y = ops::sub(&p, &q)?;
    Two { p: q, q: p } = Two { p, q };
    let z = #[eager]
    attention(&y)?;
    let s = ops::sub(&p, &q)?;
    ops::mul(&ops::mul(&z, &s)?, &model.w)
}

struct Pair<T>(T, T);

/// A tuple struct pattern there, inside a tuple.
#[graphable]
fn tuple_struct_assigned(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let (mut p, mut q, mut n) = (2usize, 3usize, 1usize);
    let y = ops::scale(x, (10 * p + q) as f32)?;
    (Pair(q, p), n) = (Pair(p, q), n + 1);
    let z = #[eager]
    attention(&y)?;
    let s = ops::scale(&z, (10 * p + q) as f32)?;
    ops::mul(&ops::scale(&s, n as f32)?, &model.w)
}

#[test]
fn every_pattern_of_an_assignment_assigns() {
    gives!(ArrayAssignedGraph, (1.0 - 3.0) * (3.0 - 1.0) * W);
    gives!(StructAssignedGraph, (1.0 - 3.0) * (3.0 - 1.0) * W);
    gives!(TupleStructAssignedGraph, 23.0 * 32.0 * 2.0 * W);
}

fn finish<'s>(outs: &mut Vec<Tensor<'s, f32>>, h: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    outs.push(ops::scale(h, 5.0)?);
    ops::scale(h, 2.0)
}

/// The value of a `break` changes a variable.
#[graphable]
fn break_changes(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut outs = vec![ops::scale(x, 1.0)?];
    let y = loop {
        let a = #[eager]
        attention(x)?;
        break finish(&mut outs, &a)?;
    };
    let b = #[eager]
    attention(&y)?;
    ops::mul(&ops::add(&b, &outs[outs.len() - 1])?, &model.w)
}

/// A `break` of a labelled block.
#[graphable]
#[allow(unused_parens, reason = "rustc asks for them, and for none")]
fn labelled_break_changes(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut n = 1usize;
    let y = 'a: {
        let a = #[eager]
        attention(x)?;
        if n == 1 {
            break 'a ({
                n += 1;
                ops::scale(&a, 2.0)?
            });
        }
        ops::neg(&a)?
    };
    ops::mul(&ops::scale(&y, n as f32)?, &model.w)
}

/// A branch in front of `?` changes a variable.
#[graphable]
fn tried_branch_changes(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut outs = vec![ops::scale(x, 1.0)?];
    let k = #[eager(cx)]
    cx.item(x)?;
    let y = if k > 0.0 { finish(&mut outs, x) } else { ops::neg(x) }?;
    let b = #[eager]
    attention(&y)?;
    ops::mul(&ops::add(&b, &outs[outs.len() - 1])?, &model.w)
}

/// The value of a loop is the function's: its `break`s give results.
#[graphable]
fn break_result(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut n = 1;
    loop {
        let a = #[eager]
        attention(x)?;
        n += 1;
        if n == 4 {
            break ops::scale(&ops::mul(&a, &model.w)?, n as f32);
        }
    }
}

#[test]
fn values_of_breaks_and_branches_keep_their_changes() {
    gives!(BreakChangesGraph, (2.0 + 5.0) * W);
    gives!(LabelledBreakChangesGraph, 2.0 * 2.0 * W);
    gives!(TriedBranchChangesGraph, (2.0 + 5.0) * W);
    gives!(BreakResultGraph, 4.0 * W);
}

/// A `let` that assigns, and borrows.
#[graphable]
fn assigns_once(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut i = 0;
    let q = ops::mul(x, &model.layers[i].a)?;
    let w = {
        i += 1;
        &model.layers[i]
    };
    let a = #[eager]
    attention(&q)?;
    ops::scale(&ops::mul(&a, &w.a)?, i as f32)
}

#[test]
fn a_let_that_assigns_runs_once() {
    gives!(AssignsOnceGraph, A[0] * A[1] * 1.0);
}

struct View<'a> {
    w: &'a Layer,
    i: usize,
}

/// A field by its short form, whose variable is shadowed.
#[graphable]
fn short_field(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let i = x.rank();
    let v = View { w: &model.layers[0], i };
    let i = i + 1;
    let a = #[eager]
    attention(x)?;
    let y = ops::mul(&a, &v.w.a)?;
    ops::scale(&y, (v.i * 10 + i) as f32)
}

/// The borrow binds the same name inside itself.
#[graphable]
fn inner_name(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let i = x.rank();
    let v = {
        let i = i + 1;
        &model.layers[i]
    };
    let w = match i {
        0 => &model.layers[0],
        i => &model.layers[i],
    };
    let i = i + 2;
    let a = #[eager]
    attention(x)?;
    let y = ops::mul(&ops::mul(&a, &v.a)?, &w.b)?;
    ops::scale(&y, i as f32)
}

#[test]
fn a_shadowed_name_is_renamed_where_it_is_meant() {
    gives!(ShortFieldGraph, A[0] * 12.0);
    gives!(InnerNameGraph, A[2] * (A[1] + 1.0) * 3.0);
}

#[derive(Debug)]
#[allow(dead_code, reason = "printed when a test fails")]
enum MyError {
    Graph(Error),
    Index(usize),
}

impl From<Error> for MyError {
    fn from(e: Error) -> Self {
        Self::Graph(e)
    }
}

/// Checks that a graph of `(x, model, n)` gives `Index(n)` for the bad value, and goes on working.
macro_rules! refuses {
    ($graph:ident, $good:expr => $expected:expr, $bad:expr) => {
        for mode in [graphable::Mode::None, graphable::Mode::Piecewise, graphable::Mode::Full] {
            let mut rt = crate::support::runtime();
            let m = model(&rt);
            let g = $graph::builder().mode(mode).build(&mut rt).unwrap();
            for turn in 0..5 {
                for n in [$good, $bad] {
                    let step = rt.step().unwrap();
                    let x = step.tensor(&[1], &[1.0]).unwrap();
                    match g.call(&step, &x, &m, n) {
                        Ok(y) if n == $good => {
                            assert_eq!(step.read(&y).unwrap(), [$expected], "mode {mode}, turn {turn}")
                        }
                        Err(MyError::Index(at)) if n == $bad => assert_eq!(at, n),
                        other => panic!("{n} in mode {mode}, turn {turn}: {:?}", other.err()),
                    }
                }
            }
        }
    };
}

/// An index behind its check.
#[graphable]
fn checked_index(x: &Tensor<f32>, model: &Model, #[key] i: usize) -> Result<Tensor<f32>, MyError> {
    if i >= model.layers.len() {
        return Err(MyError::Index(i));
    }
    let layer = &model.layers[i];
    let h = ops::mul(x, &layer.a)?;
    let a = #[eager]
    attention(&h)?;
    Ok(ops::mul(&a, &layer.b)?)
}

/// A division behind its check.
#[graphable]
fn checked_division(x: &Tensor<f32>, model: &Model, #[key] heads: usize) -> Result<Tensor<f32>, MyError> {
    if heads == 0 {
        return Err(MyError::Index(heads));
    }
    let per = 8 / heads;
    let h = ops::scale(x, per as f32)?;
    let a = #[eager]
    attention(&h)?;
    Ok(ops::scale(&ops::mul(&a, &model.w)?, per as f32)?)
}

fn inside(i: usize, model: &Model) -> Result<(), MyError> {
    if i < model.layers.len() { Ok(()) } else { Err(MyError::Index(i)) }
}

/// The check is a function's, and an assignment stands behind it.
#[graphable]
fn checked_by_a_function(x: &Tensor<f32>, model: &Model, #[key] i: usize) -> Result<Tensor<f32>, MyError> {
    let mut left = 3;
    let h = ops::mul(x, &model.w)?;
    inside(i, model)?;
    left -= i;
    let layer = &model.layers[left];
    let h = ops::mul(&h, &layer.a)?;
    let a = #[eager]
    attention(&h)?;
    Ok(ops::mul(&a, &model.layers[i].b)?)
}

#[test]
fn a_check_comes_before_what_it_protects() {
    refuses!(CheckedIndexGraph, 1 => A[1] * (A[1] + 1.0), 9);
    refuses!(CheckedDivisionGraph, 4 => 2.0 * W * 2.0, 0);
    refuses!(CheckedByAFunctionGraph, 1 => W * A[2] * (A[1] + 1.0), 4);
}

/// A name that begins with a digit when it is joined.
#[graphable]
fn _2d(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    ops::mul(x, &model.w)
}

#[test]
fn a_graph_has_a_name() {
    gives!(_2dGraph, W);
}

/// A value is moved behind the operation that reads it.
#[graphable]
fn moved_behind_its_use(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut prev = ops::neg(x)?;
    let mut h = #[eager]
    attention(&prev)?;
    for _ in 0..2 {
        let a = ops::scale(&h, 2.0)?;
        let kept = h;
        let b = #[eager]
        attention(&a)?;
        h = ops::add(&b, &kept)?;
        let c = ops::scale(&h, 2.0)?;
        prev = h;
        h = #[eager]
        attention(&c)?;
    }
    ops::mul(&ops::add(&h, &prev)?, &model.w)
}

/// Moved in the run, and assigned anew behind a boundary.
#[graphable]
fn moved_then_assigned(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut v = Vec::new();
    let mut h = ops::neg(x)?;
    v.push(h);
    let a = #[eager]
    attention(x)?;
    h = ops::scale(&a, 3.0)?;
    ops::mul(&ops::add(&h, &v[0])?, &model.w)
}

#[test]
fn values_are_moved_where_the_program_moves_them() {
    // `h` is -1, -3, -6, -18, -36; `prev` is its value before the last doubling.
    gives!(MovedBehindItsUseGraph, (-36.0 - 18.0) * W);
    gives!(MovedThenAssignedGraph, (3.0 - 1.0) * W);
}

#[derive(GraphOutput, Clone)]
struct Qkv<'s> {
    q: Tensor<'s, f32>,
    bias: Option<Tensor<'s, f32>>,
    list: Vec<Tensor<'s, f32>>,
}

#[graphable(helper)]
fn qkv(x: &Tensor<f32>) -> Result<Qkv<'_>> {
    let list = vec![ops::scale(x, 1.0)?, ops::scale(x, 100.0)?];
    Ok(Qkv { q: ops::scale(x, 1.0)?, bias: Some(ops::scale(x, 10.0)?), list })
}

/// Fields moved out of a result: by a branch, a `match`, a method and a loop.
#[graphable]
fn fields_moved_out(x: &Tensor<f32>, model: &Model, #[key] big: bool) -> Result<Tensor<f32>> {
    let q = #[eager]
    qkv(x)?;
    let mut y = if big { q.q } else { ops::neg(&q.q)? };
    for t in q.list {
        y = ops::add(&y, &t)?;
    }
    let r = #[eager]
    qkv(&y)?;
    let mut z = match r.bias {
        Some(b) => ops::add(&r.q, &b)?,
        None => ops::neg(&r.q)?,
    };
    let s = #[eager]
    qkv(&z)?;
    let b = s.bias.unwrap();
    z = s.q;
    ops::mul(&ops::add(&z, &b)?, &model.w)
}

#[test]
fn fields_are_moved_out_of_results() {
    gives!(FieldsMovedOutGraph, 102.0 * 11.0 * 11.0 * W, true);
    gives!(FieldsMovedOutGraph, 100.0 * 11.0 * 11.0 * W, false);
}

/// Closures that the run around them does not call, and whose name is taken again.
#[graphable]
fn closures_for_later(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let h = ops::neg(x)?;
    let act = |t| ops::scale(t, 3.0);
    let k = |t: &Tensor<f32>| ops::mul(t, &model.w);
    let k = k(&h)?;
    let a = #[eager]
    ops::sub(&h, &k)?;
    ops::add(&act(&a)?, &k)
}

#[test]
fn closures_serve_the_code_that_calls_them() {
    gives!(ClosuresForLaterGraph, (W - 1.0) * 3.0 - W);
}

#[derive(ConfigValue, Clone)]
struct Switch {
    on: bool,
}

#[derive(Params)]
struct Switched {
    #[config]
    switch: Switch,
    #[config]
    table: Vec<usize>,
}

/// The second condition takes the name that the first one reads.
#[graphable]
fn shadowed_in_a_condition(x: &Tensor<f32>, p: &Switched) -> Result<Tensor<f32>> {
    let a = #[eager]
    attention(x)?;
    let row = &p.switch;
    let y = if row.on
        && let Some(row) = p.table.first()
    {
        ops::scale(&a, *row as f32)?
    } else {
        ops::neg(&a)?
    };
    ops::scale(&y, 2.0)
}

#[test]
fn conditions_are_read_from_the_left() {
    for (on, expected) in [(true, 6.0), (false, -2.0)] {
        check!(
            ShadowedInAConditionGraph,
            |rt| Switched { switch: Switch { on }, table: vec![3] },
            |g, step, m, n| {
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let _ = n;
                g.call(&step, &x, &m)
            },
            vec![expected]
        );
    }
}
