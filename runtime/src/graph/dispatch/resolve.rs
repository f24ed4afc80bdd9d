//! Resolution of a mode, given what the boundaries of a function support.

use crate::{
    Error, Mode, Plan, PlanItem, Result, Site, Support,
    base::reason::{FallbackReason, place},
};

/// The capability of a function: how it is partitioned, and what its weakest boundary supports.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Capability {
    /// The support of the weakest boundary; `Always` if there is none. A `#[host] let` and a `#[piecewise]`
    /// call support nothing.
    pub support: Support,
    /// The position of that boundary.
    pub boundary: Option<&'static Site>,
    /// If set, boundaries split the function, so its segments are less than the whole call.
    pub split: bool,
    /// If set, there are segments to record between the boundaries.
    pub pieces: bool,
}

/// The result of resolving a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolution {
    /// The requested mode.
    pub asked: Mode,
    /// The mode that calls are dispatched in.
    pub mode: Mode,
    /// The reason if the mode differs; `None` if it is the requested one.
    pub reason: Option<FallbackReason>,
}

impl Capability {
    /// Creates the capability of a function with boundaries of this support (or none), without their
    /// positions.
    pub fn new(support: Support, split: bool, pieces: bool) -> Self {
        Self { support, boundary: None, split, pieces }
    }

    /// Returns the capability of a function, from its plan.
    pub fn of(plan: &Plan) -> Self {
        // In this order, so that the reason for a fallback names the first position in the source.
        let never = plan.host_statement.into_iter();
        let boundaries = plan.items.iter().filter_map(|item| match item {
            PlanItem::Boundary { site, support, .. } => Some((*site, *support)),
            // The support of the inner function's boundaries is not known here.
            PlanItem::Piecewise { site, .. } => Some((*site, Support::Never)),
            PlanItem::Segment { .. } => None,
        });
        let all = never.map(|site| (site, Support::Never)).chain(boundaries);
        // The first of the weakest.
        let weakest = all.min_by_key(|(_, support)| *support);
        let pieces =
            plan.items.iter().any(|i| matches!(i, PlanItem::Segment { .. } | PlanItem::Piecewise { .. }));
        Self {
            support: weakest.map_or(Support::Always, |(_, support)| support),
            boundary: weakest.map(|(site, _)| site),
            split: weakest.is_some(),
            pieces: weakest.is_some() && pieces,
        }
    }

    /// Resolves `asked` for uniform decodes of `query_len` new tokens per sequence:
    ///
    /// | asked | `Always` | `UniformBatch`, or `UniformSingleTokenDecode` of 1 token | `UniformSingleTokenDecode` of more | `Never` |
    /// |---|---|---|---|---|
    /// | `None`, `Piecewise` | the same | the same | the same | the same |
    /// | `Full` | the same | `FullAndPiecewise`; without pieces `FullDecodeOnly` | `Piecewise`; uncut `None` | `Piecewise`; uncut `None` |
    /// | `FullDecodeOnly` | the same | the same | `Piecewise`; uncut `None` | `Piecewise`; without pieces `None` |
    /// | `FullAndPiecewise` | the same; without pieces `FullDecodeOnly` | as left | `Piecewise` | `Piecewise`; without pieces `None` |
    ///
    /// Nothing happens silently: a call that gets less than `asked` counts as a fallback, with
    /// [`Resolution::reason`], and is an error under `deny_fallback`.
    ///
    /// # Errors
    /// Returns [`Error::Config`] for `FullAndPiecewise` of a function without boundaries: its only segment is
    /// the whole call.
    pub fn resolve(&self, asked: Mode, query_len: usize) -> Result<Resolution> {
        let Self { support, split, pieces, .. } = *self;
        if asked == Mode::FullAndPiecewise && !split {
            return Err(Error::Config {
                what: format!("mode {asked}"),
                reason: "no `#[eager]` boundary cuts the function, so its only piece is the whole call; use \
                      `Mode::Full`, or `Mode::FullDecodeOnly` for decodes alone"
                    .into(),
            });
        }
        let boundary = || self.boundary.map_or_else(|| "?".to_owned(), place);
        let piecewise_if = |has: bool| if has { Mode::Piecewise } else { Mode::None };
        let other = match (asked, support) {
            (Mode::None | Mode::Piecewise, _) => None,
            (_, Support::Never) => {
                // `Full` always resolves to `Piecewise` here, whatever a function consists of.
                let mode = piecewise_if(pieces || (split && asked == Mode::Full));
                Some((mode, FallbackReason::FullNotSupported { boundary: boundary() }))
            }
            (_, Support::UniformSingleTokenDecode) if query_len > 1 => {
                Some((piecewise_if(split), FallbackReason::QueryTooLong { boundary: boundary(), query_len }))
            }
            (Mode::Full, Support::UniformSingleTokenDecode | Support::UniformBatch) => {
                let mode = if split && pieces { Mode::FullAndPiecewise } else { Mode::FullDecodeOnly };
                Some((mode, FallbackReason::BatchNotUniform { boundary: boundary(), support }))
            }
            (Mode::FullAndPiecewise, _) if !pieces => Some((Mode::FullDecodeOnly, FallbackReason::NoPieces)),
            (Mode::Full | Mode::FullDecodeOnly | Mode::FullAndPiecewise, _) => None,
        };
        Ok(match other {
            Some((mode, reason)) => Resolution { asked, mode, reason: Some(reason) },
            None => Resolution { asked, mode: asked, reason: None },
        })
    }
}

