//! Configurations and batches that cannot be: errors that name cause and remedy.

use graphable::{BatchDescriptor, BatchSizes, Batching, Error, FallbackReason, Mode, Schedule};

use crate::{model::*, support};

fn config(error: Option<Error>, words: &[&str]) {
    let Some(error @ Error::Config { .. }) = error else { panic!("{error:?}") };
    let text = error.to_string();
    words.iter().for_each(|w| assert!(text.contains(w), "{w} in {text}"));
}

#[test]
fn segments_of_an_uncut_function_are_refused() {
    let mut rt = support::runtime();
    let whole = WholeGraph::builder().mode(Mode::FullAndPiecewise).build(&mut rt).err();
    config(whole, &["`whole`: mode full-and-piecewise", "no `#[eager]` boundary cuts", "`Mode::Full`"]);
    // Decodes alone need no cut.
    let graph = WholeGraph::builder().mode(Mode::FullDecodeOnly).bucket("T", Schedule::new([2]));
    let graph = graph.build(&mut rt).unwrap();
    graph.capture_all(&mut rt).unwrap();
    rt.take_events();
    let step = rt.step().unwrap();
    let _scope = step.batch(BatchDescriptor::decode(2));
    graph.call(&step, (&rows(2, 0), &[2, 2])).unwrap();
    assert_eq!(support::events(&step), ["replayed whole"]);
}

#[test]
fn batchings_that_do_not_fit_the_function() {
    let mut rt = support::runtime();
    let sizes = || BatchSizes::up_to_budget(8).sizes([4]);
    let mut refuse = |batching: Batching, words: &[&str]| {
        let builder = UniformGraph::builder().mode(Mode::FullAndPiecewise).batch(batching);
        config(builder.build(&mut rt).err(), words);
    };
    refuse(Batching::of("B"), &["`batch` of `uniform`", "no `#[dims]` symbol `B`; it has T"]);
    refuse(Batching::of("T").requests("R"), &["no `#[dims]` symbol `R`; it has T"]);
    refuse(Batching::default().sizes(sizes()), &["name it in `Batching::of`"]);
    refuse(Batching::of("T").sizes(sizes().max(8)), &["batch sizes", "is 4, and the maximum 8"]);
    refuse(Batching::of("T").query_len(0), &["at least 1"]);
    refuse(
        Batching::of("T").query_len(5).sizes(sizes()),
        &["no multiple of 5 is within the largest size, 4"],
    );
    let twice = UniformGraph::builder().bucket("T", Schedule::new([4]));
    config(twice.batch(Batching::of("T").sizes(sizes())).build(&mut rt).err(), &["T has buckets, too"]);
    // Padded tokens without padded sequences would be no uniform decode.
    let batching = Batching::of("T").requests("R").sizes(sizes());
    let uneven = LastRowsGraph::builder().mode(Mode::FullDecodeOnly).batch(batching).build(&mut rt).err();
    config(uneven, &["`batch` of `last_rows`", "T is padded and R is not", ".bucket(\"R\", ..)"]);
    // Sizes that leave nothing are fine where nothing is captured.
    let none = Batching::of("T").sizes(BatchSizes::up_to_budget(8).sizes([]));
    UniformGraph::builder().mode(Mode::None).batch(none.clone()).build(&mut rt).unwrap();
    config(UniformGraph::builder().batch(none).build(&mut rt).err(), &["use `Mode::None`"]);
}

/// Under `deny_fallback` a pair that comes to another mode is refused at once.
#[test]
fn a_strict_graph_refuses_a_demotion() {
    let mut rt = support::runtime();
    for mode in [Mode::FullDecodeOnly, Mode::FullAndPiecewise] {
        let error = NeverGraph::builder().mode(mode).deny_fallback(true).build(&mut rt).unwrap_err();
        let Error::FallbackForbidden { function: "never", reason } = &error else { panic!("{error:?}") };
        let FallbackReason::FullNotSupported { boundary } = reason else { panic!("{reason:?}") };
        assert!(boundary.contains("model.rs:"), "{boundary}");
        let drafts = Batching::of("T").query_len(2);
        let error =
            SingleGraph::builder().mode(mode).deny_fallback(true).batch(drafts).build(&mut rt).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("supports decodes of one token per sequence, and here a sequence has 2")
        );
    }
}

#[test]
fn batches_that_are_not_those_of_the_call() {
    let mut rt = support::runtime();
    let model = model(&rt);
    let batching = Batching::of("T").requests("R").query_len(2);
    let graph = LastRowsGraph::builder().mode(Mode::FullAndPiecewise).batch(batching).build(&mut rt).unwrap();
    let step = rt.step().unwrap();
    let call = |batch: BatchDescriptor, tokens: usize, requests: usize| {
        let _scope = step.batch(batch);
        let x = rows(tokens, 0);
        graph.call(&step, (&x, &[tokens, 2]), &vec![0u32; requests], &model).map(drop)
    };
    let input = |outcome: Result<(), Error>, name: &str, words: &str| {
        let error = outcome.unwrap_err();
        assert!(
            matches!(&error, Error::Input { function: "last_rows", input, .. } if *input == name),
            "{error:?}"
        );
        assert!(error.to_string().contains(words), "{error}");
    };
    input(
        call(BatchDescriptor::mixed(6), 4, 1),
        "x",
        "T is 4, and the batch that `Step::batch` describes has 6 tokens; describe this one",
    );
    input(
        call(BatchDescriptor::decode(4), 4, 3),
        "last",
        "R is 3, and the batch that `Step::batch` describes has 2",
    );
    input(call(BatchDescriptor::decode(0), 0, 0), "x", "T is 0; there is nothing to do");
    let error = call(BatchDescriptor::decode(3), 3, 1).unwrap_err();
    assert!(matches!(error, Error::Argument { op: "last_rows", .. }), "{error:?}");
    call(BatchDescriptor::decode(4), 4, 2).unwrap();
    call(BatchDescriptor::mixed(4), 4, 3).unwrap();
}
