//! The programs of `docs/guide`, as documentation tests: `cargo test -p graphable-guide`.

macro_rules! pages {
    ($($module:ident: $file:literal;)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../docs/guide/", $file))]
            pub mod $module {}
        )*

        #[cfg(test)]
        const PAGES: &[&str] = &[$($file),*];
    };
}

pages! {
    boundaries: "boundaries.md";
    buckets: "buckets.md";
    control_flow: "control-flow.md";
    cuda: "cuda.md";
    fallbacks: "fallbacks.md";
    first_model: "first-model.md";
    from_candle: "from-candle.md";
    from_pytorch: "from-pytorch.md";
    host_values: "host-values.md";
    models: "models.md";
    numerics: "numerics.md";
    own_kernels: "own-kernels.md";
    passes: "passes.md";
    random: "random.md";
    readme: "README.md";
    serving: "serving.md";
    state: "state.md";
    weights: "weights.md";
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::PAGES;

    fn folder() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide"))
    }

    #[test]
    fn every_page_is_tested() {
        let files = fs::read_dir(folder()).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = files.collect();
        files.sort_by_key(|name| name.to_lowercase());
        assert_eq!(files, PAGES);
    }

    #[test]
    fn every_link_leads_somewhere() {
        for page in PAGES {
            let text = fs::read_to_string(folder().join(page)).unwrap();
            for link in text.split("](").skip(1).map(|l| l.split(')').next().unwrap()) {
                let (file, heading) = link.split_once('#').unwrap_or((link, ""));
                let file = if file.is_empty() { page } else { file };
                let Ok(target) = fs::read_to_string(folder().join(file)) else {
                    panic!("{page} links {link}")
                };
                let anchor = |line: &str| {
                    line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-").replace('`', "")
                };
                let headings = target.lines().filter(|l| l.starts_with('#')).map(anchor);
                assert!(
                    heading.is_empty() || headings.into_iter().any(|h| h == heading),
                    "{page} links {link}"
                );
            }
        }
    }

    /// What the page on small models shows of the examples is what is there.
    #[test]
    fn small_models_are_those_of_the_examples() {
        let page = fs::read_to_string(folder().join("models.md")).unwrap();
        let sources = fs::read_dir(folder().join("../../examples/src/small")).unwrap();
        let sources: Vec<String> = sources.map(|f| fs::read_to_string(f.unwrap().path()).unwrap()).collect();
        let programs = page.split("\n```").skip(1).step_by(2);
        for program in programs {
            let of_examples = program.split("\n\n").filter(|item| {
                let name = item.split_once("fn ").and_then(|(_, rest)| rest.split('(').next());
                name.is_some_and(|name| sources.iter().any(|file| file.contains(&format!("fn {name}("))))
            });
            let mut count = 0;
            for item in of_examples {
                count += 1;
                assert!(
                    sources.iter().any(|file| file.contains(item)),
                    "models.md has another text of\n{item}"
                );
            }
            assert!(count > 0, "models.md has a program without a function of the examples:\n{program}");
        }
    }

    /// Programs are whole: a reader can paste each of them into a file.
    #[test]
    fn every_program_has_a_main() {
        let mut count = 0;
        for page in PAGES {
            let text = fs::read_to_string(folder().join(page)).unwrap();
            for block in text.split("\n```").skip(1).step_by(2).filter(|b| b.starts_with("rust")) {
                count += 1;
                assert!(!block.lines().next().unwrap().contains("ignore"), "{page}: {block}");
                assert!(block.contains("fn main(") || block.contains("compile_fail"), "{page}: {block}");
            }
        }
        assert!(count >= 20, "only {count} programs");
    }
}