#[cfg(test)]
mod tests {
    use Mode::{Full as F, FullAndPiecewise as FP, FullDecodeOnly as FD, None as N, Piecewise as P};

    use super::*;

    const SUPPORTS: [Support; 4] =
        [Support::Always, Support::UniformBatch, Support::UniformSingleTokenDecode, Support::Never];

    /// Returns the mode, or `None` if it is rejected.
    fn resolve(asked: Mode, support: Support, query_len: usize, split: bool, pieces: bool) -> Option<Mode> {
        let resolution = Capability::new(support, split, pieces).resolve(asked, query_len).ok()?;
        assert_eq!(resolution.asked, asked);
        assert_eq!(resolution.reason.is_some(), resolution.mode != asked, "{resolution:?}");
        Some(resolution.mode)
    }

    /// Every mode, with every support, with one and with several tokens per query: one row for each way to
    /// partition a function, (split, pieces) = (no, no), (no, yes), (yes, no), (yes, yes).
    #[test]
    fn every_cell() {
        // For each mode: Always, UniformBatch, UniformSingleTokenDecode and Never with one token per query,
        // then UniformSingleTokenDecode with three; the other columns are the same for three.
        type Row = (Mode, [Option<Mode>; 5]);
        let all = |mode| [Some(mode); 5];
        let uncut = |never: Mode| -> [Row; 5] {
            [
                (N, all(N)),
                (P, all(P)),
                (F, [F, FD, FD, never, N].map(Some)),
                (FD, [FD, FD, FD, never, N].map(Some)),
                (FP, [None; 5]),
            ]
        };
        let cut = |both: Mode, never: Mode| -> [Row; 5] {
            [
                (N, all(N)),
                (P, all(P)),
                (F, [F, both, both, P, P].map(Some)),
                (FD, [FD, FD, FD, never, P].map(Some)),
                (FP, [both, both, both, never, P].map(Some)),
            ]
        };
        let tables = [
            ((false, false), uncut(N)),
            ((false, true), uncut(P)),
            ((true, false), cut(FD, N)),
            ((true, true), cut(FP, P)),
        ];
        let mut cells = 0;
        for ((split, pieces), rows) in tables {
            for (asked, expected) in rows {
                for (column, support) in SUPPORTS.into_iter().enumerate() {
                    for query_len in [1, 3] {
                        let longer = support == Support::UniformSingleTokenDecode && query_len > 1;
                        let expected = expected[if longer { 4 } else { column }];
                        let got = resolve(asked, support, query_len, split, pieces);
                        assert_eq!(got, expected, "{asked} on {support}, {query_len}, {split}, {pieces}");
                        cells += 1;
                    }
                }
            }
        }
        assert_eq!(cells, 5 * 4 * 2 * 4);
    }

    #[test]
    fn reasons_name_what_is_in_the_way() {
        let reason = |asked, support, query_len| {
            Capability::new(support, true, true).resolve(asked, query_len).unwrap().reason
        };
        let boundary = || "?".to_owned();
        assert_eq!(
            reason(FP, Support::Never, 1),
            Some(FallbackReason::FullNotSupported { boundary: boundary() })
        );
        let single = Support::UniformSingleTokenDecode;
        assert_eq!(
            reason(FD, single, 2),
            Some(FallbackReason::QueryTooLong { boundary: boundary(), query_len: 2 })
        );
        assert_eq!(
            reason(F, single, 1),
            Some(FallbackReason::BatchNotUniform { boundary: boundary(), support: single })
        );
        let alone = Capability::new(Support::Always, true, false).resolve(FP, 1).unwrap();
        assert_eq!(alone.reason, Some(FallbackReason::NoPieces));
    }

    #[test]
    fn an_uncut_function_has_no_pieces_apart() {
        let error = Capability::new(Support::Always, false, false).resolve(FP, 1).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("mode full-and-piecewise: no `#[eager]` boundary cuts"), "{text}");
        assert!(text.contains("use `Mode::Full`"), "{text}");
    }

    #[test]
    fn the_weakest_boundary_counts() {
        static SITES: [Site; 3] = {
            const fn at(line: u32) -> Site {
                Site { function: "f", index: 0, file: "f.rs", first_line: line, last_line: line }
            }
            [at(1), at(2), at(3)]
        };
        let boundary =
            |i: usize, support| PlanItem::Boundary { site: &SITES[i], call: "f()", support, moved: None };
        let plan = |items: Vec<PlanItem>, host_statement| Plan {
            function: "f",
            file: "f.rs",
            items: Box::leak(items.into_boxed_slice()),
            host_statement,
        };
        let of = |plan: &Plan| {
            let c = Capability::of(plan);
            (c.support, c.boundary.map(|s| s.first_line), c.split, c.pieces)
        };
        let segment = || PlanItem::Segment { site: &SITES[0], live_ins: &[], live_outs: &[] };
        assert_eq!(of(&plan(vec![segment()], None)), (Support::Always, None, false, false));
        let two = vec![boundary(0, Support::Always), segment(), boundary(1, Support::UniformBatch)];
        assert_eq!(of(&plan(two, None)), (Support::UniformBatch, Some(2), true, true));
        let three = vec![boundary(0, Support::Never), boundary(1, Support::Never)];
        assert_eq!(of(&plan(three, Some(&SITES[2]))), (Support::Never, Some(3), true, false));
        let inner = vec![boundary(0, Support::Always), PlanItem::Piecewise { site: &SITES[1], call: "g()" }];
        assert_eq!(of(&plan(inner, None)), (Support::Never, Some(2), true, true));
    }
}
