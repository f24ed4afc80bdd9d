//! Compiles every CUDA kernel for the architectures that are named, without a GPU: what CI runs.
//!
//! `cargo run -p graphable --example compile_kernels -- compute_80 sm_90a`; `compute_80` stops at PTX, `sm_90a` makes
//! machine code, and `sm_80:fast` makes it with little optimisation, which shows that the compiler accepts the text, but not
//! whether registers spill. `GRAPHABLE_NVRTC` may name the compiler's library or its folder. `--verbose` prints registers of each
//! kernel. `--rust` compiles only kernels that are written in Rust, and `--cuda` only `.cu` files; `--rust=softmax` those of rows
//! and indices with that in their names, `--rust=fused_product` products with what lies around them. `--rust --part=2/3` compiles
//! the second third of these: the compiler works on one unit at a time in a process, so CI starts several.
//!
//! `--assembled=FILE` names units of which machine code was made before without spilled registers: each line has a hash of what that code
//! depends on, and a name. They are compiled only to PTX, which takes a sixth of the time; without the option, machine code is made of
//! all. `--list` prints such lines for all units that pass; `.ci/run assemble` writes the file.

use std::{
    collections::HashSet,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use graphable::{
    __private::kernel::{
        Compute, Definition, Kernel, Kind, built_in, compile, compile_all, compile_chain, compile_fused,
    },
    backend::cuda::{Check, compile_file},
    bf16, f16, kernel,
};

// What kernels in Rust can call: each method once.

macro_rules! real {
    ($($name:ident $t:ident;)*) => {$(
        #[kernel]
        fn $name(x: $t, y: $t, n: i32) -> ($t, bool) {
            let mut a = x.exp() + x.exp2() + x.exp_m1() + x.ln() + x.ln_1p() + x.log2() + x.log10() + x.sqrt();
            a += x.cbrt() + x.sin() + x.cos() + x.tan() + x.asin() + x.acos() + x.atan() + x.sinh() + x.cosh();
            a += x.tanh() + x.asinh() + x.acosh() + x.atanh() + x.floor() + x.ceil() + x.round() + x.recip();
            a += x.round_ties_even() + x.trunc() + x.fract() + x.to_degrees() + x.to_radians() + x.powf(y);
            a += x.atan2(y) + x.hypot(y) + x.copysign(y) + x.powi(n) + x.mul_add(y, a) + x.min(y) + x.max(y);
            a += x.clamp(-1.0, y) + x.rem_euclid(y) + x.div_euclid(y) + x.abs() + x.signum() + x % y - -x;
            let odd = x.is_nan() | x.is_infinite() || x.is_finite() && x.is_sign_negative() ^ x.is_sign_positive();
            (a * 0.1 / y + $t::MAX, !odd)
        }
    )*};
}

real! {
    single f32;
    double f64;
}

#[kernel]
fn floats(x: f32, y: f32, n: i32, bits: u32) -> (f32, u32, bool) {
    let (sum, odd) = single(x, y, n);
    (sum + f32::from_bits(bits), x.to_bits(), odd)
}

#[kernel]
fn doubles(x: f64, y: f64, n: i64) -> (f64, bool, f32) {
    let (sum, odd) = double(x, y, n as i32);
    (sum + n as f64, odd, x as f32 + f64::from(n > 9_000_000_000) as f32)
}

macro_rules! integers {
    ($($name:ident $t:ident;)*) => {$(
        #[kernel]
        fn $name(a: $t, b: $t, n: u32, flag: bool) -> ($t, u32, f32) {
            let mut c = a.min(b) + a.max(b) - a.clamp(b, 7) * a.rem_euclid(b) / a.div_euclid(b) % a.pow(n);
            c ^= a.wrapping_add(b) & a.wrapping_sub(b) | a.wrapping_mul(b) ^ !a.saturating_add(b);
            c += a.saturating_sub(b) << n;
            c -= a.wrapping_div(b) >> 3;
            c += a.wrapping_rem(b) + a.wrapping_neg() + a.swap_bytes() + a.reverse_bits() + a.wrapping_pow(n);
            c += a.wrapping_shl(n) + a.wrapping_shr(n) + a.rotate_left(n) + a.rotate_right(n);
            c += flag as $t + n as $t + 1.5f32 as $t + $t::MAX;
            let d = a.count_ones() + a.count_zeros() + a.leading_zeros() + a.trailing_zeros();
            (c, d + a as u32, a as f32 + f32::from(flag))
        }
    )*};
}

integers! {
    signed i32;
    unsigned u32;
    bytes u8;
    longs i64;
    short i8;
}

#[kernel]
fn long_signs(a: i64, b: i8) -> (i64, i8, bool) {
    let known = a.is_negative() || a.is_positive() || b.is_negative() || b.is_positive();
    (a.abs() + a.signum() + a.wrapping_abs() - -a, b.abs() + b.signum() + b.wrapping_abs() - -b, known)
}

#[kernel]
fn signs(a: i32, b: u32, c: u8) -> (i32, u32, bool) {
    let d = a.abs() + a.signum() + a.wrapping_abs() - -a;
    let known = a.is_negative() || a.is_positive() || b.is_power_of_two() || c.is_power_of_two();
    (d, a.unsigned_abs() + b, known)
}

#[kernel]
fn half(x: f32) -> f32 {
    0.5 * x
}

#[kernel]
fn root(x: f32) -> f32 {
    x.sqrt()
}

/// The variable hides no function.
#[kernel]
fn hidden(x: f32) -> f32 {
    let root = root(half(x));
    root
}

/// Parameters that are always numbers, as bounds and as values.
#[kernel]
fn powered(x: f32, by: f32, #[key] times: u32, #[key] inverse: bool) -> f32 {
    let mut y = x;
    for k in (1..=times).rev() {
        y = if inverse { y / by } else { y * by + k as f32 };
    }
    y
}

#[kernel(rows)]
fn smoothed(x: Row<f32>, #[key] times: i32, #[key] by: f32) -> f32 {
    let mut sum = x.sum();
    for k in 0..times {
        sum += x.map(|v| v * by + k as f32).max();
    }
    sum
}

/// Each method that reduces rows.
#[kernel(rows)]
fn reduced(n: Row<i32>, flag: Row<bool>) -> (i32, u32) {
    let (sum, most) =
        n.fold((0, 0), |(sum, most), v| (sum + v, v.max(most)), |(a, b), (c, d)| (a + c, b.max(d)));
    (sum + most + n.sum() + n.max() + n.min(), n.argmax() + n.argmin() + flag.count(|flag| flag))
}

/// Each method that makes rows, or reads a value of one, and a loop.
#[kernel(rows)]
fn rows(x: Row<f32>, flag: Row<bool>, scale: f32, i: u8) -> (Row<f32>, Row<bool>, f32, u32) {
    let powers = x.map(|v| (v - scale).exp());
    let pairs = flag.enumerate().map(|(i, flag)| (i, flag, 1u8));
    let (last, odd, one) = pairs.at(x.len() - 1);
    let mut total = powers.at(last % 7) + x.at(i) + f32::from(odd);
    for k in 0..3 {
        if k as f32 > scale {
            total += powers.map(|v| v * k as f32).sum();
        }
    }
    let now = total;
    let known = x.zip(flag).map(|(v, flag)| v > now && flag);
    (powers.map(|v| v / now), known, total, last + one as u32)
}

#[kernel(rows)]
fn rms_norm(x: Row<f32>, weight: Row<f32>, eps: f32) -> Row<f32> {
    let mean = x.map(|v| v * v).sum() / x.len() as f32;
    let scale = 1.0 / (mean + eps).sqrt();
    x.zip(weight).map(|(v, w)| v * scale * w)
}

/// Reductions of large values, one after the other: all share what memory a block has.
#[kernel(rows)]
fn moments(x: Row<f32>) -> f32 {
    let mut total = 0.0;
    for k in 0..3 {
        let ((a, b, c, d), (e, f)) = x.fold(
            ((0.0, 0.0, 0.0, 0.0), (0.0, 1.0)),
            |((a, b, c, d), (e, f)), v| {
                ((a + v, b + v * v, c + v * v * v, d + v * k as f32), (e.max(v), f * v))
            },
            |((a, b, c, d), (e, f)), ((g, h, i, j), (l, m))| {
                ((a + g, b + h, c + i, d + j), (e.max(l), f * m))
            },
        );
        total += a + b + c + d + e + f;
    }
    total
}

/// Rows of the types that other kernels have no text for.
#[kernel(rows)]
fn long_rows(x: Row<f64>, n: Row<i64>, by: f64, at: i64) -> (Row<f64>, i64) {
    let total = x.sum() + by + x.at(at);
    (x.map(|v| v / total), n.sum() + n.max())
}

#[kernel(reduce)]
fn short_rows(b: Row<i8>) -> (i8, u32) {
    (b.min() + b.sum(), b.argmax())
}

#[kernel(reduce)]
fn most(x: Row<u8>) -> u8 {
    x.max()
}

/// Each method of views, in a loop and without one.
#[kernel(index)]
fn windows(x: View<f32, 3>, n: View<u8, 1>, first: i32, [i, mut j]: [i32; 2]) -> (f32, bool, i32, u8) {
    let size = x.dim(2);
    let mut sum = x.at_or([0, i - first, j], -1.0);
    for k in first..size {
        j += 1;
        if n.at([k]) == 255 {
            return (sum, true, k, 0);
        }
        sum += half(x.at([k as u32 as i32, n.at([i]) as i32, j]));
    }
    (sum, n.at_or([j], 7) > 1, x.dim(0) * n.dim(0), n.at([i as u8]))
}

/// Indices of 64 bits, also of another kernel.
#[kernel]
fn next(id: i64) -> i64 {
    id + 1
}

#[kernel(index)]
fn long_embedded(ids: View<i64, 1>, table: View<f64, 2>, signs: View<i8, 1>, [i, j]: [i32; 2]) -> (f64, i8) {
    let id = ids.at([i]);
    (table.at([id, j as i64]) + table.at_or([next(id), j as i64], 0.5), signs.at([next(id)]))
}

#[kernel(index)]
fn embedded(ids: View<u32, 1>, table: View<f32, 2>, [i, j]: [i32; 2]) -> f32 {
    table.at([ids.at([i]), j])
}

/// A state that is written, and read as it was; of two writes, the last counts.
#[kernel(index)]
fn put(x: View<f32, 2>, slots: View<u32, 1>, cache: &mut View<f32, 3>, least: f32, [i, j]: [i32; 2]) {
    let old = cache.at_or([0, i, j], 0.0);
    if x.at([i, j]) < least {
        return;
    }
    cache.set([0, slots.at([i]) as i32, j], x.at([i, j]) + old);
    for k in 1..cache.dim(0) {
        cache.set([k, i, j], if old < k as f32 { continue } else { old });
    }
}

#[kernel(index)]
fn marked(tokens: View<u32, 1>, seen: &mut View<bool, 2>, [i]: [i32; 1]) {
    seen.set([i as u32, tokens.at([i])], true);
}

#[kernel(index)]
fn thrown(x: View<f32, 2>, r: Random, to: &mut View<f32, 1>, s: Random, [i, j]: [i32; 2]) {
    to.set([s.below(to.dim(0) as u32)], x.at([i, j]) + r.normal());
}

#[kernel(index)]
fn drawn(r: Random, [i, _]: [i32; 2]) -> (f32, u32, i32) {
    (r.gumbel(), r.bits(), i)
}

/// A random number for each value.
#[kernel(rows)]
fn sampled(x: Row<f32>, r: Row<Random>) -> (u32, Row<f32>) {
    let noisy = x.zip(r).map(|(x, r)| x + r.gumbel());
    (noisy.argmax(), noisy)
}

/// A row of random numbers that is used twice, a value of it, and a random number of the row.
#[kernel(rows)]
fn spread(x: Row<f32>, r: Row<Random>, s: Random, #[key] n: u32) -> (Row<f32>, f32) {
    let drawn = r.map(|r| r.uniform());
    (x.zip(drawn).map(|(x, r)| x * r), s.normal() + drawn.sum() + r.at(n).exponential())
}

/// Of columns, too.
#[kernel(reduce)]
fn dropped(x: Row<f32>, r: Row<Random>) -> f32 {
    x.zip(r).map(|(x, r)| if r.bits() >> 31 == 1 { x } else { 0.0 }).sum()
}

#[kernel(reduce)]
fn straight(x: Row<f32>, r: Row<Random>, s: Random) -> f32 {
    x.zip(r).map(|(x, r)| x * r.uniform()).sum() + s.uniform()
}

#[kernel(index)]
fn causal([i, j]: [i32; 2]) -> bool {
    j <= i
}

// Types that only C++ knows, as Rust does: results of other kernels.

#[kernel]
fn far(a: f64, n: i64) -> (f64, i64) {
    (a * 2.0, n + 1)
}

#[kernel]
fn beyond(n: i64) -> i64 {
    n + 1
}

#[kernel]
fn open(a: f64, n: i64, k: i32) -> (f64, bool) {
    let (b, m) = far(a, n);
    let chosen = match k {
        0 => beyond(n),
        _ => beyond(m),
    };
    (b.sqrt(), b.is_finite() || m.is_negative() && chosen.is_negative())
}

#[kernel(index)]
fn open_index(x: View<f64, 1>, to: &mut View<i64, 1>, [i]: [i32; 1]) {
    let n = 3;
    let chosen = if beyond(n).is_negative() { x.at([n]) } else { x.at([i]) };
    to.set([i], chosen as i64);
}

// What chains are made of: operations of models.

#[kernel]
fn sum(a: f32, b: f32) -> f32 {
    a + b
}

#[kernel]
fn product(a: f32, b: f32) -> f32 {
    a * b
}

#[kernel]
fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

#[kernel]
fn gelu_tanh(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}

#[kernel]
fn to_integer(x: f32) -> i32 {
    x as i32
}

/// Element-wise kernels of a unit.
const AT_ONCE: usize = 16;

/// Compiles some kernels as one unit, and returns the compiler's remarks.
type Compile = fn(&[&'static Definition], &Check) -> graphable::Result<String>;

/// One of so many parts of the units, counted from 0.
#[derive(Clone, Copy)]
struct Part {
    index: usize,
    of: usize,
}

impl Part {
    const ALL: Self = Self { index: 0, of: 1 };

    /// The part that `2/3` names.
    fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let (number, of) = (number.parse::<usize>().ok()?, of.parse().ok()?);
        (1..=of).contains(&number).then_some(Self { index: number - 1, of })
    }
}

/// Kernels in Rust, as a user has them and as the operations have them: bf16, whose kernels need the most registers, as machine
/// code, and as PTX what that leaves out, which is f32 and f16, and the text of kernels of rows for devices without clusters.
fn compile_rust(check: &Check, named: &str, part: Part) -> graphable::Result<Vec<(String, String)>> {
    let ours = [
        floats::DEFINITION,
        signed::DEFINITION,
        unsigned::DEFINITION,
        bytes::DEFINITION,
        signs::DEFINITION,
        longs::DEFINITION,
        short::DEFINITION,
        doubles::DEFINITION,
        long_signs::DEFINITION,
        long_rows::DEFINITION,
        short_rows::DEFINITION,
        long_embedded::DEFINITION,
        powered::DEFINITION,
        smoothed::DEFINITION,
        hidden::DEFINITION,
        reduced::DEFINITION,
        rows::DEFINITION,
        rms_norm::DEFINITION,
        moments::DEFINITION,
        most::DEFINITION,
        windows::DEFINITION,
        embedded::DEFINITION,
        put::DEFINITION,
        marked::DEFINITION,
        thrown::DEFINITION,
        drawn::DEFINITION,
        sampled::DEFINITION,
        spread::DEFINITION,
        dropped::DEFINITION,
        straight::DEFINITION,
        causal::DEFINITION,
        open::DEFINITION,
        open_index::DEFINITION,
    ];
    let all: Vec<&'static Definition> =
        ours.into_iter().chain(built_in()).filter(|definition| definition.name.contains(named)).collect();
    let (elements, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|definition| matches!(definition.kind, Kind::Elements));
    let is_machine = !check.arch().starts_with("compute_");
    let mut units: Vec<(String, Vec<&'static Definition>, Compile)> = Vec::new();
    for (i, some) in elements.chunks(AT_ONCE).enumerate() {
        let mut unit = |compile: Compile| {
            units.push((
                format!("element-wise kernels in Rust from {}", i * AT_ONCE),
                some.to_vec(),
                compile,
            ));
        };
        if is_machine {
            unit(compile_all::<bf16>);
        } else {
            unit(compile_all::<f32>);
            unit(compile_all::<f16>);
        }
    }
    for chain in chains(named) {
        let names: Vec<&str> = chain.iter().map(|definition| definition.name).collect();
        let name = format!("a chain of {}", names.join(", "));
        let mut unit = |compile: Compile| units.push((name.clone(), chain.clone(), compile));
        if is_machine {
            unit(compile_chain::<bf16>);
        } else {
            unit(compile_chain::<f32>);
            unit(compile_chain::<f16>);
        }
    }
    for definition in others {
        let name = format!("{} in Rust", definition.name);
        let mut unit = |compile: Compile| units.push((name.clone(), vec![definition], compile));
        let mut types = definition.inputs.iter().map(|(_, compute)| compute).chain(definition.outputs);
        let has_floats = types.any(|compute| *compute == Compute::F32);
        if is_machine || matches!(definition.kind, Kind::Rows(_)) {
            unit(|one, check| compile::<bf16>(one[0], check));
        }
        if has_floats && !is_machine {
            unit(|one, check| compile::<f32>(one[0], check));
            unit(|one, check| compile::<f16>(one[0], check));
        }
    }
    // Of one kernel, types take similar times, and kernels of one kind follow each other: whatever the number of parts,
    // each gets some of all.
    let part = units.into_iter().skip(part.index).step_by(part.of);
    part.map(|(name, definitions, compile)| Ok((name, compile(&definitions, check)?))).collect()
}

/// Chains of kernels of elements: every type, parts of results, bits that are read as another type, as many inputs as there
/// may be, and what models compute between two products.
fn chains(named: &str) -> Vec<Vec<&'static Definition>> {
    let all = [
        vec![half::DEFINITION, hidden::DEFINITION, root::DEFINITION],
        vec![
            floats::DEFINITION,
            signed::DEFINITION,
            unsigned::DEFINITION,
            bytes::DEFINITION,
            signs::DEFINITION,
            floats::DEFINITION,
        ],
        vec![doubles::DEFINITION, long_signs::DEFINITION, longs::DEFINITION],
        vec![powered::DEFINITION; 2],
        vec![
            sum::DEFINITION,
            silu::DEFINITION,
            product::DEFINITION,
            gelu_tanh::DEFINITION,
            half::DEFINITION,
            sum::DEFINITION,
            silu::DEFINITION,
            product::DEFINITION,
        ],
        [vec![sum::DEFINITION; 15], vec![to_integer::DEFINITION, unsigned::DEFINITION]].concat(),
    ];
    all.into_iter().filter(|chain| chain.iter().any(|of| of.name.contains(named))).collect()
}

/// The `.cu` files below a folder, in order.
fn cuda_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(cuda_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "cu") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The name and the text of the header that a file includes from its folder, if it does. As in the program, the text of the one that
/// a line of it names, as `// Behind: other.cuh`, is in front.
fn own_header(path: &Path, text: &str) -> io::Result<Option<(String, String)>> {
    let included = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
    let Some(name) = included.into_iter().find(|name| !["common.cuh", "graphable.cuh"].contains(name)) else {
        return Ok(None);
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut header = fs::read_to_string(folder.join(name))?;
    if let Some(first) = header.lines().find_map(|line| line.strip_prefix("// Behind: ")) {
        header.insert_str(0, &fs::read_to_string(folder.join(first))?);
    }
    Ok(Some((name.to_owned(), header)))
}

/// Every `.cu` file of the crate, wherever its operation is.
fn compile_files(check: &Check) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut units = Vec::new();
    for path in cuda_files(&folder)? {
        let name = path.strip_prefix(&folder)?.display().to_string();
        let text = fs::read_to_string(&path)?;
        let header = own_header(&path, &text)?;
        let header = header.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        units.extend(compile_file(&name, &text, header, check)?);
    }
    if units.is_empty() {
        return Err(format!("there is no `.cu` file below {}", folder.display()).into());
    }
    Ok(units)
}

/// What to compile, and how.
struct Call {
    archs: Vec<String>,
    flags: Vec<String>,
    part: Part,
    /// The keys of what was assembled before.
    assembled: HashSet<String>,
}

impl Call {
    /// Returns `None` if the arguments are none of a call.
    fn parse(arguments: impl Iterator<Item = String>) -> Option<io::Result<Self>> {
        let (flags, archs): (Vec<String>, Vec<String>) = arguments.partition(|a| a.starts_with('-'));
        let is_known = |f: &String| {
            ["--verbose", "--rust", "--cuda", "--list"].contains(&f.as_str())
                || ["--rust=", "--part=", "--assembled="].iter().any(|flag| f.starts_with(flag))
        };
        let mut call = Self { archs, flags, part: Part::ALL, assembled: HashSet::new() };
        if let Some(text) = call.value("--part=") {
            call.part = Part::parse(text).filter(|_| call.only("--rust"))?;
        }
        if call.archs.is_empty()
            || !call.flags.iter().all(is_known)
            || call.only("--rust") && call.only("--cuda")
        {
            return None;
        }
        let Some(path) = call.value("--assembled=") else { return Some(Ok(call)) };
        let read = fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")));
        Some(read.map(|text| {
            let keys = text.lines().filter_map(|line| line.split_whitespace().next());
            Self { assembled: keys.map(ToOwned::to_owned).collect(), ..call }
        }))
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    fn value(&self, flag: &str) -> Option<&str> {
        self.flags.iter().find_map(|f| f.strip_prefix(flag))
    }

    /// Returns whether only kernels in Rust, or only `.cu` files, are compiled.
    fn only(&self, which: &str) -> bool {
        self.has(which) || which == "--rust" && self.value("--rust=").is_some()
    }

    /// Compiles the units that are asked for, and returns the compiler's remarks about each.
    fn compile(&self, check: &Check) -> Result<Vec<(String, String)>, Box<dyn Error>> {
        let files = if self.only("--rust") { Vec::new() } else { compile_files(check)? };
        if self.only("--cuda") {
            return Ok(files);
        }
        let (named, part) = (self.value("--rust="), self.part);
        let with_fused = named.is_none_or(|name| name == "fused_product");
        let fused = if with_fused { compile_fused(check, part.index, part.of)? } else { Vec::new() };
        Ok([files, compile_rust(check, named.unwrap_or(""), part)?, fused].concat())
    }

    /// Compiles for an architecture, prints what came of it, and returns whether no registers were spilled.
    fn report(&self, arch: &str) -> Result<bool, Box<dyn Error>> {
        let is_code = arch.starts_with("sm_") && !arch.ends_with(":fast");
        let checks = match is_code && !self.assembled.is_empty() {
            true => Check::in_turn(arch, &self.assembled).into(),
            false => vec![Check::new(arch)],
        };
        let (mut count, mut kernels, mut spilled) = (0, 0, false);
        for check in &checks {
            let units = self.compile(check)?;
            count = units.len();
            for (name, remarks) in units.iter().filter(|(_, remarks)| !remarks.is_empty()) {
                kernels += Check::count_kernels(remarks);
                // What is not known to fit does not pass.
                for line in Check::spills(remarks).chain(Check::silent(remarks)).filter(|_| is_code) {
                    spilled = true;
                    eprintln!("{arch}: {name}: {line}");
                }
                if self.has("--verbose") {
                    println!("{arch}: {name}\n{remarks}");
                }
            }
            if self.has("--list") {
                check.passed().iter().for_each(|(key, name)| println!("{key} {arch} {name}"));
            }
        }
        match checks.as_slice() {
            [new, known] => {
                let (new, known) = (new.passed().len(), known.passed().len());
                println!(
                    "{arch}: {kernels} kernels of {count} units compiled; of {known} texts, machine code was made before, of \
                     {new} now"
                );
            }
            _ if arch.starts_with("compute_") => println!("{arch}: {count} units compiled to PTX"),
            _ => println!("{arch}: {kernels} kernels of {count} units compiled"),
        }
        Ok(!spilled)
    }
}

fn main() -> ExitCode {
    let call = match Call::parse(std::env::args().skip(1)) {
        Some(Ok(call)) => call,
        Some(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
        None => {
            eprintln!(
                "usage: compile_kernels [--verbose] [--list] [--assembled=FILE] [--rust[=NAME] [--part=1/2] | --cuda] \
                 sm_80 sm_90a …"
            );
            return ExitCode::from(2);
        }
    };
    let mut spilled = false;
    for arch in &call.archs {
        match call.report(arch) {
            Ok(without_spills) => spilled |= !without_spills,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    if spilled { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
