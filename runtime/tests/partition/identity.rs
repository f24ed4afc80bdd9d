//! A segment's identity is the type of its body: one per instance of a generic function.

use graphable::{graphable, prelude::*};

use crate::support::{attention, check, runtime};

trait Act: 'static {
    const S: f32;
}
struct A;
struct B;
impl Act for A {
    const S: f32 = 2.0;
}
impl Act for B {
    const S: f32 = 5.0;
}

#[graphable]
fn act<M: Act, const N: usize>(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::scale(x, M::S * N as f32)?;
    let y = #[eager]
    attention(&y)?;
    ops::scale(&y, M::S)
}

#[test]
fn instances_do_not_share_recordings() {
    let mut rt = runtime();
    let (a1, b1, b2) = (
        ActGraph::<A, 1>::builder().build(&mut rt).unwrap(),
        ActGraph::<B, 1>::builder().build(&mut rt).unwrap(),
        ActGraph::<B, 2>::builder().build(&mut rt).unwrap(),
    );
    for _ in 0..5 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[1], &[1.0]).unwrap();
        assert_eq!(step.read(&a1.call(&step, &x).unwrap()).unwrap(), [4.0]);
        assert_eq!(step.read(&b1.call(&step, &x).unwrap()).unwrap(), [25.0]);
        assert_eq!(step.read(&b2.call(&step, &x).unwrap()).unwrap(), [50.0]);
    }
    let before = rt.stats();
    {
        let step = rt.step().unwrap();
        let x = step.tensor(&[1], &[2.0]).unwrap();
        assert_eq!(step.read(&b2.call(&step, &x).unwrap()).unwrap(), [100.0]);
    }
    assert_eq!(rt.stats().warmups, before.warmups);
}

#[graphable]
fn generic<T: Float>(x: &Tensor<T>) -> Result<Tensor<f32>> {
    let y = ops::add(x, x)?;
    let y = ops::cast::<T, f32>(&y)?;
    let z = #[eager]
    attention(&y)?;
    ops::scale(&z, 2.0)
}

#[test]
fn generic_over_elements() {
    let mut rt = runtime();
    let (g32, g16) = (
        GenericGraph::<f32>::builder().build(&mut rt).unwrap(),
        GenericGraph::<bf16>::builder().build(&mut rt).unwrap(),
    );
    for _ in 0..4 {
        let step = rt.step().unwrap();
        let x = step.tensor(&[1], &[1.5f32]).unwrap();
        let h = step.tensor(&[1], &[bf16::from_f32(2.5)]).unwrap();
        assert_eq!(step.read(&g32.call(&step, &x).unwrap()).unwrap(), [6.0]);
        assert_eq!(step.read(&g16.call(&step, &h).unwrap()).unwrap(), [10.0]);
    }
}

#[graphable]
fn called_twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
    let y = ops::scale(x, 2.0)?;
    #[eager]
    attention(&y)
}

#[test]
fn one_function_twice_in_a_chain() {
    check!(
        CalledTwiceGraph,
        |rt| (),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let y = g.call(&step, &x).unwrap();
            g.call(&step, &y)
        },
        vec![4.0]
    );
}

/// Two `impl`s of one generic type: what they leave open is no part of a graph's name, and the rest is.
#[derive(Params)]
struct Linear<T: Element> {
    w: Param<f32>,
    _open: std::marker::PhantomData<T>,
}

#[graphable]
impl Linear<f32> {
    fn run(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        attention(x)?;
        ops::mul(&a, &self.w)
    }
}

#[graphable]
impl Linear<bf16> {
    fn run(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = ops::neg(x)?;
        let b = #[eager]
        attention(&a)?;
        ops::mul(&b, &self.w)
    }
}

#[graphable]
impl<T: Element> Linear<T> {
    fn open(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        attention(x)?;
        ops::scale(&a, 2.0)
    }
}

fn linear<T: Element>(rt: &Runtime) -> Linear<T> {
    Linear { w: Param::new(rt, &[1], &[3.0]).unwrap(), _open: std::marker::PhantomData }
}

#[test]
fn impls_of_one_generic_type_have_graphs_of_their_own() {
    check!(
        LinearF32RunGraph,
        |rt| linear::<f32>(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[2.0]).unwrap();
            let _ = n;
            g.call(&step, &m, &x)
        },
        vec![6.0]
    );
    check!(
        LinearBf16RunGraph,
        |rt| linear::<bf16>(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[2.0]).unwrap();
            let _ = n;
            g.call(&step, &m, &x)
        },
        vec![-6.0]
    );
    check!(
        LinearOpenGraph,
        |rt| linear::<f32>(&rt),
        |g, step, m, n| {
            let x = step.tensor(&[1], &[2.0]).unwrap();
            let _ = n;
            g.call(&step, &m, &x)
        },
        vec![4.0]
    );
    assert_eq!(LinearBf16RunGraph::PLAN.function, "Linear<bf16>::run");
    assert_eq!(LinearOpenGraph::<u32>::PLAN.function, "Linear::open");
}
