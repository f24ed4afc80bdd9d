use std::io::Write as _;

use smallvec::smallvec;

use super::*;
use crate::{
    DType,
    backend::{Arenas as _, Conditional, Graphs as _, HostUpload, Launch, SharedMemory, Stream as _, View},
    memory::COPY,
    observe::inspect::{EdgeKind, NodeKind, Topology},
    value::layout::Layout,
};

fn view(memory: &SharedMemory, at: u64) -> View {
    View { addr: memory.addr() + at, dtype: DType::U32, layout: Layout::contiguous(&[]).unwrap() }
}

/// The edges of the one body, by their kind.
fn edges_of_body(topology: &Topology) -> (usize, usize) {
    let node = topology.nodes.iter().find(|node| node.kind == NodeKind::Conditional).unwrap();
    let early = node.bodies[0].edges.iter().filter(|edge| edge.kind == EdgeKind::Programmatic).count();
    (early, node.bodies[0].edges.len())
}

/// Captures three copies in a row in a body, which move a number from word to word.
fn captured(b: &mut CudaBackend, memory: &SharedMemory) -> CudaCapturedGraph {
    let copy = |from: u64| Launch {
        op: COPY,
        inputs: smallvec![view(memory, from)],
        outputs: smallvec![view(memory, from + 4)],
        workspace: 0,
    };
    b.begin_capture(None).unwrap();
    let node = Conditional { name: "cond", selector: view(memory, 0), bodies: 1, repeats: false };
    b.begin_conditional(&node).unwrap();
    b.begin_body(0).unwrap();
    for from in [4, 8, 12] {
        b.launch(&copy(from)).unwrap();
    }
    b.end_conditional().unwrap();
    b.ended("a test", vec![memory.clone()], false).unwrap().unwrap()
}

/// On a GPU: where the driver refuses the edges of dependent launch in a body, it gets full ones, and later captures have
/// no others. Refusals for another reason change nothing.
#[test]
fn refused_edges_become_full() {
    let mut b = match CudaBackend::new(0, super::super::CudaOptions::default()) {
        Ok(backend) => backend,
        Err(error) => {
            // A closed standard error is not a reason to fail.
            let _ = writeln!(std::io::stderr(), "GPU tests: skipped refused_edges_become_full: {error}");
            return;
        }
    };
    b.keeps_topology = true;
    let overlaps = b.shared.context.props().overlaps;
    let memory = b.alloc(64).unwrap();
    let words: Vec<u8> = [0u32, 7, 0, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
    let write = |b: &mut CudaBackend| {
        let writes = vec![(memory.addr(), 0, words.len())];
        b.host_write(HostUpload { bytes: words.clone(), writes, ..HostUpload::default() }).unwrap();
    };
    let refusal =
        || Error::Device { device: "cuda:0".into(), call: "cuGraphInstantiate", reason: "refused".into() };
    let early = if overlaps { 2 } else { 0 };

    let mut recording = captured(&mut b, &memory);
    assert_eq!(edges_of_body(recording.topology.as_ref().unwrap()), (early, 2));
    let failed = b.made_with_or_without_overlap(&mut recording, |_, _| Err::<(), _>(refusal()));
    assert!(matches!(failed, Err(Error::Device { ref reason, .. }) if reason == "refused"), "{failed:?}");
    assert!(b.bodies_overlap, "the edges were not the reason");

    let mut recording = captured(&mut b, &memory);
    let mut tries = 0;
    let made = b.made_with_or_without_overlap(&mut recording, |b, graph| {
        tries += 1;
        if overlaps && tries == 1 { Err(refusal()) } else { b.make_exec(graph) }
    });
    let (exec, _) = made.unwrap();
    assert_eq!(edges_of_body(recording.topology.as_ref().unwrap()), (0, 2), "full again");
    assert_eq!((b.bodies_overlap, tries), (!overlaps, 1 + usize::from(overlaps)));
    write(&mut b);
    exec.launch(&b.shared.stream).unwrap();
    assert_eq!(b.read(memory.addr() + 16, 4).unwrap().wait().unwrap(), 7u32.to_le_bytes());

    let later = captured(&mut b, &memory);
    assert_eq!(edges_of_body(later.topology.as_ref().unwrap()), (0, 2), "remembered");
}
