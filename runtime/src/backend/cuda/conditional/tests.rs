use super::*;
use crate::{
    DType,
    backend::{View, cuda::kernels::testing::say_skipped},
    value::layout::Layout,
};

fn node(bodies: usize, repeats: bool) -> Conditional {
    let selector = View { addr: 0, dtype: DType::U32, layout: Layout::contiguous(&[]).unwrap() };
    Conditional { name: "switch", selector, bodies, repeats }
}

#[test]
fn old_drivers_get_a_chain() {
    use ConditionalKind::{If, Switch, While};
    let lowered =
        |bodies, repeats, has_switches| Lowering::of(&node(bodies, repeats), has_switches).nodes(bodies);
    assert_eq!(lowered(2, false, true), [(Switch, 2)]);
    assert_eq!(lowered(2, false, false), [(If, 1), (If, 1)]);
    assert_eq!(lowered(5, false, true), [(Switch, 5)]);
    assert_eq!(lowered(3, false, false), [(If, 1); 3]);
    for has_switches in [true, false] {
        assert_eq!(lowered(1, true, has_switches), [(While, 1)]);
        assert_eq!(lowered(1, false, has_switches), [(If, 1)]);
    }
}

#[test]
fn the_version_decides() {
    let refused =
        |version, has_functions| match ConditionalSupport::new(version, has_functions).check("cuda:0") {
            Ok(()) => None,
            Err(Error::NoConditionalNodes { device, needs, found }) => {
                assert_eq!((device.as_str(), needs), ("cuda:0", "12.4"));
                Some(found)
            }
            Err(other) => panic!("{other}"),
        };
    assert_eq!(refused(12_020, true).as_deref(), Some("12.2"));
    assert_eq!(refused(12_030, false).as_deref(), Some("12.3"));
    assert_eq!(refused(12_040, false).as_deref(), Some("12.4"));
    assert_eq!(refused(12_040, true), None);
    assert!(!ConditionalSupport::new(12_070, true).has_switches());
    assert!(ConditionalSupport::new(12_080, true).has_switches());
    assert!(!ConditionalSupport::new(13_000, true).without_switches().has_switches());
}

/// On a GPU: a chain of nodes, as with drivers before CUDA 12.8, and one node, where the driver has it. One of the
/// bodies is empty, and one changes the selector, which later nodes of a chain must not see.
#[test]
fn chains_run_what_switches_run() {
    use smallvec::smallvec;

    use crate::{
        backend::{Arenas as _, Graphs as _, HostUpload, Launch, SharedMemory, Stream as _},
        memory::COPY,
    };

    let open = || CudaBackend::new(0, super::super::CudaOptions::default());
    if let Err(error) = open() {
        return say_skipped("chains_run_what_switches_run", &error);
    }
    let view = |memory: &SharedMemory, at: u64| View {
        addr: memory.addr() + at,
        dtype: DType::U32,
        layout: Layout::contiguous(&[]).unwrap(),
    };
    for has_switches in [true, false] {
        let mut b = open().unwrap();
        if !has_switches {
            b.conditionals = b.conditionals.without_switches();
        }
        // The selector, the result, a number for each body, and another selector.
        let memory = b.alloc(64).unwrap();
        let words: Vec<u8> = [0u32, 0, 10, 11, 12, 3].iter().flat_map(|w| w.to_le_bytes()).collect();
        let block = |bytes: Vec<u8>, at: u64| {
            let len = bytes.len();
            HostUpload { bytes, writes: vec![(memory.addr() + at, 0, len)], ..HostUpload::default() }
        };
        b.host_write(block(words, 0)).unwrap();
        let copy = |from: u64, to: u64| Launch {
            op: COPY,
            inputs: smallvec![view(&memory, from)],
            outputs: smallvec![view(&memory, to)],
            workspace: 0,
        };
        b.begin_capture(None).unwrap();
        let node = Conditional { name: "switch", selector: view(&memory, 0), bodies: 4, repeats: false };
        b.begin_conditional(&node).unwrap();
        for body in 0..3 {
            b.begin_body(body).unwrap();
            b.launch(&copy(8 + 4 * body as u64, 4)).unwrap();
            if body == 1 {
                b.launch(&copy(16, 0)).unwrap();
            }
        }
        b.begin_body(3).unwrap();
        b.end_conditional().unwrap();
        let exec = b.end_capture(vec![memory.clone()]).unwrap().unwrap();
        for selected in [0u32, 1, 2, 3, 4, u32::MAX, 1, 0] {
            b.host_write(block([selected, 99].iter().flat_map(|w| w.to_le_bytes()).collect(), 0)).unwrap();
            b.replay(&exec, None).unwrap();
            let read = b.read(memory.addr() + 4, 4).unwrap().wait().unwrap();
            let expected = if selected < 3 { 10 + selected } else { 99 };
            assert_eq!(read, expected.to_le_bytes(), "{selected}, switches: {has_switches}");
        }
    }
}

