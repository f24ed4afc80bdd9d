//! Faults at each call.

use smallvec::smallvec;

use super::*;
use crate::{
    DType,
    backend::{
        Conditional, Op, View,
        cpu::{CpuBackend, CpuOptions},
    },
    memory::{COPY, PAD},
    value::layout::Layout,
};

fn faulty() -> (FaultyBackend, Arc<FaultPlan>) {
    let plan = Arc::<FaultPlan>::default();
    let cpu = CpuBackend::new(CpuOptions { threads: Some(1), ..CpuOptions::default() }).unwrap();
    (FaultyBackend::new(Box::new(cpu), plan.clone()), plan)
}

/// Returns a launch on the bytes of `memory`, eight at a time: from the numbers at `from` to the numbers
/// at `to`.
fn launch(op: Op, memory: &SharedMemory, from: u64, to: u64) -> Launch {
    let layout = Layout::contiguous(&[2]).unwrap();
    let view = |at| View { addr: memory.addr() + 8 * at, dtype: DType::F32, layout };
    Launch { op, inputs: smallvec![view(from)], outputs: smallvec![view(to)], workspace: 0 }
}

/// Makes one call of each kind, until one fails; returns the copied bytes.
fn all_calls(b: &mut FaultyBackend) -> Result<Vec<u8>> {
    let arena = b.reserve(4096)?;
    b.commit(&arena, 4096)?;
    let memory = b.alloc(24)?;
    let mut host = b.host_memory(8)?;
    host.bytes_mut()?.copy_from_slice(&SEVENS);
    b.host_log(4)?;
    b.host_write(HostUpload {
        bytes: SEVENS.to_vec(),
        writes: vec![(memory.addr(), 0, 8)],
        ..HostUpload::default()
    })?;
    b.write_from(HostCopy { to: memory.addr(), from: host.lend(), offset: 0, bytes: 8, zeros: 0 })?;
    let (mut pad, copy) = (launch(PAD, &memory, 0, 1), launch(COPY, &memory, 1, 2));
    // Only the first number: what is read in the end is neither what was written nor empty memory.
    pad.inputs[0].layout = Layout::contiguous(&[1]).unwrap();
    b.workspace(&pad.op, &pad.inputs, &pad.outputs, true)?;
    b.begin_capture(None)?;
    let forked =
        b.fork().and_then(|()| b.branch(0)).and_then(|()| b.launch(&pad)).and_then(|()| b.launch(&copy));
    // The selector is not a number of a body, so nothing of the node runs.
    let selector = View { addr: memory.addr(), dtype: DType::U32, layout: Layout::contiguous(&[]).unwrap() };
    let node = Conditional { name: "cond", selector, bodies: 1, repeats: false };
    let conditional = forked
        .and_then(|()| b.join())
        .and_then(|()| b.begin_conditional(&node))
        .and_then(|()| b.begin_body(0))
        .and_then(|()| b.end_conditional());
    if let Err(error) = conditional {
        b.abort_capture();
        return Err(error);
    }
    let recording = b.end_capture_shared(vec![memory.clone()])?.expect("two nodes");
    let exec = b.instantiate(&recording)?;
    // The graph has a conditional node.
    assert!(matches!(b.update(&exec, &recording)?, Update::Refused { .. }));
    b.replay(&exec, None)?;
    let read = b.read(memory.addr() + 16, 8)?;
    b.read_into(memory.addr() + 16, 8, &mut *host)?;
    b.poison(memory.addr(), 8)?;
    b.synchronize()?;
    let bytes = read.wait()?;
    assert_eq!(host.bytes()?, bytes);
    Ok(bytes)
}

/// Two numbers, and the expected results.
const SEVENS: [u8; 8] = [7; 8];
const PADDED: [u8; 8] = [7, 7, 7, 7, 0, 0, 0, 0];

