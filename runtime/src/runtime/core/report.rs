//! Reports about a runtime: statistics, memory usage, leak counters.

use std::collections::BTreeMap;

use crate::{
    Stats,
    base::recording_id::RecordingId,
    memory::{Memory, Placement, Tables},
    observe::{
        log::Log,
        memory::{DeviceUsage, FunctionUsage, MemoryStats, RecordingUsage},
    },
    record::{CallState, Stream},
    tree::{ExecTotals, Recording, Tree},
    value::owned::{Caller, OwnerId},
};

/// Returns the sums over all occurrences, completed with what the tree and the device know.
pub(crate) fn stats(log: &Log, tree: &Tree, stream: &Stream) -> Stats {
    Stats {
        copied_slots: tree.copied_live_ins(),
        live_recordings: tree.len(),
        executables: tree.executables().count,
        staging_waits: stream.backend().staging_waits(),
        ..log.stats().clone()
    }
}

/// Returns the number of entries of every table.
pub(crate) fn tables(memory: &Memory, tree: &Tree, call: &CallState) -> Tables {
    let (memory, (shapes, hosts)) = (memory.tables(), call.history().lens());
    let Tables { states, owned, regions, retired, kept, .. } = memory;
    Tables { states, owned, regions, retired, kept, shapes, hosts, ..tree.tables() }
}

fn node_usage(recording: &Recording, first: RecordingId) -> RecordingUsage {
    let at = recording.id();
    RecordingUsage {
        recording: at,
        segment: recording.site.to_string(),
        function: recording.caller.name,
        pool_peak_bytes: recording.usage.pool_peak,
        pool_extent_bytes: recording.usage.extent.pool,
        result_bytes: recording
            .blocks
            .iter()
            .filter(|b| b.placement == Placement::Results)
            .map(|b| b.bytes)
            .sum(),
        // Each is counted once.
        executable_bytes: recording.exec.as_ref().filter(|_| first == at).map_or(0, |exec| exec.bytes()),
        shares_with: (first != at).then_some(first),
        executable_nodes: recording.exec.as_ref().map_or(0, |exec| exec.nodes()),
    }
}

/// Returns the entry of a function, which is created if it does not exist.
fn function(all: &mut BTreeMap<OwnerId, FunctionUsage>, of: Caller) -> &mut FunctionUsage {
    all.entry(of.id).or_insert_with(|| FunctionUsage { function: of.name, ..FunctionUsage::default() })
}

/// Returns the memory usage of everything.
pub(crate) fn memory_stats(memory: &Memory, stream: &Stream, tree: &Tree) -> MemoryStats {
    let [pool, results, eager] = memory.arenas();
    let weights = memory.weight_usage();
    let mut stats = MemoryStats {
        weights: weights.arena,
        sleeping_bytes: weights.sleeping_bytes,
        saved_bytes: weights.saved_bytes,
        // A device that cannot report it now has reported its failure elsewhere.
        device: stream
            .backend()
            .device_memory()
            .ok()
            .flatten()
            .map(|(free_bytes, total_bytes)| DeviceUsage { free_bytes, total_bytes }),
        pool,
        results,
        eager,
        borrowed_peak_bytes: memory.lent_peak(),
        kept_bytes: memory.persistent().held_bytes(),
        cached_bytes: memory.persistent().cached_bytes(),
        ..MemoryStats::default()
    };
    (stats.eager_graphs, stats.eager_graph_bytes) = stream.backend().eager_graphs();
    let mut functions: BTreeMap<OwnerId, FunctionUsage> = BTreeMap::new();
    for owned in memory.owned().iter() {
        let bytes = owned.memory.len();
        match owned.graph {
            None => stats.owned_bytes += bytes,
            Some(graph) => {
                stats.static_bytes += bytes;
                function(&mut functions, graph).static_bytes += bytes;
            }
        }
    }
    for (at, recording) in tree.ordered() {
        let usage = node_usage(recording, tree.id(tree.first_of(at)));
        let of = function(&mut functions, recording.caller);
        of.recordings += 1;
        of.pool_bytes = of.pool_bytes.max(usage.pool_extent_bytes);
        of.pool_sum_bytes += usage.pool_peak_bytes;
        of.executable_bytes += usage.executable_bytes;
        stats.recordings.push(usage);
    }
    stats.functions = functions.into_values().collect();
    stats.pool_recorded_bytes = stats.functions.iter().map(|f| f.pool_bytes).max().unwrap_or(0);
    stats.pool_sum_bytes = stats.functions.iter().map(|f| f.pool_sum_bytes).sum();
    let ExecTotals { count, bytes, shared_bytes } = tree.executables();
    (stats.executables, stats.executable_bytes, stats.shared_bytes) = (count, bytes, shared_bytes);
    stats
}
