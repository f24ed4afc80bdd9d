//! The partition of a function, as determined by the macro.

use std::fmt;

use crate::base::mode::Support;

/// The position of a segment or a boundary in the source.
#[derive(Debug)]
pub struct Site {
    /// The function.
    pub function: &'static str,
    /// Index in [`Plan::items`].
    pub index: usize,
    /// The file.
    pub file: &'static str,
    /// First line.
    pub first_line: u32,
    /// Last line.
    pub last_line: u32,
}

impl Site {
    /// Returns a short name: the function and the index of the part.
    pub(crate) fn title(&self) -> impl fmt::Display {
        struct Title(&'static str, usize);
        impl fmt::Display for Title {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} #{}", self.0, self.1)
            }
        }
        Title(self.function, self.index)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` #{} ({}:{}", self.function, self.index, self.file, self.first_line)?;
        if self.last_line != self.first_line {
            write!(f, "-{}", self.last_line)?;
        }
        f.write_str(")")
    }
}

/// The position to which an `#[eager]` expression was moved at its own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum BoundaryMove {
    /// Before the device work above it: `#[eager(early)]`.
    Early,
    /// After the device work below it: `#[eager(late)]`.
    Late,
}

impl fmt::Display for BoundaryMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Early => "moved early",
            Self::Late => "moved late",
        })
    }
}

/// One part of a function.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlanItem {
    /// Statements that become one graph.
    Segment {
        /// Its position.
        site: &'static Site,
        /// The values from outside that it reads, as written.
        live_ins: &'static [&'static str],
        /// Its values that later code uses.
        live_outs: &'static [&'static str],
    },
    /// An `#[eager]` expression.
    Boundary {
        /// Its position.
        site: &'static Site,
        /// The expression, shortened.
        call: &'static str,
        /// The batches for which it can be captured as part of the whole call.
        support: Support,
        /// The position where it runs, if it was moved.
        moved: Option<BoundaryMove>,
    },
    /// A `#[piecewise]` call: a function with a plan of its own.
    Piecewise {
        /// Its position.
        site: &'static Site,
        /// The call, shortened.
        call: &'static str,
    },
}

impl PlanItem {
    /// Returns its position.
    pub fn site(&self) -> &'static Site {
        match self {
            Self::Segment { site, .. } | Self::Boundary { site, .. } | Self::Piecewise { site, .. } => site,
        }
    }
}

/// Segments and boundaries of a function, in the order in which they run: the order of the source, except for
/// boundaries that were [moved](BoundaryMove).
#[derive(Debug)]
pub struct Plan {
    /// The function.
    pub function: &'static str,
    /// Its file.
    pub file: &'static str,
    /// The parts.
    pub items: &'static [PlanItem],
    /// The first host statement that prevents full mode (`#[host] let`).
    pub host_statement: Option<&'static Site>,
}

impl Plan {
    /// Returns the number of segments in the source. A segment in a loop runs many times.
    pub fn segments(&self) -> usize {
        self.items.iter().filter(|i| matches!(i, PlanItem::Segment { .. })).count()
    }

    /// Returns the number of `#[eager]` boundaries in the source.
    pub fn boundaries(&self) -> usize {
        self.items.iter().filter(|i| matches!(i, PlanItem::Boundary { .. })).count()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[&str]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let (segments, boundaries) = (self.segments(), self.boundaries());
        writeln!(
            f,
            "{} ({}): {segments} segment{}, {boundaries} boundar{}",
            self.function,
            self.file,
            if segments == 1 { "" } else { "s" },
            if boundaries == 1 { "y" } else { "ies" }
        )?;
        for item in self.items {
            let site = item.site();
            let lines = if site.first_line == site.last_line {
                format!("line {}", site.first_line)
            } else {
                format!("lines {}-{}", site.first_line, site.last_line)
            };
            match item {
                PlanItem::Segment { live_ins, live_outs, .. } => {
                    writeln!(
                        f,
                        "  #{} segment   {lines}: {} -> {}",
                        site.index,
                        list(live_ins),
                        list(live_outs)
                    )?;
                }
                PlanItem::Boundary { call, support, moved, .. } => {
                    write!(f, "  #{} eager     {lines}: {call} [support: {support}]", site.index)?;
                    match moved {
                        Some(moved) => writeln!(f, " {moved}")?,
                        None => writeln!(f)?,
                    }
                }
                PlanItem::Piecewise { call, .. } => {
                    writeln!(f, "  #{} piecewise {lines}: {call}", site.index)?;
                }
            }
        }
        Ok(())
    }
}
