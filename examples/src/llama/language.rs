//! How a model reads and writes.

use crate::{
    Error, Result,
    chat::{Message, Template},
    checkpoint::Checkpoint,
    tokenizer::ChatTokenizer,
};

/// How a model reads and writes: tokenizer, chat template, and how much it can read.
pub struct Language {
    /// Text to ids and back.
    pub tokenizer: ChatTokenizer,
    template: Template,
    context: usize,
}

impl Language {
    /// What the model's files say about it.
    ///
    /// # Errors
    /// If they are not those of a complete chat model of a family that is computed.
    pub fn of(files: &impl Checkpoint) -> Result<Self> {
        let context = files.config()?.context;
        let tokenizer = files.tokenizer()?;
        let template = files.template(&tokenizer)?;
        Ok(Self { tokenizer, template, context })
    }

    /// The ids of a conversation that starts with this message of the user.
    ///
    /// # Errors
    /// [`Error::PromptTooLong`] if the context has no room for it and one token of the answer.
    pub fn prompt(&self, message: &str) -> Result<Vec<u32>> {
        let ids = self.tokenizer.encode(&self.template.render(&[Message::user(message)])?)?;
        if ids.is_empty() {
            return Err(Error::Template { reason: "it turns the prompt into nothing".into() });
        }
        if ids.len() >= self.context {
            return Err(Error::PromptTooLong { prompt: ids.len(), context: self.context });
        }
        Ok(ids)
    }
}
