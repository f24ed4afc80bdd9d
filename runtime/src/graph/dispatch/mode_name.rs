//! Modes by their names.

use std::str::FromStr;

use crate::{Error, base::mode::Mode};

impl FromStr for Mode {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|mode| mode.to_string() == s).ok_or_else(|| Error::Config {
            what: format!("mode `{s}`"),
            reason:
                "there is no such mode; choose none, piecewise, full, full-decode-only or full-and-piecewise"
                    .into(),
        })
    }
}
