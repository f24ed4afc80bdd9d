use super::{super::operation::Choose, *};
use crate::{
    DType,
    backend::cuda::kernels::testing::{Recorder, whole},
};

#[test]
fn many_cases_are_looked_at_in_parts() {
    let index = whole(0x100, DType::I32, &[]);
    let selector = whole(0x200, DType::U32, &[]);
    for n in [0, 1, 32, 33, 70] {
        let table: Box<[Case]> = (0..n).map(|i| Case { value: 1000 + i, body: i / 2 }).collect();
        let run = Recorder::of(Switch { table, default: 99 }, &[index], &[selector]);
        let parts = run.calls.len();
        assert_eq!(parts, (n as usize).div_ceil(CASES).max(1), "{n}");
        let mut seen = Vec::new();
        for part in 0..parts {
            let p: CaseParams = run.params(part);
            assert_eq!((p.index, p.to, p.other, p.is_first), (0x100, 0x200, 99, u32::from(part == 0)));
            seen.extend((0..p.n as usize).map(|i| (p.values[i], p.bodies[i])));
        }
        assert_eq!(seen, (0..n).map(|i| (1000 + i, i / 2)).collect::<Vec<_>>());
    }
}

#[test]
fn predicates_and_loops_have_their_addresses() {
    let (pred, selector) = (whole(0x100, DType::Bool, &[]), whole(0x200, DType::U32, &[]));
    let run = Recorder::of(Choose, &[pred], &[selector]);
    let p: ChooseParams = run.params(0);
    assert_eq!((p.pred, p.to), (0x100, 0x200));
    let at = std::panic::Location::caller();
    let run = Recorder::of(NextRound { limit: 7, at }, &[pred], &[selector, whole(0x300, DType::U32, &[])]);
    let p: LoopParams = run.params(0);
    assert_eq!((p.pred, p.to, p.rounds, p.limit), (0x100, 0x200, 0x300, 7));
    assert_ne!(p.op, 0, "a fault of it can be told apart");
    assert_eq!((p.sink.fault, p.sink.claim), (64, 128));
}
