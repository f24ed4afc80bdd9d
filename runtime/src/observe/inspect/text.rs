//! The tree as text.

use std::{collections::HashSet, fmt};

use crate::{Numerics, RecordingId};

use super::{
    GraphTree, OutputId, OutputPlace, TreeOutput, TreeRecording, TreeSegment, TreeState, TreeWaiting,
};

/// Lists are truncated after this number of entries.
const SHOWN: usize = 8;

impl fmt::Display for TreeSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, index, first_line, last_line, whole_call, .. } = self;
        if *whole_call {
            return write!(f, "{function}, whole call");
        }
        match last_line == first_line {
            true => write!(f, "{function} #{index}, line {first_line}"),
            false => write!(f, "{function} #{index}, lines {first_line}-{last_line}"),
        }
    }
}

impl fmt::Display for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.recording, self.output)
    }
}

impl fmt::Display for TreeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.blocks.is_empty() {
            return f.write_str("nothing");
        }
        let blocks: Vec<String> =
            self.blocks.iter().map(|(offset, bytes)| format!("{offset}+{bytes}")).collect();
        write!(f, "{} B at {}", self.bytes(), cut(&blocks))
    }
}

impl fmt::Display for TreeOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dtype) = &self.dtype {
            write!(f, "{dtype}{:?} ", self.shape)?;
        }
        match &self.place {
            OutputPlace::Pool(b) => write!(f, "in the pool at {}+{} by {}", b.offset, b.bytes, b.producer),
            OutputPlace::Result(b) => {
                write!(f, "among the results at {}+{} by {}", b.offset, b.bytes, b.producer)
            }
            OutputPlace::LiveIn(index) => write!(f, "of live-in {index}"),
            OutputPlace::Owned => f.write_str("of a parameter or state"),
            OutputPlace::Host(value) => write!(f, "host value {value}"),
        }
    }
}

/// Formats the first few entries, and the number of the others.
fn cut(list: &[impl fmt::Display]) -> String {
    let mut text: Vec<String> = list.iter().take(SHOWN).map(ToString::to_string).collect();
    if list.len() > SHOWN {
        text.push(format!("and {} more", list.len() - SHOWN));
    }
    text.join(", ")
}

/// Formats operations, and the structure of control flow among them: `while { body: add, mul }`. Of the operations of a body,
/// or outside all of them, the first few are named; every recording and body is shown.
pub(super) fn operations(list: &[String]) -> String {
    let mut text = String::new();
    // Of each body around the current place, and of the outermost level: the operations so far.
    let mut counts = vec![0usize];
    let mut omitted = 0;
    for (index, name) in list.iter().enumerate() {
        let is_mark = name.ends_with(['{', ':']) || name == "}";
        let count = counts.last_mut().map_or(0, |count| {
            *count += usize::from(!is_mark);
            *count
        });
        let is_end = list.get(index + 1).is_none_or(|next| next.ends_with(['{', ':']) || next == "}");
        if is_mark || count <= SHOWN {
            append(&mut text, name);
        } else {
            omitted += 1;
            if is_end {
                append(&mut text, &format!("and {omitted} more"));
                omitted = 0;
            }
        }
        match name.as_str() {
            "}" => {
                counts.pop();
            }
            "body:" => {
                if let Some(count) = counts.last_mut() {
                    *count = 0;
                }
            }
            _ if is_mark => counts.push(0),
            _ => {}
        }
    }
    text
}

/// Appends a part of such a list.
fn append(text: &mut String, part: &str) {
    let opens = text.ends_with(['{', ':']);
    match () {
        () if text.is_empty() => {}
        () if opens || part == "}" || part == "body:" => text.push(' '),
        () => text.push_str(", "),
    }
    text.push_str(part);
}

/// Returns the variant for which it was recorded, if any: sizes, and switches of the numerics, as `T=16, TF32`.
pub(super) fn variant(recording: &TreeRecording) -> Option<String> {
    let sizes = recording.sizes.iter().map(|(symbol, size)| format!("{symbol}={size}"));
    let switches = (recording.numerics != Numerics::default()).then(|| recording.numerics.to_string());
    let all: Vec<String> = sizes.chain(switches).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

pub(super) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

impl fmt::Display for GraphTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}, {}, {}",
            self.device,
            counted(self.recordings.len(), "recording", "recordings"),
            counted(self.roots(), "root", "roots"),
            counted(self.states.len(), "state", "states"),
        )?;
        writeln!(
            f,
            "bytes: pool {} (recordings need {}), results {}, eager {}, executables {}",
            self.pool_bytes,
            self.needed_pool_bytes(),
            self.result_bytes,
            self.eager_bytes,
            self.executable_bytes
        )?;
        if self.shared_bytes > 0 || self.recordings.iter().any(|n| !n.shares_with.is_empty()) {
            let executables = counted(self.executables, "executable", "executables");
            writeln!(f, "{executables}; {} bytes saved by sharing", self.shared_bytes)?;
        }
        let mut shown = HashSet::new();
        for function in &self.functions {
            writeln!(f, "\n{}", function.name)?;
            self.ways(f, &function.roots, &mut shown)?;
        }
        let detached: Vec<RecordingId> =
            self.recordings.iter().filter(|n| n.after_eager).map(|n| n.id).collect();
        let left = |shown: &HashSet<RecordingId>| {
            detached.iter().copied().filter(|id| !shown.contains(id)).collect()
        };
        let roots: Vec<RecordingId> = left(&shown);
        if !roots.is_empty() {
            writeln!(f, "\nafter code that ran without a graph")?;
            self.ways(f, &roots, &mut shown)?;
        }
        if !self.waiting.is_empty() {
            writeln!(f, "\nnot recorded yet")?;
        }
        for TreeWaiting { function, segment, reason, warmups } in self.waiting.iter().take(SHOWN) {
            let times = counted(*warmups as usize, "warm-up", "warm-ups");
            writeln!(f, "  [{segment}] in {function}, {times}: {reason}")?;
        }
        if self.waiting.len() > SHOWN {
            writeln!(f, "  and {} more", self.waiting.len() - SHOWN)?;
        }
        writeln!(f, "\nstates of the pool")?;
        for (number, state) in self.states.iter().enumerate() {
            writeln!(f, "  s{number}: {state}")?;
        }
        Ok(())
    }
}