#[test]
fn each_call_fails_once_where_it_is_told_to() {
    for call in FaultCall::ALL {
        let (mut b, plan) = faulty();
        for nth in [0, 2] {
            plan.arm(Some(call), nth, false);
            (0..nth).for_each(|_| assert_eq!(all_calls(&mut b).unwrap(), PADDED));
            let before = plan.count(call);
            match all_calls(&mut b) {
                Err(Error::Device { call: name, .. }) => assert_eq!(name, call.name()),
                other => panic!("{call:?}: {other:?}"),
            }
            assert_eq!(plan.count(call), before + 1, "a call that fails counts");
            assert!(!plan.disarm(), "it fails once");
            assert_eq!(all_calls(&mut b).unwrap(), PADDED, "nothing is left of it, no capture either");
            assert_eq!((plan.live_memory(), plan.live_executables()), ((0, 0), 0), "{call:?}");
        }
    }
}

#[test]
fn any_call_can_be_the_nth() {
    for (nth, name) in
        "reserve commit alloc host_memory host_log host_write write_from workspace begin_capture fork branch launch copy join \
         begin_conditional begin_body end_conditional end_capture instantiate update replay read read_into poison \
         synchronize wait"
            .split(' ')
            .enumerate()
    {
        let (mut b, plan) = faulty();
        plan.arm(None, nth as u64, false);
        let error = all_calls(&mut b).unwrap_err();
        assert!(matches!(error, Error::Device { call, .. } if call == name), "{error}");
    }
}

#[test]
fn a_lost_device_stays_lost() {
    for call in FaultCall::ALL {
        let (mut b, plan) = faulty();
        plan.arm(Some(call), 0, true);
        assert!(matches!(all_calls(&mut b), Err(Error::ContextLost { .. })));
        assert!(!plan.disarm());
        assert!(matches!(b.reserve(4096), Err(Error::ContextLost { .. })));
        assert!(matches!(b.alloc(16), Err(Error::ContextLost { .. })));
        assert!(matches!(b.poison(0, 0), Err(Error::ContextLost { .. })));
        assert!(matches!(b.synchronize(), Err(Error::ContextLost { .. })));
    }
}

#[test]
fn a_capture_that_is_made_ready_at_once_fails_in_two_places() {
    for call in [FaultCall::EndCapture, FaultCall::Instantiate] {
        let (mut b, plan) = faulty();
        let memory = b.alloc(24).unwrap();
        let mut capture = || {
            b.begin_capture(None).unwrap();
            b.launch(&launch(COPY, &memory, 0, 1)).unwrap();
            b.end_capture(vec![memory.clone()])
        };
        plan.arm(Some(call), 0, false);
        assert!(matches!(capture(), Err(Error::Device { call: name, .. }) if name == call.name()));
        let exec = capture().unwrap();
        assert_eq!((plan.live_executables(), plan.count(call)), (1, 2));
        drop(exec);
        assert_eq!(plan.live_executables(), 0);
    }
}

#[test]
fn disarmed_plans_do_nothing() {
    let (mut b, plan) = faulty();
    plan.arm(Some(FaultCall::Read), 0, true);
    assert!(plan.disarm());
    assert_eq!(all_calls(&mut b).unwrap(), PADDED);
    assert_eq!(FaultCall::ALL.map(|call| plan.count(call)), [1; FaultCall::ALL.len()]);
}

#[test]
fn a_mapped_file_is_memory_that_can_fail() {
    let (mut b, plan) = faulty();
    let path = std::env::temp_dir().join(format!("graphable-faulty-{}", std::process::id()));
    std::fs::write(&path, b"0123456789").unwrap();
    let file = Arc::new(MappedFile::of_test(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    plan.arm(Some(FaultCall::Alloc), 0, false);
    let failed = b.map_file(&file, 2..6);
    assert!(matches!(failed, Err(Error::Device { call: "alloc", .. })), "{failed:?}");
    let memory = b.map_file(&file, 2..6).unwrap().expect("the CPU maps files");
    assert_eq!((plan.live_memory(), plan.count(FaultCall::Alloc)), ((1, 4), 2));
    drop(memory);
    assert_eq!(plan.live_memory(), (0, 0));
    plan.arm(Some(FaultCall::Alloc), 0, true);
    assert!(matches!(b.map_file(&file, 2..6), Err(Error::ContextLost { .. })));
}
