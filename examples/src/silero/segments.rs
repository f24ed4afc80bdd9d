//! From probabilities to segments of speech, as the wheel's `get_speech_timestamps` finds them with its defaults.

use serde::Serialize;

use super::CHUNK;

/// Samples a second.
const RATE: usize = 16_000;
/// Speech begins with such a probability.
const THRESHOLD: f32 = 0.5;
/// Silence begins below it.
const SILENCE: f32 = 0.35;
/// The least length of speech, in samples.
const LEAST_SPEECH: usize = RATE / 4;
/// The least length of the silence after it.
const LEAST_SILENCE: usize = RATE / 10;
/// Samples that belong to a segment before and after it.
const AROUND: usize = 3 * RATE / 100;

/// Speech, in seconds from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Where it begins.
    pub start: f64,
    /// Where it ends.
    pub end: f64,
}

/// Finds segments while probabilities come in.
#[derive(Debug, Default)]
pub struct Segments {
    /// Samples before the next chunk.
    heard: usize,
    /// The first sample of speech that has not ended.
    start: Option<usize>,
    /// The first sample of the silence after it, so far.
    silence: Option<usize>,
}

impl Segments {
    /// The probability of the next chunk; returns a segment if it has ended now.
    pub fn next(&mut self, probability: f32) -> Option<Segment> {
        let now = self.heard;
        self.heard += CHUNK;
        if probability >= THRESHOLD {
            self.silence = None;
            self.start.get_or_insert(now);
            return None;
        }
        let start = self.start?;
        if probability >= SILENCE {
            return None;
        }
        let end = *self.silence.get_or_insert(now);
        if now - end < LEAST_SILENCE {
            return None;
        }
        (self.start, self.silence) = (None, None);
        segment(start, end, end + AROUND)
    }

    /// The segment that lasts to the end, if there is one; the recording has so many samples.
    pub fn finish(self, samples: usize) -> Option<Segment> {
        segment(self.start?, samples, samples)
    }
}

/// Speech, unless it is too short.
fn segment(start: usize, end: usize, padded_end: usize) -> Option<Segment> {
    let seconds = |sample: usize| sample as f64 / RATE as f64;
    let long = end.saturating_sub(start) > LEAST_SPEECH;
    long.then(|| Segment { start: seconds(start.saturating_sub(AROUND)), end: seconds(padded_end) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(probabilities: &[(f32, usize)], samples: usize) -> Vec<Segment> {
        let mut segments = Segments::default();
        let all = probabilities.iter().flat_map(|(p, times)| std::iter::repeat_n(*p, *times));
        let mut found: Vec<Segment> = all.filter_map(|p| segments.next(p)).collect();
        found.extend(segments.finish(samples));
        found
    }

    #[test]
    fn speech_begins_and_ends_at_its_thresholds() {
        // 10 chunks are 0.32 s, 5 are 0.16 s.
        let speech = found(&[(0.1, 10), (0.9, 10), (0.1, 10)], 30 * CHUNK);
        assert_eq!(speech, [Segment { start: 0.29, end: 0.67 }]);
        // What is neither speech nor silence changes nothing.
        assert_eq!(
            found(&[(0.1, 10), (0.9, 9), (0.4, 1), (0.1, 10)], 30 * CHUNK),
            [Segment { start: 0.29, end: 0.67 }]
        );
        assert_eq!(
            found(&[(0.9, 10), (0.3, 2), (0.9, 10)], 22 * CHUNK),
            [Segment { start: 0.0, end: 0.704 }]
        );
    }

    #[test]
    fn short_speech_is_none() {
        assert_eq!(found(&[(0.1, 10), (0.9, 5), (0.1, 10)], 25 * CHUNK), []);
        assert_eq!(found(&[(0.1, 10), (0.9, 5)], 15 * CHUNK), []);
        assert_eq!(found(&[], 0), []);
    }

    #[test]
    fn the_end_of_the_recording_ends_speech() {
        let speech = found(&[(0.1, 10), (0.9, 10)], 20 * CHUNK - 320);
        assert_eq!(speech, [Segment { start: 0.29, end: 0.62 }]);
    }
}
