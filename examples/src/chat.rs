//! Chat templates: from messages to the text that a model was trained on.

use minijinja::{Environment, ErrorKind, context};
use serde::Serialize;

use crate::{Error, Result, gguf::Gguf, tokenizer::ChatTokenizer};

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

/// Renders messages with the template that comes with the model, up to where the assistant speaks.
///
/// A system prompt that the template adds by default stays in. Fails if the file has no template, or
/// one that cannot be rendered.
pub fn render(file: &Gguf, tokenizer: &ChatTokenizer, messages: &[Message]) -> Result<String> {
    let template = file.str("tokenizer.chat_template").map_err(|_| Error::Model {
        what: "chat template".into(),
        why: "the file has none (`tokenizer.chat_template`), so it is no chat model".into(),
        help: "use an instruction-tuned model".into(),
    })?;
    render_template(template, tokenizer.bos_name().unwrap_or(""), tokenizer.eos_name(), messages)
}

/// [`render`], with the template and the names of the special tokens given.
pub fn render_template(template: &str, bos: &str, eos: &str, messages: &[Message]) -> Result<String> {
    let mut env = Environment::new();
    // What templates are written for.
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_keep_trailing_newline(true);
    env.add_function("raise_exception", |why: String| -> Result<String, minijinja::Error> {
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, why))
    });
    let context = context! { messages, add_generation_prompt => true, bos_token => bos, eos_token => eos };
    env.render_str(template, context).map_err(|e| Error::Template { why: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_may_refuse() {
        let refused = render_template("{{ raise_exception('no system prompt') }}", "", "", &[]);
        let Err(Error::Template { why }) = refused else { panic!("{refused:?}") };
        assert!(why.contains("no system prompt"), "{why}");
    }

    #[test]
    fn blocks_leave_no_lines_behind() {
        let template =
            "{% for m in messages %}\n{{ bos_token }}{{ m.role }}: {{ m['content'] }}\n{% endfor %}\n";
        let text = render_template(template, "<s>", "", &[Message::user("hi"), Message::user("there")]);
        assert_eq!(text.unwrap(), "<s>user: hi\n<s>user: there\n");
    }

    #[test]
    fn a_broken_template_is_an_error() {
        assert!(matches!(render_template("{% for %}", "", "", &[]), Err(Error::Template { .. })));
        assert!(matches!(render_template("{{ x.strip() }}", "", "", &[]), Err(Error::Template { .. })));
    }
}
