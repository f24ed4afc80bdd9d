//! Eight small models, one file each, with the shapes and operations of well-known families at a size that can be read in a
//! minute. `docs/guide/models.md` goes through them, and the tests of the runtime include these files to compare them with
//! PyTorch.
//!
//! The tests (`runtime/tests/ops/models.rs`) are packaged for machines with a GPU, and a dependency on this crate would bring its
//! tokenizers and archives there for the sake of eight files. So these use nothing but `graphable`, and the tests include them by
//! their path.

pub mod gemma;
pub mod gru;
pub mod mistral;
pub mod mixture;
pub mod t5;
pub mod unet;
pub mod vit;
pub mod whisper;
