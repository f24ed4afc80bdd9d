//! Silero's voice detection, version 6, for 16 kHz.

mod model;
mod segments;
mod session;

pub use model::{Detector, HearGraph, hear};
pub use segments::{Segment, Segments};
pub use session::{CHUNK, Listener, Times};