/// A recording and the prefix of its lines.
struct Place {
    id: RecordingId,
    first: String,
    rest: String,
}

impl Place {
    /// Returns the followers of a recording whose lines start with `indent`, last first.
    fn below(indent: &str, recordings: &[RecordingId]) -> Vec<Self> {
        if let [id] = *recordings {
            return vec![Self { id, first: indent.to_owned(), rest: indent.to_owned() }];
        }
        let last = recordings.len().saturating_sub(1);
        let place = |(index, &id): (usize, &RecordingId)| {
            let (first, rest) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            Self { id, first: format!("{indent}{first}"), rest: format!("{indent}{rest}") }
        };
        recordings.iter().enumerate().rev().map(place).collect()
    }
}

impl GraphTree {
    /// Writes the followers of `from`. A single path continues straight down; branches are indented. There is
    /// no recursion, because paths can be as long as programs run.
    fn ways(
        &self,
        f: &mut fmt::Formatter<'_>,
        from: &[RecordingId],
        shown: &mut HashSet<RecordingId>,
    ) -> fmt::Result {
        let mut todo: Vec<Place> = Place::below("  ", from);
        while let Some(Place { id, first, rest }) = todo.pop() {
            let Some(recording) = self.recording(id) else { continue };
            if !shown.insert(id) {
                writeln!(f, "{first}-> {id}, above")?;
                continue;
            }
            self.line(f, recording, &first, &rest)?;
            todo.extend(Place::below(&rest, &recording.children));
        }
        Ok(())
    }

    fn line(
        &self,
        f: &mut fmt::Formatter<'_>,
        recording: &TreeRecording,
        first: &str,
        indent: &str,
    ) -> fmt::Result {
        writeln!(
            f,
            "{first}{} [{}] {}{}, {}, s{} -> s{}, pool {} B",
            recording.id,
            recording.segment,
            variant(recording).map(|variant| variant + ", ").unwrap_or_default(),
            counted(recording.kernels, "kernel", "kernels"),
            counted(recording.hits as usize, "hit", "hits"),
            recording.entry,
            recording.exit,
            recording.pool_bytes,
        )?;
        writeln!(f, "{indent}    runs   {}", operations(&recording.operations))?;
        for report in recording.passes.iter().filter(|report| report.has_something()) {
            writeln!(f, "{indent}    pass   {report}")?;
        }
        if !recording.shares_with.is_empty() {
            writeln!(f, "{indent}    shares {}", cut(&recording.shares_with))?;
        }
        if !recording.alive.is_empty() {
            writeln!(f, "{indent}    alive  {}", cut(&recording.alive))?;
        }
        if !recording.alive_others.is_empty() {
            writeln!(f, "{indent}    alive  {}", cut(&recording.alive_others))?;
        }
        if !recording.dead.is_empty() {
            writeln!(f, "{indent}    dead   {}", cut(&recording.dead))?;
        }
        for (index, output) in recording.outputs.iter().enumerate() {
            writeln!(
                f,
                "{indent}    {:<6} {output}",
                OutputId { recording: recording.id, output: index }.to_string()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn operations_are_cut_but_no_recording_is() {
        let shown = |list: &str| super::operations(&list.split(", ").map(Into::into).collect::<Vec<_>>());
        assert_eq!(shown("a"), "a");
        assert_eq!(shown("a, b, c, d, e, f, g, h, i, j, k"), "a, b, c, d, e, f, g, h, and 3 more");
        let before = "a, b, c, d, e, f, g, h";
        let list = format!(
            "{before}, i, while {{, body:, {before}, i, j, cond {{, body:, x, body:, y, }}, k, }}, z"
        );
        let text = "and 1 more, while { body: a, b, c, d, e, f, g, h, and 2 more, cond { body: x body: y }, and 1 more }";
        assert_eq!(shown(&list), format!("{before}, {text}, and 1 more"));
    }
}
