//! The macros over what bytes stand for, as `macro-tests/tests/fuzz` has it: no panic, no hang, and
//! whatever comes out is Rust with errors that help.

#![no_main]

use std::{cell::RefCell, path::Path};

use libfuzzer_sys::{Corpus, fuzz_target};

#[path = "../../macro-tests/tests/fuzz/check.rs"]
mod check;
#[path = "../../macro-tests/tests/fuzz/input/mod.rs"]
mod input;

thread_local! {
    static INPUTS: input::Inputs = input::Inputs::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    /// What is being expanded: bytes alone say nothing without the seeds of their day.
    static CURRENT: RefCell<String> = const { RefCell::new(String::new()) };
}

fuzz_target!(
    init: {
        assert!(INPUTS.with(|i| i.seeds().len()) >= 100, "the repository's programs are not there");
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            CURRENT.with_borrow(|what| eprintln!("the input: {what}"));
            abort(info);
        }));
    },
    |bytes: &[u8]| -> Corpus {
        let Some(input) = INPUTS.with(|inputs| inputs.make(bytes)) else {
            return Corpus::Reject;
        };
        CURRENT.with_borrow_mut(|what| *what = input.to_string());
        if let Err(reason) = check::check(&input) {
            panic!("{reason}");
        }
        Corpus::Keep
    }
);
