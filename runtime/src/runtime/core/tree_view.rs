//! A snapshot of the tree for users. This only reads.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    base::{plan::Site, recording_id::RecordingId},
    memory::{
        EntryBlock, Memory, Origin, Placement,
        pool::{Block, StateId, rounded},
    },
    observe::inspect::{
        GraphTree, OutputId, OutputPlace, TreeBlock, TreeFunction, TreeOutput, TreeRecording, TreeSegment,
        TreeState, TreeWaiting,
    },
    tree::{
        ControlMark, ExecTotals, Group, Identity, OutputBlock, Recording, RecordingIndex, Stored, TraceOp,
        Tree, Waiting,
    },
    value::raw::RawTensor,
};

/// The number of preceding recordings whose dead outputs are listed: listing all of a long chain for each of
/// its recordings would be quadratic.
const DEAD_RECORDINGS: usize = 64;

/// Returns the current tree.
pub(crate) fn tree_view(tree: &Tree, memory: &Memory, device: String) -> GraphTree {
    View { tree, memory }.of(device)
}

/// Returns how an operation is shown, or a mark of control flow.
fn shown_operation(op: &TraceOp) -> String {
    match op.mark {
        None => op.name.to_owned(),
        Some(ControlMark::Begin) => format!("{} {{", op.name),
        Some(ControlMark::Body) => "body:".to_owned(),
        Some(ControlMark::End) => "}".to_owned(),
    }
}

/// The data that the view reads.
#[derive(Clone, Copy)]
struct View<'c> {
    tree: &'c Tree,
    memory: &'c Memory,
}

