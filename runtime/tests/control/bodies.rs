//! What the backend is told: nodes with their bodies, in recordings only.

use graphable::{backend::faulty::FaultCall, prelude::*};

use crate::support::faulty;

#[graphable]
fn two(
    #[host]
    #[dims(B)]
    x: &Tensor<f32>,
    #[host] p: &Scalar<bool>,
) -> Result<Tensor<f32>> {
    let y = control::cond(p, || ops::neg(x), || ops::scale(x, 2.0))?;
    control::cond(p, || Ok(()), || Ok::<_, Error>(()))?;
    ops::add(&y, 1.0)
}

#[test]
fn only_recordings_have_nodes() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let (mut rt, faults) = faulty();
        let graph = TwoGraph::builder().mode(mode).build(&mut rt).unwrap();
        for call in 0..6 {
            let p = call % 2 == 0;
            let before = faults.count(FaultCall::Read);
            let step = rt.step().unwrap();
            let y = graph.call(&step, &[2.0], p).unwrap();
            let reads = faults.count(FaultCall::Read) - before;
            let is_graph = mode != Mode::None && call > 0;
            assert_eq!(
                reads,
                if is_graph { 0 } else { 2 },
                "{mode}, call {call}: the host decides in eager code only"
            );
            assert_eq!(step.read(&y).unwrap(), [if p { -1.0 } else { 5.0 }]);
        }
        let recordings = rt.stats().recordings;
        for (call, each) in
            [(FaultCall::BeginConditional, 2), (FaultCall::BeginBody, 4), (FaultCall::EndConditional, 2)]
        {
            assert_eq!(faults.count(call), each * recordings, "{mode}");
        }
    }
}
