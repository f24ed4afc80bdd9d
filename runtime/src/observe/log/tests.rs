use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tracing::{
    Level, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};

use super::{Log, Printer, TARGET};
use crate::{
    CopySlot, Error, FallbackReason, GraphId, RecordingId, RerecordReason, UnsharedReason,
    base::plan::Site,
    observe::occurrence::{ExecutableRef, Occurrence, RecordingRef, Wait},
    value::owned::OwnerId,
};

static SITE: Site = Site { function: "f", index: 0, file: "a.rs", first_line: 1, last_line: 1 };

/// One occurrence of each kind; for fallbacks, also one that was requested.
fn with_all(check: impl Fn(Occurrence<'_>)) {
    let (id, with, site, function) = (RecordingId::from(7), RecordingId::from(4), &SITE, "f");
    let recording = RecordingRef { id, site, graph: GraphId(OwnerId::new()), function };
    let (wanted, unwanted) = (FallbackReason::MixedBatch, FallbackReason::NoPieces);
    assert!(wanted.is_wanted() && !unwanted.is_wanted());
    let error = &Error::Rank { rank: 9 };
    let executable = ExecutableRef::Own { kernels: 1, bytes: 64 };
    let (capture, cost) = (Duration::from_millis(1), Duration::from_millis(2));
    let all = [
        Occurrence::Warmed { site },
        Occurrence::Waited { function, site, wait: Wait::SameCall },
        Occurrence::Recorded { recording, executable, capture },
        Occurrence::NeverRan { recording, executable, error },
        Occurrence::Shared { recording, with },
        Occurrence::Updated { site, recording: id, cost },
        Occurrence::Unshared { recording, reason: &UnsharedReason::SameStep },
        Occurrence::SplitOff { recording, executable },
        Occurrence::StillShared { site, error },
        Occurrence::CaptureInvalidated { site },
        Occurrence::Replayed { recording },
        Occurrence::ReplayFailed { recording, error },
        Occurrence::Rerecorded { site, reason: &RerecordReason::LiveSet },
        Occurrence::SwitchedToCopy { site, live_in: 1, moves: 6 },
        Occurrence::ManyShapes { function, shapes: 32 },
        Occurrence::ManyCaptures { function, captures: 99 },
        Occurrence::RanEager { site },
        Occurrence::Copied { slot: CopySlot::Kept, bytes: 256 },
        Occurrence::FellBack { function, reason: &wanted },
        Occurrence::FellBack { function, reason: &unwanted },
        Occurrence::NotConverged { function, sizes: &[8], segments: &[&SITE] },
        Occurrence::CaptureMeasured { expected_bytes: None, bytes: 1 },
        Occurrence::Destroyed { recording },
        Occurrence::Evicted { recordings: 1 },
        Occurrence::Aborted { site },
        Occurrence::Audited { site },
    ];
    all.into_iter().for_each(check);
}

/// The levels of the events that `tracing` received.
#[derive(Clone, Default)]
struct Levels(Arc<Mutex<Vec<Level>>>);

impl Subscriber for Levels {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn tracing_has_each_at_its_level() {
    // While there is only one subscriber, `tracing` asks the thread that first reaches an event whether anybody listens, which may be
    // that of another test, without a subscriber, and remembers the answer for all threads. With two, it asks both of them.
    let _second = tracing::Dispatch::new(Levels::default());
    with_all(|occurrence| {
        let levels = Levels::default();
        tracing::subscriber::with_default(levels.clone(), || {
            Log::with(Printer::default()).emit(occurrence);
        });
        let reported = std::mem::take(&mut *levels.0.lock().unwrap());
        assert_eq!(reported, occurrence.level().into_iter().collect::<Vec<_>>(), "{occurrence:?}");
    });
}

/// Occurrences are counted whoever listens, and each listener gets its own.
#[test]
fn listeners_change_no_counter() {
    with_all(|occurrence| {
        let mut alone = Log::with(Printer::default());
        alone.emit(occurrence);
        let mut heard = Log::with(Printer::default());
        heard.keep(true);
        heard.watch_recordings(true);
        heard.watch(true);
        heard.emit(occurrence);
        assert_eq!(alone.stats(), heard.stats(), "{occurrence:?}");
        assert_eq!((alone.take(), alone.take_lifecycle(), alone.watch(false)), (vec![], vec![], vec![]));
        let seen = heard.take().len() + heard.take_lifecycle().len();
        let is_of_tracing_alone = matches!(occurrence, Occurrence::StillShared { .. });
        assert_eq!(seen > 0, !is_of_tracing_alone, "{occurrence:?}");
        heard.keep(false);
        heard.watch_recordings(false);
        heard.emit(occurrence);
        assert_eq!((heard.take(), heard.take_lifecycle()), (vec![], vec![]));
    });
}

/// A fallback is reported once per function, and kept each time.
#[test]
fn a_cause_is_warned_of_once_a_function() {
    let levels = Levels::default();
    tracing::subscriber::with_default(levels.clone(), || {
        let mut log = Log::with(Printer::default());
        log.keep(true);
        let reason = &FallbackReason::NoPieces;
        for function in ["f", "g", "f", "g"] {
            log.emit(Occurrence::FellBack { function, reason });
        }
        assert_eq!((log.take().len(), log.stats().fallbacks), (4, 4));
        assert_eq!(log.stats().fallback_reasons, [(reason.clone(), 4)]);
    });
    assert_eq!(*levels.0.lock().unwrap(), [Level::WARN; 2]);
}
