//! The memory of everything, counted.

use std::collections::BTreeMap;

use super::{ArenaAllocator, Core, Placement};
use crate::{
    memory::pool::LiveSet,
    memory::{ArenaUsage, DeviceUsage, FunctionUsage, MemoryStats, NodeUsage},
    tree::Node,
};

fn arena(zone: &ArenaAllocator, live: &LiveSet, peak: u64) -> ArenaUsage {
    ArenaUsage { committed_bytes: zone.committed, live_bytes: live.bytes(), peak_bytes: peak }
}

fn node_usage(node: &Node, first: usize) -> NodeUsage {
    let at = node.number();
    NodeUsage {
        node: at,
        segment: node.site.to_string(),
        function: node.caller.name,
        pool_peak_bytes: node.usage.pool_peak,
        pool_extent_bytes: node.usage.pool_extent,
        result_bytes: node.blocks.iter().filter(|b| b.home == Placement::Results).map(|b| b.bytes).sum(),
        // Counted once.
        executable_bytes: node.exec.as_ref().filter(|_| first == at).map_or(0, |exec| exec.bytes()),
        shares_with: (first != at).then_some(first),
        executable_nodes: node.exec.as_ref().map_or(0, |exec| exec.nodes()),
    }
}

/// The entry of a function, made if it is new.
fn function<'l>(
    all: &'l mut BTreeMap<u64, FunctionUsage>,
    (id, name): (u64, &'static str),
) -> &'l mut FunctionUsage {
    all.entry(id).or_insert_with(|| FunctionUsage { function: name, ..FunctionUsage::default() })
}

impl Core {
    pub(crate) fn memory(&self) -> MemoryStats {
        let mut stats = MemoryStats {
            // A device that cannot say now has said so elsewhere.
            device: self
                .backend
                .device_memory()
                .ok()
                .flatten()
                .map(|(free_bytes, total_bytes)| DeviceUsage { free_bytes, total_bytes }),
            pool: arena(&self.pool_zone, &self.pool.live(), self.pool.high_water()),
            results: arena(&self.results, &self.results.live, self.results.high),
            eager: arena(&self.eager, &self.eager.live, self.eager.high),
            scratch_peak_bytes: self.scratch_high,
            kept_bytes: self.kept.held_bytes(),
            spare_bytes: self.kept.spare_bytes(),
            ..MemoryStats::default()
        };
        (stats.eager_graphs, stats.eager_graph_bytes) = self.backend.eager_graphs();
        let mut functions: BTreeMap<u64, FunctionUsage> = BTreeMap::new();
        for owned in self.owned_memory.iter() {
            let bytes = owned.memory.len();
            if owned.function.0 == 0 {
                stats.owned_bytes += bytes;
            } else {
                stats.static_bytes += bytes;
                function(&mut functions, owned.function).static_bytes += bytes;
            }
        }
        for (at, node) in self.tree.numbered() {
            let usage = node_usage(node, self.tree.number(self.tree.first_of(at)));
            let of = function(&mut functions, (node.caller.id, node.caller.name));
            of.nodes += 1;
            of.pool_bytes = of.pool_bytes.max(usage.pool_extent_bytes);
            of.pool_sum_bytes += usage.pool_peak_bytes;
            of.executable_bytes += usage.executable_bytes;
            stats.nodes.push(usage);
        }
        stats.functions = functions.into_values().collect();
        stats.pool_recorded_bytes = stats.functions.iter().map(|f| f.pool_bytes).max().unwrap_or(0);
        stats.pool_sum_bytes = stats.functions.iter().map(|f| f.pool_sum_bytes).sum();
        (stats.executables, stats.executable_bytes, stats.shared_bytes) = self.tree.executables();
        stats
    }

    /// Bytes of the static inputs and host blocks of graph objects.
    pub(crate) fn static_bytes(&self) -> u64 {
        let all = self.owned_memory.iter();
        all.filter(|owned| owned.function.0 != 0).map(|owned| owned.memory.len()).sum()
    }

    /// Number of recordings, and bytes of their executables.
    pub(crate) fn recorded(&self) -> (u64, u64) {
        (self.tree.len() as u64, self.tree.executables().1)
    }
}
