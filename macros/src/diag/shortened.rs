//! Code as text.

use quote::ToTokens;

/// Tokens as one line, as people write them.
pub(crate) fn on_one_line(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (spaced, tight) in [
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" ,", ","),
        (" . ", "."),
        ("& ", "&"),
        (" ?", "?"),
        (" :: ", "::"),
    ] {
        text = text.replace(spaced, tight);
    }
    text
}

/// Tokens as one short line, for the plan.
pub(crate) fn shortened(tokens: &impl ToTokens) -> String {
    let mut text = on_one_line(tokens);
    if text.chars().count() > 60 {
        text = text.chars().take(57).chain("...".chars()).collect();
    }
    text
}
