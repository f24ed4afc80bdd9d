//! Chat templates: from messages to the text that a model was trained on.

use std::{io, path::Path};

use minijinja::{Environment, ErrorKind, context};
use serde::Serialize;

use crate::{Error, Result, checkpoint::json, gguf::Gguf, tokenizer::ChatTokenizer};

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
    /// If the file has none.
    pub fn from_gguf(file: &Gguf, tokenizer: &ChatTokenizer) -> Result<Self> {
        let source = file.str("tokenizer.chat_template").map_err(|_| Error::Model {
            what: "chat template".into(),
            reason: "the file has none (`tokenizer.chat_template`), so it is not a chat model".into(),
            help: "use an instruction-tuned model".into(),
        })?;
        Ok(Self::new(source, tokenizer.bos_name().unwrap_or(""), tokenizer.eos_name()))
    }

    /// The template of a Hugging Face folder: `chat_template.jinja`, or what `tokenizer_config.json` has, which is a text, or
    /// several with names, of which `default` is taken.
    ///
    /// # Errors
    /// If the folder has none, or the file cannot be read.
    pub fn from_folder(folder: &Path, tokenizer: &ChatTokenizer) -> Result<Self> {
        let source = source(folder)?.ok_or_else(|| Error::Model {
            what: "chat template".into(),
            reason:
                "the folder has none (`chat_template.jinja`, or `chat_template` in `tokenizer_config.json`)"
                    .into(),
            help: "use an instruction-tuned model, or fetch these files as well".into(),
        })?;
        Ok(Self::new(&source, tokenizer.bos_name().unwrap_or(""), tokenizer.eos_name()))
    }

    /// A template in Jinja, with the names of the tokens that start a text and end an answer.
    pub fn new(source: &str, bos: &str, eos: &str) -> Self {
        Self { source: source.into(), bos: bos.into(), eos: eos.into() }
    }

    /// Writes messages down, up to where the assistant speaks. A system prompt that the template adds
    /// by default stays in.
    ///
    /// # Errors
    /// If the template is broken, or refuses the messages.
    pub fn render(&self, messages: &[Message]) -> Result<String> {
        let mut env = Environment::new();
        // What templates are written for.
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        env.set_keep_trailing_newline(true);
        // Methods of Python's strings, lists and dictionaries.
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.add_function("raise_exception", |reason: String| -> Result<String, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, reason))
        });
        let (bos_token, eos_token) = (&self.bos, &self.eos);
        let context = context! { messages, bos_token, eos_token, add_generation_prompt => true };
        env.render_str(&self.source, context).map_err(|e| Error::Template { reason: e.to_string() })
    }
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
mod tests {
    use super::*;

    #[test]
    fn a_template_may_refuse() {
        let refused = Template::new("{{ raise_exception('no system prompt') }}", "", "").render(&[]);
        let Err(Error::Template { reason }) = refused else { panic!("{refused:?}") };
        assert!(reason.contains("no system prompt"), "{reason}");
    }

    #[test]
    fn blocks_leave_no_lines_behind() {
        let template =
            "{% for m in messages %}\n{{ bos_token }}{{ m.role }}: {{ m['content'] }}\n{% endfor %}\n";
        let text = Template::new(template, "<s>", "").render(&[Message::user("hi"), Message::user("there")]);
        assert_eq!(text.unwrap(), "<s>user: hi\n<s>user: there\n");
    }

    #[test]
    fn a_broken_template_is_an_error() {
        for source in ["{% for %}", "{{ x.strip() }}"] {
            assert!(matches!(Template::new(source, "", "").render(&[]), Err(Error::Template { .. })));
        }
    }
}
