//! Random kernels as Rust text, many in one crate, against an interpreter of the generator's own tree: types, branches, loops,
//! calls, several results; rows and their reductions; views at computed indices; states that are written several times, out of
//! range too, by values that may jump; random numbers; broadcasts, strides, numbers as arguments; floats stored as `f32`, `f16`
//! and `bf16`; in some programs, `f64`, `i64` and `i8`. Every bit is equal, NaN being one value.
//!
//! - `GRAPHABLE_KERNEL_PROGRAMS=10000` tries more of them than the default; `GRAPHABLE_KERNEL_FROM=7` begins with seed 7.
//! - `GRAPHABLE_KERNEL_ONE=7` tries one, and prints it.
//! - `GRAPHABLE_KERNEL_ARCH=sm_90a` compiles their text for GPUs as well, by NVRTC.
//! - `GRAPHABLE_KERNEL_BATCH=250` has more of them in one crate than the default.
//! - `GRAPHABLE_KERNEL_KEEP=FOLDER` keeps the program of each crate and what it has to print, for another machine: there
//!   `GRAPHABLE_KERNEL_GPU=1 ./0 | diff - 0.expected` runs the kernels from seed 0 on a GPU. These call no function that
//!   devices compute differently.

#[path = "../common/rustc.rs"]
mod rustc;

mod generate;
mod interpret;
mod program;
mod render;
mod values;

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use graphable::{bf16, f16};

use interpret::Written;
use program::{Argument, IndexParts, Program, RowParts, Ty, Value};

/// Programs of every run, and in one crate.
const SHORT: u64 = 50;
const BATCH: u64 = 50;

fn number(name: &str) -> Option<u64> {
    env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")))
}

/// A value as it is after it was stored.
fn stored(program: &Program, value: Value) -> Value {
    match (value, program.float) {
        (Value::F32(v), "f16") => Value::F32(f16::from_f32(v).to_f32()),
        (Value::F32(v), "bf16") => Value::F32(bf16::from_f32(v).to_f32()),
        (value, _) => value,
    }
}

/// The bits of every result, worked out element by element.
fn expected(program: &Program) -> Vec<Vec<u64>> {
    let last = program.last();
    let count: usize = program.shape.iter().product();
    let mut results = vec![Vec::with_capacity(count); last.outputs.len()];
    for at in 0..count {
        let mut place = vec![0; program.shape.len()];
        let mut rest = at;
        for (to, size) in place.iter_mut().zip(&program.shape).rev() {
            *to = rest % size;
            rest /= size;
        }
        if let Some(row) = &last.row {
            let inputs: Vec<Vec<Value>> =
                (0..last.inputs).map(|i| row_input(program, row, i, &place)).collect();
            for (to, values) in results.iter_mut().zip(interpret::row_results(program, &inputs, at as u64)) {
                to.extend(values.into_iter().map(|value| stored(program, value).bits()));
            }
            continue;
        }
        let inputs: Vec<Value> = match &last.index {
            Some(index) => index_inputs(program, index, &place),
            None => (0..last.inputs).map(|i| input(program, i, &place)).collect(),
        };
        let (values, before) = interpret::results(program, program.functions.len() - 1, &inputs, at as u64);
        if let Some(sizes) = last.index.as_ref().and_then(|index| index.state.as_ref()) {
            written(program, sizes, (&values, before), &mut results);
            continue;
        }
        for (to, value) in results.iter_mut().zip(values) {
            to.push(stored(program, value).bits());
        }
    }
    results
}

/// Writes what an element writes: what it ends with, or its last write before that. The results are the state, and whether some
/// write was out of range.
fn written(
    program: &Program,
    sizes: &[usize],
    (values, before): (&[Value], Written),
    results: &mut Vec<Vec<u64>>,
) {
    results.truncate(2);
    results[0].resize(sizes.iter().product(), 0);
    results[1].resize(1, 0);
    results[1][0] |= u64::from(before.beyond);
    let last = match values {
        [Value::Bool(true), index @ .., value] => {
            let place = index.iter().zip(sizes).fold(0, |place, (part, size)| {
                let Value::I32(part) = part else { panic!("{part:?}") };
                place * size + part.rem_euclid(*size as i32) as usize
            });
            Some((place, *value))
        }
        _ => before.last,
    };
    if let Some((place, value)) = last {
        results[0][place] = stored(program, value).bits();
    }
}

/// What the parameters of a kernel of indices are that are values, and the index; views are read by their places.
fn index_inputs(program: &Program, index: &IndexParts, place: &[usize]) -> Vec<Value> {
    let values = (0..program.last().inputs).map(|i| match index.views.contains(&i) {
        true => Value::Bool(false),
        false => match &program.arguments[i] {
            Argument::Number(_) => input(program, i, place),
            Argument::Tensor(view) => {
                let ty = program.last().variables[i];
                let bits = values::bits(program.seed, i, view.element(&vec![0; view.axes.len()]), ty.name());
                stored(program, Value::of(ty, bits))
            }
        },
    });
    values.chain(place.iter().map(|at| Value::I32(*at as i32))).collect()
}

