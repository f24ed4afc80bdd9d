//! Chat templates: from messages to the text that a model was trained on.

mod budget;
mod clock;
mod operations;
mod program;
mod python;

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use minijinja::{
    AutoEscape, Environment, ErrorKind, Value, context,
    machinery::{Vm, make_string_output},
};
use serde::Serialize;

use self::budget::{Budget, STEPS};
use crate::{Error, Result, checkpoint::json, gguf::Gguf, tokenizer::ChatTokenizer};

/// The stack of a rendering: far more than the deepest template that [`program::checked`] lets through takes.
const STACK: usize = 256 << 20;
/// The time of a rendering, which takes milliseconds.
const TIME: Duration = Duration::from_secs(20);

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A turn of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: "user".into(), content: content.into() }
    }
}

/// How a model wants a conversation written down.
#[derive(Clone, Debug)]
pub struct Template {
    source: String,
    bos: String,
    eos: String,
}

impl Template {
    /// The template that comes with a model.
    ///
    /// # Errors
    /// If the file has none, or one that is too large.
    pub fn from_gguf(file: &Gguf, tokenizer: &ChatTokenizer) -> Result<Self> {
        let source = file.str("tokenizer.chat_template").map_err(|_| Error::Model {
            what: "chat template".into(),
            reason: "the file has none (`tokenizer.chat_template`), so it is not a chat model".into(),
            help: "use an instruction-tuned model".into(),
        })?;
        Self::of(source, tokenizer)
    }

    /// The template of a Hugging Face folder: `chat_template.jinja`, or what `tokenizer_config.json` has, which is a text, or
    /// several with names, of which `default` is taken.
    ///
    /// # Errors
    /// If the folder has none, or one that is too large, or the file cannot be read.
    pub fn from_folder(folder: &Path, tokenizer: &ChatTokenizer) -> Result<Self> {
        let source = source(folder)?.ok_or_else(|| Error::Model {
            what: "chat template".into(),
            reason:
                "the folder has none (`chat_template.jinja`, or `chat_template` in `tokenizer_config.json`)"
                    .into(),
            help: "use an instruction-tuned model, or fetch these files as well".into(),
        })?;
        Self::of(&source, tokenizer)
    }

    /// The template of a model, refused at once if it is too large.
    fn of(source: &str, tokenizer: &ChatTokenizer) -> Result<Self> {
        program::checked(source).map_err(|e| unusable(e.to_string()))?;
        Ok(Self::new(source, tokenizer.bos_name().unwrap_or(""), tokenizer.eos_name()))
    }

    /// A template in Jinja, with the names of the tokens that start a text and end an answer.
    pub fn new(source: &str, bos: &str, eos: &str) -> Self {
        Self { source: source.into(), bos: bos.into(), eos: eos.into() }
    }

    /// Writes messages down, up to where the assistant speaks. A system prompt that the template adds
    /// by default stays in. A template is a program that comes with a model: it has a limited number of steps
    /// and bytes, and a stack and some seconds of its own.
    ///
    /// # Errors
    /// If the template is broken, refuses the messages, or takes more than it may.
    pub fn render(&self, messages: &[Message]) -> Result<String> {
        let budget = Budget::new();
        let (template, messages, paid) = (self.clone(), messages.to_vec(), budget.clone());
        let (send, receive) = mpsc::channel();
        let work = move || {
            // Whoever waited may be gone.
            let _ = send.send(template.rendered(&messages, &paid));
        };
        let thread = thread::Builder::new().name("chat template".into()).stack_size(STACK);
        thread.spawn(work).map_err(|e| unusable(format!("its thread cannot be started: {e}")))?;
        match receive.recv_timeout(TIME) {
            Ok(rendered) => rendered.map_err(|e| unusable(e.to_string())),
            Err(RecvTimeoutError::Timeout) => {
                budget.cancel();
                Err(unusable(format!("it takes more than {} s", TIME.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(unusable("the template engine panicked".into())),
        }
    }

    /// [`render`](Self::render), on the thread that it is called on.
    fn rendered(&self, messages: &[Message], budget: &Arc<Budget>) -> Result<String, minijinja::Error> {
        let source = program::checked(&self.source)?;
        let mut env = Environment::new();
        env.set_fuel(Some(STEPS));
        operations::install(&mut env, budget);
        let instructions = program::compile(&source)?;
        let none = Value::from(());
        let context = context! {
            messages, bos_token => self.bos, eos_token => self.eos, add_generation_prompt => true,
            tools => none, documents => none,
        };
        let mut text = String::new();
        let blocks = BTreeMap::new();
        let mut output = make_string_output(&mut text);
        let end = Vm::new(&env).eval(&instructions, context, &blocks, &mut output, AutoEscape::None);
        end.map_err(|e| match e.kind() {
            ErrorKind::OutOfFuel => budget::invalid(format!("it takes more than {STEPS} steps")),
            _ => e,
        })?;
        Ok(text)
    }
}

/// The error of a template that gives no text.
fn unusable(reason: String) -> Error {
    Error::Template { reason }
}

/// The text of the template of a folder, if it has one.
pub(crate) fn source(folder: &Path) -> Result<Option<String>> {
    let file = folder.join("chat_template.jinja");
    match std::fs::read_to_string(&file) {
        Ok(source) => Ok(Some(source)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let settings = json(&folder.join("tokenizer_config.json"))?.unwrap_or_default();
            let given = &settings["chat_template"];
            let default = given.as_array().into_iter().flatten().find(|one| one["name"] == "default");
            Ok(given.as_str().or_else(|| default?["template"].as_str()).map(str::to_owned))
        }
        Err(e) => Err(Error::io(&file, "read", &e)),
    }
}

#[cfg(test)]
mod tests;