impl View<'_> {
    fn of(self, device: String) -> GraphTree {
        let mut view = GraphTree::new(device);
        let marks = self.memory.high_water();
        (view.pool_bytes, view.result_bytes, view.eager_bytes) = (marks.pool, marks.results, marks.eager);
        let ExecTotals { count, bytes, shared_bytes } = self.tree.executables();
        (view.executables, view.executable_bytes, view.shared_bytes) = (count, bytes, shared_bytes);
        view.waiting = self.tree.waiting().into_iter().filter_map(waiting).collect();
        let mut starts: Vec<_> = self.tree.starts().collect();
        // Ids increase with every graph object that is created.
        starts.sort_unstable_by_key(|start| start.caller.id);
        for start in starts {
            let roots = start.first().map(|at| self.tree.id(at)).collect();
            view.functions.push(TreeFunction { name: start.caller.name.to_owned(), roots });
        }
        self.add_recordings(&mut view);
        view
    }

    fn add_recordings(self, view: &mut GraphTree) {
        let mut states = States { numbers: FxHashMap::from_iter([(StateId::EMPTY, 0)]), memory: self.memory };
        let mut parents: FxHashMap<RecordingIndex, Vec<RecordingId>> = FxHashMap::default();
        for (_, recording) in self.tree.ordered() {
            for child in recording.links.next() {
                parents.entry(child).or_default().push(recording.id());
            }
        }
        let roots: FxHashSet<RecordingId> =
            view.functions.iter().flat_map(|f| f.roots.iter().copied()).collect();
        for (at, recording) in self.tree.ordered() {
            let (entry, exit) = (states.number(view, recording.entry), states.number(view, recording.exit));
            let (alive, dead, alive_others) = self.liveness(recording);
            view.recordings.push(TreeRecording {
                id: recording.id(),
                function: recording.caller.name.to_owned(),
                numerics: recording.numerics,
                sizes: recording.sizes.iter().map(|&(name, size)| (name.to_owned(), size)).collect(),
                segment: segment(recording.site, matches!(recording.identity, Identity::Full(_))),
                parent: recording.links.parent(),
                parents: parents.remove(&at).unwrap_or_default(),
                children: recording.links.next().map(|next| self.tree.id(next)).collect(),
                root: roots.contains(&recording.id()),
                after_eager: recording.after_eager,
                entry,
                exit,
                alive,
                dead,
                alive_others,
                outputs: recording.outputs.iter().map(|stored| self.output_view(recording, stored)).collect(),
                operations: self.tree.group_of(recording.group).trace.iter().map(shown_operation).collect(),
                passes: recording.passes.to_vec(),
                kernels: recording.exec.as_ref().map_or(0, |exec| exec.nodes()),
                // The first run was the recording's own.
                hits: recording.hits.saturating_sub(1),
                pool_bytes: recording.usage.extent.pool,
                executable_bytes: recording
                    .exec
                    .as_ref()
                    .filter(|_| self.tree.first_of(at) == at)
                    .map_or(0, |exec| exec.bytes()),
                shares_with: self.tree.sharers(at).iter().map(|&other| self.tree.id(other)).collect(),
            });
        }
    }

    /// Returns which outputs of the preceding recordings were alive, which were not, and what else was.
    fn liveness(&self, recording: &Recording) -> (Vec<OutputId>, Vec<OutputId>, Vec<String>) {
        let (mut alive, mut dead) = (Vec::new(), Vec::new());
        let mut others: BTreeMap<u64, &EntryBlock> =
            recording.alive.iter().map(|block| (block.addr(), block)).collect();
        // The blocks made by segments that have not been found yet: once all are found, only the nearest
        // recordings are of interest.
        let mut sought = others.values().filter(|b| matches!(b.origin(), Origin::Segment { .. })).count();
        let mut steps = 0;
        let mut next = recording.parent;
        while (sought > 0 || steps < DEAD_RECORDINGS)
            && let Some(before) = next.and_then(|at| self.tree.recording(at))
        {
            // The nearest recording owns a block; a farther one at the same place has lost it.
            let lives: Vec<bool> = before
                .blocks
                .iter()
                .map(|block| {
                    let found = others.get(&block.addr).is_some_and(|b| is_output(b, before, block));
                    if found {
                        others.remove(&block.addr);
                        sought -= 1;
                    }
                    found
                })
                .collect();
            for (output, stored) in before.outputs.iter().enumerate() {
                let Stored::Own(block, _) = stored else { continue };
                let block = *block as usize;
                if before.blocks[block].placement == Placement::Pool {
                    let output = OutputId { recording: before.id(), output };
                    match lives[block] {
                        true => alive.push(output),
                        false if steps < DEAD_RECORDINGS => dead.push(output),
                        false => {}
                    }
                }
            }
            steps += 1;
            next = before.parent;
        }
        alive.sort_unstable();
        dead.sort_unstable();
        let others = others.values().map(|b| match b.origin() {
            Origin::Region { site, .. } => format!("`{}` in {site}", b.producer()),
            Origin::Result(result) => match self.memory.learned().site(result) {
                Some(site) => format!("`{}` in {site}", b.producer()),
                None => format!("`{}`", b.producer()),
            },
            Origin::Segment { .. } | Origin::Padded { .. } | Origin::Other => format!("`{}`", b.producer()),
        });
        (alive, dead, others.collect())
    }

    fn output_view(&self, recording: &Recording, stored: &Stored) -> TreeOutput {
        let tensor = |place, raw: &RawTensor| TreeOutput {
            place,
            dtype: Some(raw.dtype.to_string()),
            shape: raw.layout.shape().to_vec(),
        };
        let host = |value| TreeOutput { place: OutputPlace::Host(value), dtype: None, shape: Vec::new() };
        match stored {
            Stored::Own(block, raw) => {
                let block = &recording.blocks[*block as usize];
                let base = match block.placement {
                    Placement::Pool => self.memory.pool().base(),
                    _ => self.memory.result_addresses().start,
                };
                let shown = TreeBlock {
                    offset: block.addr - base,
                    bytes: block.bytes,
                    producer: block.producer.to_owned(),
                };
                let pooled = block.placement == Placement::Pool;
                tensor(if pooled { OutputPlace::Pool(shown) } else { OutputPlace::Result(shown) }, raw)
            }
            Stored::LiveIn(index, _, raw) => tensor(OutputPlace::LiveIn(*index as usize), raw),
            Stored::Owned(_, raw) => tensor(OutputPlace::Owned, raw),
            Stored::Word(word) => host(word.to_string()),
            Stored::Text(text) => host(format!("{text:?}")),
            Stored::Size(dim) => host(dim.size.to_string()),
        }
    }
}

/// Returns whether a block is that output of that recording.
fn is_output(block: &EntryBlock, recording: &Recording, output: &OutputBlock) -> bool {
    let made_by_it = |ordinal| block.origin() == Origin::Segment { group: recording.group, ordinal };
    output.placement == Placement::Pool
        && output.addr == block.addr()
        && output.ordinal.is_some_and(made_by_it)
}

fn segment(site: &Site, whole_call: bool) -> TreeSegment {
    TreeSegment {
        function: site.function.to_owned(),
        index: site.index,
        file: site.file.to_owned(),
        first_line: site.first_line,
        last_line: site.last_line,
        whole_call,
    }
}

fn waiting(group: &Group) -> Option<TreeWaiting> {
    let (site, Waiting { function, wait, runs }) = (group.site?, group.waiting?);
    Some(TreeWaiting {
        function: function.to_owned(),
        segment: segment(site, group.is_whole_call()),
        reason: wait.reason().to_string(),
        warmups: runs,
    })
}

/// Numbers for the states in which recordings begin and end.
struct States<'c> {
    numbers: FxHashMap<StateId, usize>,
    memory: &'c Memory,
}

impl States<'_> {
    fn number(&mut self, view: &mut GraphTree, state: StateId) -> usize {
        *self.numbers.entry(state).or_insert_with(|| {
            let offset = |b: Block| (b.addr - self.memory.pool().base(), rounded(b.len));
            view.states.push(TreeState { blocks: self.memory.pool().blocks(state).map(offset).collect() });
            view.states.len() - 1
        })
    }
}
