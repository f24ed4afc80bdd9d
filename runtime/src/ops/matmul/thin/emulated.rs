//! The text of products with weights in blocks, run on the CPU: what its tricks with bits mean is checked where there is no GPU.
//!
//! A C++ compiler takes the text as it is but for instructions of a GPU, which become functions with their meaning (`emulated/block.hpp`).

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    thread,
};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use crate::{
    BlockFormat, bf16, f16,
    quantized::{testing, tiles},
};

/// Columns of a product: six tiles, of which a kernel computes two at a time.
const COLUMNS: usize = 48;

/// The beginnings of instructions in the text, and what stands for them.
const INSTRUCTIONS: [(&str, &str); 7] = [
    (r#"asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32"#, "memcpy(to, from, 16);"),
    (r#"asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u32"#, "memcpy(to, from, 8);"),
    (r#"asm volatile("ld.global.L1::no_allocate.L2::128B.u32"#, "memcpy(&to, from, 4);"),
    (r#"asm volatile("ld.global.L1::no_allocate.L2::128B.u16"#, "to = 0; memcpy(&to, from, 2);"),
    (r#"asm("sub.f16x2"#, "pair = emulated::multiply_add<f16>(zero * 0x10001u, 0xbc00bc00u, pair);"),
    (r#"asm("fma.rn.f16x2"#, "r = emulated::multiply_add<f16>(a, b, c);"),
    (r#"asm("fma.rn.bf16x2"#, "r = emulated::multiply_add<bf16>(a, b, c);"),
];

/// The kernels' text for the program.
fn text() -> String {
    let expand = include_str!("../../quantized/quantized.cu");
    let begins = "template <class F, class R> DEVICE Raw<sizeof(T) * 4> values";
    let (_, expand) = expand.split_once(begins).unwrap();
    let (expand, _) = expand.split_once("struct RowsParams").unwrap();
    let mut text = [include_str!("../../quantized/blocks.cuh"), include_str!("../thin_blocks.cuh")].concat();
    for ty in ["f32", "f16", "bf16"] {
        text += &format!("#define T {ty}\nnamespace as_{ty} {{\n{begins}{expand}}}\n#undef T\n");
    }
    for (begins, instead) in INSTRUCTIONS {
        let from = text.find(begins).unwrap_or_else(|| panic!("no instruction begins with {begins}"));
        let to = from + text[from..].find(");\n").unwrap() + 2;
        text.replace_range(from..to, instead);
    }
    text
}

/// The program's files, which end with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compiles the program; `None` without a compiler, which is said where captured output does not hide it.
fn compiled() -> Option<(Folder, PathBuf)> {
    let folder = Folder(env::temp_dir().join(format!("graphable-emulated-{}", process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    let files: [(&str, &str); 3] = [
        ("block.hpp", include_str!("emulated/block.hpp")),
        ("main.cpp", include_str!("emulated/main.cpp")),
        ("text.hpp", &text()),
    ];
    for (name, text) in files {
        fs::write(folder.0.join(name), text).unwrap();
    }
    let program = folder.0.join("emulated");
    let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(&compiler);
    // Its warnings are about pragmas of the other compiler.
    command.args(["-std=c++17", "-O1", "-ffp-contract=off", "-w", "-o"]).arg(&program);
    match command.arg(folder.0.join("main.cpp")).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let _ = writeln!(
                io::stderr(),
                "GPU tests: skipped the emulation of kernels: no {}",
                compiler.display()
            );
            None
        }
        Err(error) => panic!("{}: {error}", compiler.display()),
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some((folder, program))
        }
    }
}

/// What a kernel is given, and what it must return.
struct Case {
    name: String,
    input: Vec<u8>,
    /// Each value, and what it may be off by: nothing, if only its bits are right.
    expected: Vec<(f64, f64)>,
    /// The first of values of the case before that have the same bits, if there are some.
    same: Option<usize>,
}

/// Random weights in a format, as a GPU has them and as they are.
struct Weights {
    format: BlockFormat,
    k: usize,
    tiles: Vec<u8>,
    values: Vec<f32>,
    sizes: Vec<f64>,
}

impl Weights {
    fn new(rng: &mut StdRng, format: BlockFormat) -> Self {
        let k = format.elements() * rng.random_range(1..=1280 / format.elements());
        let blocks = testing::blocks(rng, format, COLUMNS * k / format.elements());
        let mut values = vec![0.0; COLUMNS * k];
        format.dequantize(&blocks, &mut values).unwrap();
        let tiles = tiles::arrange(format, [COLUMNS, k], &blocks).unwrap();
        Self { format, k, tiles, sizes: testing::sizes(format, &blocks), values }
    }

    fn case(&self, kind: &str, m: usize, activations: &[u8], expected: Vec<(f64, f64)>) -> Case {
        let Self { format, k, tiles, .. } = self;
        let line = format!("{format} {kind} {m} {k} {} {}\n", tiles.len(), activations.len());
        let input = [line.as_bytes(), tiles, activations].concat();
        Case { name: format!("{format} {kind}, {m} rows of {k}"), input, expected, same: None }
    }

    /// The values themselves, bit for bit.
    fn values(&self) -> Case {
        self.case("values 0", 0, &[], self.values.iter().map(|v| (f64::from(*v), 0.0)).collect())
    }

    /// The first rows, as floats of each type, and zeros behind them.
    fn expanded(&self, rng: &mut StdRng) -> [Case; 3] {
        let rows = rng.random_range(1..=COLUMNS);
        ["f32", "f16", "bf16"].map(|ty| {
            let round = |v: f32| match ty {
                "f32" => v,
                "f16" => f16::from_f32(v).to_f32(),
                _ => bf16::from_f32(v).to_f32(),
            };
            let values = self.values[..rows * self.k].iter().map(|v| (f64::from(round(*v)), 0.0));
            let expected = values.chain(vec![(0.0, 0.0); self.k]).collect();
            self.case(&format!("expanded_{ty} 0"), rows, &[], expected)
        })
    }

    /// A product by a kernel of up to `most` rows, and of its last row by that of one.
    fn products(&self, rng: &mut StdRng, ty: &str, most: usize) -> [Case; 2] {
        let (k, m) = (self.k, rng.random_range(1..=most));
        let x: Vec<f32> = (0..m * k).map(|_| rng.random_range(-2.0..2.0)).collect();
        let halves = |bits: &dyn Fn(f32) -> u16, back: &dyn Fn(u16) -> f32| {
            let bits: Vec<u16> = x.iter().map(|x| bits(*x)).collect();
            let values = bits.iter().map(|bits| f64::from(back(*bits))).collect();
            (bits.iter().flat_map(|bits| bits.to_le_bytes()).collect(), values)
        };
        let (bytes, x): (Vec<u8>, Vec<f64>) = match ty {
            "f32" => {
                (x.iter().flat_map(|x| x.to_le_bytes()).collect(), x.iter().map(|x| f64::from(*x)).collect())
            }
            "f16" => halves(&|x| f16::from_f32(x).to_bits(), &|x| f16::from_bits(x).to_f32()),
            _ => halves(&|x| bf16::from_f32(x).to_bits(), &|x| bf16::from_bits(x).to_f32()),
        };
        let expected: Vec<(f64, f64)> = (0..m * COLUMNS)
            .map(|i| {
                let (row, column) = (&x[i / COLUMNS * k..][..k], i % COLUMNS * k);
                let terms = row.iter().zip(&self.values[column..]).map(|(x, w)| x * f64::from(*w));
                let sizes = row.iter().zip(&self.sizes[column..]).map(|(x, size)| x.abs() * size);
                (terms.sum(), 4e-6 * sizes.sum::<f64>())
            })
            .collect();
        let last = (m - 1) * COLUMNS;
        let one = &bytes[bytes.len() / m * (m - 1)..];
        let mut one = self.case(&format!("{ty} 1"), 1, one, expected[last..].to_vec());
        one.same = Some(last);
        [self.case(&format!("{ty} {most}"), m, &bytes, expected), one]
    }
}

/// Returns what the program prints for the input, and how many of its conversions rounded something.
fn run(program: &Path, input: Vec<u8>) -> (Vec<f32>, String) {
    let mut command = Command::new(program);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let values = output.stdout.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
    (values.collect(), String::from_utf8(output.stderr).unwrap())
}

/// Every format, by every kind of kernel: near the values of the blocks, with the same bits whatever the number of rows.
#[test]
fn kernels_of_blocks_compute_what_the_blocks_mean() {
    let Some((_folder, program)) = compiled() else { return };
    let mut rng = StdRng::seed_from_u64(41);
    let mut cases = Vec::new();
    for _ in 0..2 {
        for &format in BlockFormat::ALL {
            let weights = Weights::new(&mut rng, format);
            cases.push(weights.values());
            cases.extend(weights.expanded(&mut rng));
            for (ty, most) in [("f32", 4), ("f16", 16), ("bf16", 8)] {
                cases.extend(weights.products(&mut rng, ty, most));
            }
        }
    }
    let input = cases.iter().flat_map(|case| &case.input).copied().collect();
    let (values, rounded) = run(&program, input);
    assert_eq!(values.len(), cases.iter().map(|case| case.expected.len()).sum::<usize>());
    assert_eq!(rounded, "0", "integers became other numbers");
    let (mut rest, mut before) = (values.as_slice(), values.as_slice());
    for case in cases {
        let (mine, after) = rest.split_at(case.expected.len());
        for (i, (y, (expected, bound))) in mine.iter().zip(&case.expected).enumerate() {
            let off = (f64::from(*y) - expected).abs();
            assert!(off <= *bound, "{} [{i}]: {y} instead of {expected}, off by {off} of {bound}", case.name);
        }
        if let Some(same) = case.same {
            let bits = |values: &[f32]| values.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&before[same..][..mine.len()]), bits(mine), "{}", case.name);
        }
        (before, rest) = (mine, after);
    }
}