/// What a parameter of a kernel of rows is for one row: its values, or one.
fn row_input(program: &Program, row: &RowParts, parameter: usize, place: &[usize]) -> Vec<Value> {
    let (ty, argument) = (program.last().variables[parameter], &program.arguments[parameter]);
    let Argument::Tensor(view) = argument else { return vec![input(program, parameter, place)] };
    if !row.rows.contains(&parameter) {
        return vec![input(program, parameter, place)];
    }
    let mut lead = view.shown();
    let axis = lead.len() - row.back.unwrap_or(1);
    lead.remove(axis);
    let own = &place[place.len() - lead.len()..];
    let own: Vec<usize> = own.iter().zip(&lead).map(|(at, size)| if *size == 1 { 0 } else { *at }).collect();
    let values = (0..program.size).map(|i| {
        let mut place = own.clone();
        place.insert(axis, i);
        let bits = values::bits(program.seed, parameter, view.element(&place), ty.name());
        stored(program, Value::of(ty, bits))
    });
    values.collect()
}

/// What a parameter is at a place of the output.
fn input(program: &Program, parameter: usize, place: &[usize]) -> Value {
    let ty = program.last().variables[parameter];
    match &program.arguments[parameter] {
        Argument::Number(bits) => Value::of(ty, *bits),
        Argument::Tensor(view) => {
            let shown = view.shown();
            let own = &place[place.len() - shown.len()..];
            let own: Vec<usize> =
                own.iter().zip(&shown).map(|(at, size)| if *size == 1 { 0 } else { *at }).collect();
            let bits = values::bits(program.seed, parameter, view.element(&own), ty.name());
            stored(program, Value::of(ty, bits))
        }
    }
}

/// The crate: its arguments are architectures to compile for.
fn text(programs: &[Program]) -> String {
    let mut text = include_str!("template.rs").to_owned();
    text += include_str!("values.rs");
    programs.iter().for_each(|program| text += &render::module(program));
    text += "fn main() {\nlet mut rt = Runtime::new(device()).unwrap();\n";
    for program in programs {
        let _ = writeln!(text, "p{}::run(&mut rt).unwrap();", program.seed);
    }
    text += "for arch in std::env::args().skip(1) {\n";
    for program in programs {
        let (seed, name, float) = (program.seed, &program.last().name, program.float);
        let _ = writeln!(text, "compile::<p{seed}::{name}, {float}>({seed}, &arch);");
    }
    text + "}\n}\n"
}

/// Keeps a crate's program and what it has to print.
fn keep(folder: &Path, binary: &Path, programs: &[Program]) {
    let mut text = String::new();
    for program in programs {
        let lines = expected(program).into_iter().enumerate().map(|(i, bits)| {
            let bits: Vec<String> = bits.iter().map(|bits| format!("{bits:x}")).collect();
            format!("{} {i} {}\n", program.seed, bits.join(" "))
        });
        // Whether a write was out of range is known, and printed, before the state is read.
        let writes = program.last().index.as_ref().is_some_and(|index| index.state.is_some());
        text.extend::<Vec<String>>(if writes { lines.rev().collect() } else { lines.collect() });
    }
    fs::create_dir_all(folder).expect("a folder to keep the programs in");
    let first = programs[0].seed.to_string();
    fs::copy(binary, folder.join(&first)).expect("the program is kept");
    fs::write(folder.join(first + ".expected"), text).expect("what it prints is kept");
}

