//! The partition of a function into graphs, with reasons.

use std::fmt;

use crate::{
    Capability,
    base::{
        mode::Support,
        plan::{BoundaryMove, Plan, PlanItem},
    },
};

/// The parts of a function, and which of them become graphs.
///
/// It describes what the source allows, before anything runs; [`GraphTree`](crate::inspect::GraphTree),
/// [`Event`](crate::Event) and [`Stats`](crate::Stats) report what happened to each part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PlanReport {
    /// The function.
    pub function: String,
    /// Its file.
    pub file: String,
    /// Its parts, in the order in which they run.
    pub parts: Vec<PlanPart>,
    /// The number of parts that become graphs in piecewise mode.
    pub graphable: usize,
    /// The reasons why the whole call cannot be one graph; empty if it can.
    pub not_full: Vec<String>,
    /// The batches for which the call can be one graph, according to the weakest boundary: a name of
    /// [`Support`].
    pub support: String,
}

/// A part of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PlanPart {
    /// Index in [`Plan::items`].
    pub index: usize,
    /// The kind of part.
    pub kind: PartKind,
    /// First line.
    pub first_line: u32,
    /// Last line.
    pub last_line: u32,
    /// The call of a boundary, shortened; empty for a segment.
    pub call: String,
    /// The values from outside that a segment reads, as written.
    pub live_ins: Vec<String>,
    /// The values of a segment that later code uses.
    pub live_outs: Vec<String>,
    /// The position where a boundary runs, if it was moved.
    pub moved: Option<BoundaryMove>,
    /// The reason why the part is not a graph in piecewise mode; `None` if it is.
    pub why_not: Option<String>,
}

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PartKind {
    /// Statements that become one graph.
    Segment,
    /// An `#[eager]` expression.
    Boundary,
    /// A `#[piecewise]` call: a function with a plan of its own.
    Piecewise,
}

impl Plan {
    /// Returns the parts, and which of them become graphs; for the others, the reason why they do not.
    pub fn report(&self) -> PlanReport {
        PlanReport::of(self)
    }
}

impl PlanPart {
    /// Describes an item; `not_full` gets a reason if the item prevents one graph of the whole call.
    fn of(item: &PlanItem, not_full: &mut Vec<String>) -> Self {
        let list = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let site = item.site();
        let part = Self {
            index: site.index,
            kind: PartKind::Segment,
            first_line: site.first_line,
            last_line: site.last_line,
            call: String::new(),
            live_ins: Vec::new(),
            live_outs: Vec::new(),
            moved: None,
            why_not: None,
        };
        match item {
            PlanItem::Segment { live_ins, live_outs, .. } => {
                Self { live_ins: list(live_ins), live_outs: list(live_outs), ..part }
            }
            PlanItem::Boundary { call, support, moved, .. } => {
                if *support == Support::Never {
                    not_full.push(format!(
                        "line {}: `{call}` is `#[eager]` and supports no capture",
                        site.first_line
                    ));
                }
                let reason = Some("it is `#[eager]`: it runs on every call".to_owned());
                let (kind, call) = (PartKind::Boundary, (*call).to_owned());
                Self { kind, call, moved: *moved, why_not: reason, ..part }
            }
            PlanItem::Piecewise { call, .. } => {
                not_full.push(format!(
                    "line {}: what the boundaries of `{call}` support is not known here",
                    site.first_line
                ));
                let reason = Some("it is `#[piecewise]`: its function has parts of its own".to_owned());
                Self { kind: PartKind::Piecewise, call: (*call).to_owned(), why_not: reason, ..part }
            }
        }
    }
}

impl PlanReport {
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut not_full = Vec::new();
        if let Some(site) = plan.host_statement {
            not_full.push(format!("line {}: a `#[host] let` runs on every call", site.first_line));
        }
        let parts: Vec<PlanPart> = plan.items.iter().map(|item| PlanPart::of(item, &mut not_full)).collect();
        Self {
            function: plan.function.to_owned(),
            file: plan.file.to_owned(),
            graphable: parts.iter().filter(|p| p.why_not.is_none()).count(),
            parts,
            not_full,
            support: Capability::of(plan).support.to_string(),
        }
    }

    /// Returns one JSON object on one line, with the names of the fields as keys.
    #[cfg(feature = "serde")]
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    pub fn to_json(&self) -> String {
        crate::observe::inspect::json(self)
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, file, parts, graphable, not_full, support } = self;
        let word = if parts.len() == 1 { "part" } else { "parts" };
        writeln!(f, "{function} ({file}): {} {word}, {graphable} of them graphs", parts.len())?;
        for part in parts {
            write!(f, "  #{} line {}", part.index, part.first_line)?;
            part.moved.map_or(Ok(()), |moved| write!(f, ", {moved}"))?;
            match &part.why_not {
                None => writeln!(f, ": a graph")?,
                Some(reason) => writeln!(f, ": `{}` is not a graph: {reason}", part.call)?,
            }
        }
        if not_full.is_empty() {
            if *support == Support::Always.to_string() {
                return writeln!(f, "  the whole call can be one graph");
            }
            return writeln!(f, "  the whole call can be one graph for some batches: {support}");
        }
        writeln!(f, "  the whole call cannot be one graph")?;
        not_full.iter().try_for_each(|reason| writeln!(f, "    {reason}"))
    }
}
