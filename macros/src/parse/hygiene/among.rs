//! What an identifier among the tokens of a macro is, as far as the tokens around it show.

use proc_macro2::{Delimiter, Group, Ident, TokenTree};

/// The tokens of a macro that an identifier is among.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Among {
    /// Those between the outermost brackets.
    Arguments,
    /// The parameters of a function.
    Parameters,
    /// The fields of a struct, of a value or a pattern.
    Fields,
    /// Those of another group within, or of the rules of a macro that the function defines.
    Code,
}

/// A token and those around it.
#[derive(Clone, Copy)]
pub(super) struct Around<'t> {
    pub(super) all: &'t [TokenTree],
    pub(super) at: usize,
    pub(super) among: Among,
}

impl<'t> Around<'t> {
    fn token(&self, distance: isize) -> Option<&'t TokenTree> {
        self.all.get(self.at.checked_add_signed(distance)?)
    }

    fn is(&self, distance: isize, c: char) -> bool {
        matches!(self.token(distance), Some(TokenTree::Punct(p)) if p.as_char() == c)
    }

    fn word(&self, distance: isize) -> Option<&'t Ident> {
        match self.token(distance)? {
            TokenTree::Ident(word) => Some(word),
            _ => None,
        }
    }

    fn is_word(&self, distance: isize, words: &[&str]) -> bool {
        self.word(distance).is_some_and(|word| words.iter().any(|w| word == w))
    }

    /// Returns whether the identifier cannot be a variable. Wherever one is bound and wherever it is used, the answer must be
    /// the same: otherwise the use would mean the variable of the other context.
    pub(super) fn is_no_variable(&self) -> bool {
        let is_member = self.is(-1, '.') && !self.is(-2, '.');
        let is_in_path =
            self.is(-1, ':') && self.is(-2, ':') || self.is(1, ':') && self.is(2, ':') && !self.is(3, ':');
        let is_lifetime = self.is(-1, '\'') || self.is(-1, '$');
        let is_call = self.is(1, '!') && !self.is(2, '=');
        // `name = value` of a format string; a statement may assign a variable, and an arm `a => …` binds one.
        let has_value = self.is(1, '=') && !self.is(2, '=') && !self.is(2, '>');
        let is_name = has_value && (self.is(-1, ',') || self.at == 0 && self.among == Among::Arguments);
        is_member || is_in_path || is_lifetime || self.is_field() || is_call || is_name
    }

    /// `a: …` where that binds no variable.
    fn is_field(&self) -> bool {
        // `|a: usize|`.
        let bars =
            (0..self.at).filter(|at| matches!(&self.all[*at], TokenTree::Punct(p) if p.as_char() == '|'));
        let is_declared = self.is_word(-1, &["let", "mut"]) || self.among == Among::Parameters;
        self.is(1, ':') && !is_declared && bars.count() % 2 == 0
    }

    /// `'a` of `break 'a`, `continue 'a`, and `'a: loop`.
    pub(super) fn is_label(&self) -> bool {
        let is_block =
            matches!(self.token(2), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Brace);
        let begins = self.is(1, ':') && (is_block || self.is_word(2, &["loop", "while", "for"]));
        self.is(-1, '\'') && (begins || self.is_word(-2, &["break", "continue"]))
    }

    /// `a` of `S { a }` or `S { ref mut a }`, if the token is the first one of it.
    pub(super) fn short_field(&self) -> Option<&'t Ident> {
        let is_first = self.at == 0 || self.is(-1, ',');
        if self.among != Among::Fields || !is_first {
            return None;
        }
        let name = (0..3).find(|at| !self.is_word(*at, &["ref", "mut"]))?;
        let is_short = self.token(name + 1).is_none() || self.is(name + 1, ',');
        self.word(name).filter(|_| is_short)
    }

    /// What the tokens of a group are.
    pub(super) fn inside(&self, group: &Group) -> Among {
        match group.delimiter() {
            Delimiter::Parenthesis if self.follows_function() => Among::Parameters,
            Delimiter::Brace if self.follows_struct() => Among::Fields,
            _ => Among::Code,
        }
    }

    /// Returns whether `fn f` or `fn f<…>` is before the token, or `fn`.
    fn follows_function(&self) -> bool {
        if !self.is(-1, '>') {
            return self.is_word(-1, &["fn"]) || self.word(-1).is_some() && self.is_word(-2, &["fn"]);
        }
        let mut before = self.all[..self.at].iter().rev().take_while(|token| !ends_statement(token));
        before.any(|token| matches!(token, TokenTree::Ident(word) if word == "fn"))
    }

    /// Returns whether the name of a struct is before the token, of which it has the fields.
    fn follows_struct(&self) -> bool {
        let is_type = |word: &Ident| word.to_string().starts_with(char::is_uppercase);
        if !self.word(-1).is_some_and(is_type)
            || self.is_word(-2, &["struct", "enum", "union", "trait", "impl"])
        {
            return false;
        }
        // A block follows a condition, and the result's type of a function.
        let mut is_value = false;
        for at in (0..self.at).rev() {
            let before = Self { at, ..*self };
            match &self.all[at] {
                token if ends_statement(token) => return true,
                TokenTree::Punct(p) if p.as_char() == ',' => return true,
                TokenTree::Punct(p) if p.as_char() == '>' => match before {
                    before if before.is(-1, '=') => return true,
                    before if before.is(-1, '-') => return false,
                    _ => {}
                },
                TokenTree::Punct(p) if p.as_char() == '=' => is_value = true,
                TokenTree::Ident(word) if word == "let" && !is_value => return true,
                TokenTree::Ident(word)
                    if ["if", "while", "match", "in", "where"].iter().any(|w| word == w) =>
                {
                    return false;
                }
                _ => {}
            }
        }
        true
    }
}

fn ends_statement(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(p) => p.as_char() == ';',
        TokenTree::Group(g) => g.delimiter() == Delimiter::Brace,
        _ => false,
    }
}