/// Compiles and runs the programs; what is wrong with them.
fn run(programs: &[Program], failures: &mut String) -> usize {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernel_programs");
    fs::create_dir_all(&folder).expect("a folder for the programs");
    let (source, binary) = (folder.join("programs.rs"), folder.join("programs"));
    fs::write(&source, text(programs)).expect("the programs are written");
    let errors = rustc::compile(&source, &binary, "link");
    if !errors.is_empty() {
        for error in errors {
            let _ = writeln!(failures, "{} at {:?} of {}", error.message, error.lines, source.display());
        }
        return 0;
    }
    if let Some(folder) = env::var_os("GRAPHABLE_KERNEL_KEEP") {
        keep(Path::new(&folder), &binary, programs);
    }
    let mut command = Command::new(&binary);
    let arch = env::var("GRAPHABLE_KERNEL_ARCH").ok();
    let output = command.args(&arch).output().expect("the programs run");
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let _ = writeln!(failures, "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let mut got: BTreeMap<(u64, usize), Vec<u64>> = BTreeMap::new();
    for line in said.lines() {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
        let key = (number(), number() as usize);
        got.insert(key, words.map(|word| u64::from_str_radix(word, 16).expect("bits")).collect());
    }
    let mut right = 0;
    for program in programs {
        let want = expected(program);
        let all: Vec<Vec<u64>> =
            (0..want.len()).map(|i| got.remove(&(program.seed, i)).unwrap_or_default()).collect();
        if all == want {
            right += 1;
        } else {
            let _ = writeln!(
                failures,
                "seed {}: {}\n{}",
                program.seed,
                difference(&want, &all),
                render::module(program)
            );
        }
    }
    right
}

fn difference(want: &[Vec<u64>], got: &[Vec<u64>]) -> String {
    for (k, (want, got)) in want.iter().zip(got).enumerate() {
        for (i, want) in want.iter().enumerate() {
            if got.get(i) != Some(want) {
                return format!("result {k}, element {i}: {:x?} instead of {want:x}", got.get(i));
            }
        }
    }
    "another number of elements".to_owned()
}

#[test]
fn kernels_compute_what_they_mean() {
    let one = number("GRAPHABLE_KERNEL_ONE");
    let from = one.or_else(|| number("GRAPHABLE_KERNEL_FROM")).unwrap_or(0);
    let count = one.map(|_| 1).or_else(|| number("GRAPHABLE_KERNEL_PROGRAMS")).unwrap_or(SHORT);
    let exact = env::var_os("GRAPHABLE_KERNEL_KEEP").is_some();
    let batch = number("GRAPHABLE_KERNEL_BATCH").unwrap_or(BATCH).max(1);
    let (mut failures, mut right) = (String::new(), 0);
    let (mut of_indices, mut of_rows) = (0, 0);
    for start in (from..from + count).step_by(batch as usize) {
        let programs: Vec<Program> =
            (start..(start + batch).min(from + count)).map(|seed| generate::program(seed, exact)).collect();
        of_indices += programs.iter().filter(|program| program.last().index.is_some()).count();
        of_rows += programs.iter().filter(|program| program.last().row.is_some()).count();
        if one.is_some() {
            println!("{}", render::module(&programs[0]));
        }
        right += run(&programs, &mut failures);
    }
    println!(
        "{right} of {count} kernels are right, every bit; {of_indices} of them of indices, {of_rows} of rows"
    );
    assert!(failures.is_empty(), "{failures}");
    assert_eq!(right as u64, count);
}

#[test]
fn the_generator_uses_the_whole_language() {
    let texts: String = (0..200).map(|seed| render::module(&generate::program(seed, false))).collect();
    for part in [
        "match ",
        "'l0: for",
        ".rev()",
        "break 'l",
        "continue",
        "return",
        "else",
        "as u8",
        "as i8",
        "as i64",
        "as f64",
        "f64::from(",
        "i64::from(",
        "let (",
        "<<=",
        "%=",
        "f16",
        "powi",
        "#[kernel(rows)]",
        "#[kernel(reduce)]",
        ".zip(",
        ".enumerate()",
        ".fold(",
        ".sum()",
        ".max()",
        ".argmin()",
        ".count(",
        ".at(",
        ".len()",
        "#[kernel(index)]",
        ".at_or([",
        ".dim(",
        "&mut View<",
        "state.set([",
        "step.scope()",
        "Random",
        ".uniform()",
        ".more_bits()",
        ".below(",
        "asinh",
        "super::THIRD",
        "super::FAR",
    ] {
        assert!(texts.contains(part), "no `{part}`");
    }
    let writing = || (0..1000).filter(|seed| seed % 10 == 4).map(|seed| generate::program(seed, false));
    let writes = |program: &Program| render::module(program).matches("state.set([").count();
    assert!(writing().filter(|program| writes(program) > 1).count() >= 5, "no second write");
    for jump in ["{ continue } else", "{ break } else", "{ return } else"] {
        assert!(writing().any(|program| render::module(&program).contains(jump)), "no `{jump}`");
    }
    assert!(writing().any(|program| expected(&program)[1] == [1]), "no write out of range");
    assert!(writing().any(|program| expected(&program)[1] == [0]), "no write within");
    assert!((0..200).any(|seed| {
        generate::program(seed, false).arguments.iter().any(|a| matches!(a, Argument::Number(_)))
    }));
    for form in ["-> {}", "p0: {}", "Row<{}>", "View<{},"] {
        let missing = |ty: &&Ty| !texts.contains(&form.replace("{}", ty.name()));
        assert_eq!(Ty::ALL.iter().find(missing), None, "{form}");
    }
    let further = |seed| generate::program(seed, false).has_further_types();
    assert!((0..60).any(|seed| !further(seed)) && (0..60).any(further));
}
