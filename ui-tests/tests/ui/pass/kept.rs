//! What outlives a step is kept, and may go anywhere.

use graphable::{Kept, KeptTensor, prelude::*};

#[derive(Clone, GraphOutput)]
struct Out<'t, T> {
    logits: Tensor<'t, T>,
    state: (Tensor<'t, T>, usize),
}

#[derive(Clone, GraphOutput)]
enum Plain<T> {
    Words(Vec<T>),
    Nothing,
}

/// Its fields have no step's lifetime.
struct Server {
    hidden: Option<KeptTensor<f32>>,
    last: Option<Kept<Out<'static, f32>>>,
    plain: Option<Kept<Plain<u32>>>,
}

#[graphable]
fn advance(x: &Tensor<f32>, hidden: &KeptTensor<f32>) -> Result<Tensor<f32>> {
    ops::add(x, hidden)
}

fn send<T: Send + Sync + 'static>(_: &T) {}

fn run(rt: &mut Runtime, server: &mut Server, graph: &AdvanceGraph) -> Result<()> {
    {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0f32])?;
        let y = match &server.hidden {
            Some(hidden) => graph.call(&step, &x, hidden)?,
            None => x,
        };
        server.hidden = Some(step.keep(&y)?);
        server.last = Some(step.keep(&Out { logits: y.clone(), state: (y, 1) })?);
        server.plain = Some(step.keep(&Plain::Words(vec![1]))?);
    }
    send(&server.last);
    let step = rt.step()?;
    if let Some(last) = &server.last {
        let Out { logits, state } = last.view(step.scope())?;
        step.read(&ops::add(&logits, &state.0)?)?;
    }
    Ok(())
}

fn generic<T: Element>(step: &Step<'_>, kept: &KeptTensor<T>) -> Result<Vec<T>> {
    step.read(&kept.view(step.scope())?)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = AdvanceGraph::builder().build(&mut rt)?;
    let mut server = Server { hidden: None, last: None, plain: None };
    for _ in 0..4 {
        run(&mut rt, &mut server, &graph)?;
    }
    let step = rt.step()?;
    assert_eq!(server.hidden.map(|h| generic(&step, &h)).transpose()?, Some(vec![4.0]));
    let Plain::Words(words) = server.plain.unwrap().view(step.scope())? else { panic!() };
    assert_eq!(words, [1]);
    Ok(())
}