/// The first GPU; without one, says that a test is skipped.
fn gpu(test: &str) -> Option<CudaBackend> {
    CudaBackend::new(0, super::super::CudaOptions::default()).map_err(|error| say_skipped(test, &error)).ok()
}

/// On a GPU: between two captured graphs, after an error, what is launched must not run at once.
#[test]
fn nothing_runs_while_a_capture_is_suspended() {
    use crate::backend::{Arenas as _, Graphs as _, Stream as _};

    let Some(mut b) = gpu("nothing_runs_while_a_capture_is_suspended") else { return };
    let memory = b.alloc(4).unwrap();
    b.begin_capture(None).unwrap();
    b.suspend_capture().unwrap();
    let refused = b.poison(memory.addr(), 4);
    assert!(matches!(refused, Err(Error::Device { call: "launch", .. })), "{refused:?}");
    b.abort_capture();
    assert_eq!(b.read(memory.addr(), 4).unwrap().wait().unwrap(), [0; 4]);
    b.poison(memory.addr(), 4).unwrap();
    assert_ne!(b.read(memory.addr(), 4).unwrap().wait().unwrap(), [0; 4]);
}

/// On a GPU: a capture does not end inside a node, at whatever place, and the next one can begin.
#[test]
fn a_capture_does_not_end_inside_a_node() {
    use crate::backend::{Arenas as _, Graphs as _, SharedMemory, Stream as _};

    let Some(mut b) = gpu("a_capture_does_not_end_inside_a_node") else { return };
    let memory: SharedMemory = b.alloc(8).unwrap();
    let selector = View { addr: memory.addr(), dtype: DType::U32, layout: Layout::contiguous(&[]).unwrap() };
    let node = Conditional { selector, ..node(2, false) };
    for bodies in 0..3 {
        for shares in [false, true] {
            b.begin_capture(None).unwrap();
            b.begin_conditional(&node).unwrap();
            for body in 0..bodies {
                b.begin_body(body).unwrap();
                b.poison(memory.addr() + 4, 4).unwrap();
            }
            let ended = match shares {
                true => b.end_capture_shared(Vec::new()).map(|graph| graph.is_some()),
                false => b.end_capture(Vec::new()).map(|exec| exec.is_some()),
            };
            let Err(Error::Device { reason, .. }) = &ended else { panic!("{bodies}, {shares}: {ended:?}") };
            assert_eq!(reason, "a conditional node is still open");
            assert!(!b.capture_was_invalidated());
            // The stream captures nothing, and what was captured never ran.
            assert_eq!(b.read(memory.addr() + 4, 4).unwrap().wait().unwrap(), [0; 4]);
            b.begin_capture(None).unwrap();
            b.begin_conditional(&node).unwrap();
            (0..2).for_each(|body| b.begin_body(body).unwrap());
            b.end_conditional().unwrap();
            assert!(b.end_capture(vec![memory.clone()]).unwrap().is_some());
        }
    }
}
