//! The GGUF reader: values, block formats, and files that lie.

use std::path::Path;

use graphable::load::MappedFile;
use graphable_examples::{
    Error,
    gguf::{Gguf, GgufError, TensorType, Value},
};
use half::f16;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    allocations::peak,
    commands::Folder,
    gguf_builder::{Builder, Meta},
    smollm2,
};

fn small() -> Builder {
    let bytes = |n: usize| (0..n).map(|i| (i * 37 % 251) as u8).collect::<Vec<_>>();
    Builder::default()
        .meta("general.architecture", "llama")
        .meta("llama.block_count", Meta::U32(2))
        .meta("llama.eps", Meta::F32(1e-5))
        .meta("flag", Meta::Bool(true))
        .meta("tokens", Meta::Strs(vec!["a".into(), "Ġb".into(), String::new()]))
        .meta("types", Meta::I32s(vec![1, -1, 3]))
        .f32("vector", &[3], &[1.0, -2.5, f32::MAX])
        .f32("matrix", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        .tensor("q4", &[2, 32], 3, bytes(40))
        .tensor("q6", &[1, 256], 14, bytes(210))
        .tensor("q3", &[1, 256], 11, bytes(110))
}

#[test]
fn reads_back_what_was_written() {
    let file = Gguf::from_bytes(small().build()).unwrap();
    assert_eq!(file.str("general.architecture").unwrap(), "llama");
    assert_eq!(file.u32("llama.block_count").unwrap(), 2);
    assert_eq!(file.f32("llama.eps").unwrap(), 1e-5);
    assert_eq!(file.get("flag").and_then(Value::as_bool), Some(true));
    assert_eq!(file.strings("tokens").unwrap(), ["a", "Ġb", ""]);
    assert_eq!(file.tensor_names().collect::<Vec<_>>(), ["vector", "matrix", "q4", "q6", "q3"]);
    let matrix = file.tensor("matrix").unwrap();
    assert_eq!((matrix.shape, matrix.data), (vec![2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    assert_eq!(file.tensor("vector").unwrap().data, [1.0, -2.5, f32::MAX]);
    assert_eq!(file.tensor_info("q4").unwrap().ty, TensorType::Q4_1);
    assert_eq!(file.tensor("q4").unwrap().data.len(), 64);
}

#[test]
fn names_what_is_missing_or_of_another_type() {
    let file = Gguf::from_bytes(small().build()).unwrap();
    let is = |e: GgufError, wanted: &str| assert!(e.to_string().contains(wanted), "{e}");
    is(file.u32("nothing").unwrap_err(), "metadata `nothing` is missing");
    is(
        file.u32("tokens").unwrap_err(),
        "metadata `tokens` should be a whole number below 2^32 and is an array",
    );
    is(file.integers("types").unwrap_err(), "should be an array of whole numbers");
    is(file.tensor("nothing").unwrap_err(), "tensor `nothing` is missing");
}

/// Values by the definition of each format, with the bits written out one weight at a time.
#[test]
fn block_formats_by_their_definition() {
    let mut random = StdRng::seed_from_u64(3);
    let (d, m) = (f16::from_f32(0.0625), f16::from_f32(-1.5));
    for _ in 0..20 {
        let five: Vec<u8> = (0..32).map(|_| random.random_range(0..32)).collect();
        let four: Vec<u8> = five.iter().map(|q| q & 0xF).collect();
        let low: Vec<u8> = (0..16).map(|i| four[i] | four[i + 16] << 4).collect();
        let high = five.iter().enumerate().fold(0u32, |h, (i, q)| h | u32::from(q >> 4) << i);
        let (d, m, high) = (d.to_le_bytes(), m.to_le_bytes(), high.to_le_bytes());
        let check = |ty: TensorType, stored: &[&[u8]], expected: Vec<f32>| {
            assert_eq!(ty.dequantise(&stored.concat()), expected, "{ty}");
        };
        let of = |q: &[u8], f: fn(f32) -> f32| q.iter().map(|&q| f(f32::from(q))).collect::<Vec<_>>();
        check(TensorType::Q4_0, &[&d, &low], of(&four, |q| 0.0625 * (q - 8.0)));
        check(TensorType::Q4_1, &[&d, &m, &low], of(&four, |q| 0.0625 * q - 1.5));
        check(TensorType::Q5_0, &[&d, &high, &low], of(&five, |q| 0.0625 * (q - 16.0)));
        check(TensorType::Q5_1, &[&d, &m, &high, &low], of(&five, |q| 0.0625 * q - 1.5));
        let eight: Vec<u8> = (0..32).map(|_| random.random()).collect();
        let signed = eight.iter().map(|&q| 0.0625 * f32::from(q as i8)).collect();
        check(TensorType::Q8_0, &[&d, &eight], signed);

        // Weight i of a half: byte i%64 of `low`, upper bits if i >= 64; bits 2*(i/32) of high[i%32].
        let six: Vec<u8> = (0..256).map(|_| random.random_range(0..64)).collect();
        let scales: Vec<i8> = (0..16).map(|_| random.random()).collect();
        let (mut low, mut high) = ([0u8; 128], [0u8; 64]);
        for (i, q) in six.iter().enumerate() {
            let (half, i) = (i / 128, i % 128);
            low[half * 64 + i % 64] |= (q & 0xF) << (i / 64 * 4);
            high[half * 32 + i % 32] |= (q >> 4) << (i / 32 * 2);
        }
        let stored_scales: Vec<u8> = scales.iter().map(|s| *s as u8).collect();
        let value = |(i, q): (usize, &u8)| 0.0625 * f32::from(scales[i / 16]) * (f32::from(*q) - 32.0);
        let expected = six.iter().enumerate().map(value).collect();
        check(TensorType::Q6_K, &[&low, &high, &stored_scales, &d], expected);
    }
    let half: Vec<u8> = [0.5f32, -3.0].iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect();
    assert_eq!(TensorType::F16.dequantise(&half), [0.5, -3.0]);
    assert_eq!(TensorType::BF16.dequantise(&[0x80, 0x3F, 0x00, 0xC0]), [1.0, -2.0]);
}

#[test]
fn every_truncation_is_an_error() {
    let whole = small().build();
    for len in 0..whole.len() {
        let e =
            Gguf::from_bytes(whole[..len].to_vec()).expect_err(&format!("{len} of {} bytes", whole.len()));
        assert!(!e.help().is_empty());
        if len < 4 {
            assert!(matches!(e, GgufError::BadMagic { .. }), "{e}");
        }
    }
}

/// Whatever the bytes are, reading ends, in an error or in a file whose tensors can be read.
#[test]
fn damaged_files_never_panic() {
    let whole = small().build();
    let mut random = StdRng::seed_from_u64(11);
    let mut refused = 0;
    for round in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..=round % 4 {
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..3) {
                0 => bytes[at] ^= 1 << random.random_range(0..8),
                1 => bytes[at] = random.random(),
                _ => {
                    let end = (at + 8).min(bytes.len());
                    bytes[at..end].fill(*[0x00, 0x7F, 0xFF].get(at % 3).unwrap());
                }
            }
        }
        match Gguf::from_bytes(bytes) {
            Err(_) => refused += 1,
            Ok(file) => {
                for name in file.tensor_names() {
                    let t = file.tensor(name).unwrap();
                    assert_eq!(t.data.len(), t.shape.iter().product::<usize>());
                }
            }
        }
    }
    assert!(refused > 2_000, "only {refused} of 20000 damaged files were refused");
}

#[test]
fn lies_about_sizes_are_refused_before_memory_is_taken() {
    let header = |tensors: u64, entries: u64| {
        [&b"GGUF\x03\0\0\0"[..], &tensors.to_le_bytes(), &entries.to_le_bytes()].concat()
    };
    assert!(matches!(Gguf::from_bytes(header(u64::MAX, 0)), Err(GgufError::TooLarge { .. })));
    assert!(matches!(Gguf::from_bytes(header(1 << 40, 0)), Err(GgufError::Truncated { .. })));
    assert!(matches!(Gguf::from_bytes(header(0, 1 << 50)), Err(GgufError::Truncated { .. })));
    let huge = Builder::default().tensor("w", &[1 << 40, 1 << 40], 0, vec![0; 4]).build();
    assert!(matches!(Gguf::from_bytes(huge), Err(GgufError::TooLarge { .. })));
    let empty = Builder::default().tensor("w", &[0, 1 << 40], 0, vec![]).build();
    assert!(Gguf::from_bytes(empty).unwrap().tensor("w").unwrap().data.is_empty());
}

/// A count that the rest of a large file could hold is still only a claim.
#[test]
fn claims_take_no_memory() {
    let filled = |claims: &[u64]| {
        let claims: Vec<u8> = claims.iter().flat_map(|n| n.to_le_bytes()).collect();
        [&b"GGUF\x03\0\0\0"[..], &claims, &vec![0xFF; 8 << 20]].concat()
    };
    // The array of strings `k`: its name, the codes of the two types, its length.
    let (array, strings) = (0x0000_0800_0000_096B, 500_000 << 8);
    for (file, stops_at) in [
        (filled(&[300_000, 0]), "a tensor name"),
        (filled(&[0, 600_000]), "a metadata key"),
        (filled(&[0, 1, 1, array, strings, 0]), "a metadata value"),
    ] {
        let (header, bytes) = peak(|| Gguf::from_bytes(file));
        let Err(GgufError::Truncated { what, .. }) = header else { panic!("{header:?}") };
        assert!(what == stops_at && bytes < 1 << 12, "{bytes} bytes for {what}");
    }
}

/// Opens a file to which no test writes as long as it is open.
fn mapped(path: &Path) -> Result<Gguf, Error> {
    // SAFETY: nobody writes to the downloaded model, and other files belong to the test that opens them.
    Gguf::open_mapped(path, |path| unsafe { MappedFile::open(path) })
}

/// Only the metadata takes memory.
#[test]
fn weights_stay_in_the_file() {
    let path = smollm2::path();
    let (file, bytes) = peak(|| mapped(&path).unwrap());
    let size = std::fs::metadata(&path).unwrap().len() as usize;
    assert!(file.tensor_names().len() == 272 && bytes < size / 8, "{bytes} of {size} bytes");
}

/// Whatever happens to a file that was read, its weights are those that were read.
#[test]
fn a_file_that_was_read_is_in_memory() {
    let folder = Folder::new("gguf-read");
    let path = folder.file("small.gguf", &small().build());
    let file = Gguf::open(path.as_ref()).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    assert_eq!(file.tensor("vector").unwrap().data, [1.0, -2.5, f32::MAX]);
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_are_read() {
    let folder = Folder::new("gguf-pipe");
    let whole = small().build();
    for open in [Gguf::open, mapped] {
        // Larger than the buffer of a pipe.
        let bytes = small().f32("more", &[1 << 16], &vec![0.5; 1 << 16]).build();
        let file = folder.piped(&bytes, open).unwrap();
        assert_eq!(file.tensor("vector").unwrap().data, [1.0, -2.5, f32::MAX]);
        assert_eq!(file.tensor("more").unwrap().data, vec![0.5; 1 << 16]);

        let e = folder.piped(&whole[..whole.len() - 5], open).unwrap_err().to_string();
        assert!(e.contains("model.fifo") && e.contains("truncated") && e.contains("help: download"), "{e}");
        let e = folder.piped(b"PK\x03\x04 a wheel", open).unwrap_err().to_string();
        assert!(e.contains(r#"it starts with "PK\x03\x04" instead of "GGUF""#), "{e}");
        // Reading it would not end.
        let e = open("/dev/zero".as_ref()).unwrap_err().to_string();
        assert!(e.contains(r#"it starts with "\x00\x00\x00\x00""#), "{e}");
        let e = open(&std::env::temp_dir()).unwrap_err().to_string();
        assert!(e.contains("help: name a file, not a folder"), "{e}");
    }
}

/// Each type, alone and in an array.
#[test]
fn numbers_have_the_width_of_their_type() {
    let of = |code: u32, bytes: &[u8], n: u64| {
        let array = [&code.to_le_bytes()[..], &n.to_le_bytes(), bytes].concat();
        let one = bytes[..bytes.len() / n as usize].to_vec();
        let file = Builder::default().meta("one", Meta::Raw(code, one)).meta("all", Meta::Raw(9, array));
        let file = Gguf::from_bytes(file.meta("last", "read").build()).unwrap();
        assert_eq!(file.str("last").unwrap(), "read");
        let Some(Value::Numbers(all)) = file.get("all") else { panic!("{:?}", file.get("all")) };
        let all: Vec<_> = all.iter().collect();
        assert_eq!((all.len() as u64, &all[0]), (n, file.get("one").unwrap()), "{code}");
        assert!(file.strings("all").is_err());
        (all, file.integers("all").ok())
    };
    let unsigned = |all: &[u64]| (all.iter().map(|&v| Value::Unsigned(v)).collect(), Some(all.to_vec()));
    let signed =
        |all: &[i64], integers| (all.iter().map(|&v| Value::Signed(v)).collect::<Vec<_>>(), integers);
    assert_eq!(of(0, &[1, 255], 2), unsigned(&[1, 255]));
    assert_eq!(of(1, &[1, 255], 2), signed(&[1, -1], None));
    assert_eq!(of(2, &[1, 2, 0, 255], 2), unsigned(&[0x201, 0xFF00]));
    assert_eq!(of(3, &[1, 2, 0, 127], 2), signed(&[0x201, 0x7F00], Some(vec![0x201, 0x7F00])));
    assert_eq!(of(4, &[1, 2, 3, 0, 0, 0, 0, 255], 2), unsigned(&[0x3_0201, 0xFF00_0000]));
    assert_eq!(of(5, &[1, 2, 3, 0, 0, 0, 0, 128], 2), signed(&[0x3_0201, i32::MIN.into()], None));
    assert_eq!(of(7, &[0, 1, 2], 3), (vec![Value::Bool(false), Value::Bool(true), Value::Bool(true)], None));
    assert_eq!(of(10, &u64::MAX.to_le_bytes(), 1), unsigned(&[u64::MAX]));
    assert_eq!(of(11, &i64::MIN.to_le_bytes(), 1), signed(&[i64::MIN], None));
    assert_eq!(of(6, &1.5f32.to_le_bytes(), 1), (vec![Value::Float(1.5)], None));
    assert_eq!(of(12, &(-0.1f64).to_le_bytes(), 1), (vec![Value::Float(-0.1)], None));
    // An empty array is one of anything.
    for code in [0u32, 8, 9] {
        let array = [&code.to_le_bytes()[..], &0u64.to_le_bytes()].concat();
        let file = Gguf::from_bytes(Builder::default().meta("k", Meta::Raw(9, array)).build()).unwrap();
        assert_eq!((file.strings("k").unwrap().len(), file.integers("k").unwrap().len()), (0, 0));
    }
}

#[test]
fn each_defect_has_its_error() {
    let read = |b: Builder| Gguf::from_bytes(b.build()).unwrap_err();
    let one = || Builder::default();
    assert!(matches!(
        read(one().tensor("w", &[1], 99, vec![0; 4])),
        GgufError::UnknownTensorType { code: 99, .. }
    ));
    assert!(matches!(
        read(one().tensor("w", &[33], 8, vec![0; 68])),
        GgufError::PartialBlock { row: 33, .. }
    ));
    assert!(matches!(read(one().tensor("w", &[1; 5], 0, vec![0; 4])), GgufError::Rank { rank: 5, .. }));
    let twice = one().f32("w", &[1], &[0.0]).f32("w", &[1], &[0.0]);
    assert!(matches!(read(twice), GgufError::Duplicate { what: "tensor", .. }));
    let twice = one().meta("k", "a").meta("k", "b");
    assert!(matches!(read(twice), GgufError::Duplicate { what: "metadata key", .. }));
    assert!(matches!(read(one().meta("general.alignment", Meta::U32(48))), GgufError::Alignment));
    let parts = |count: u16| one().meta("split.count", Meta::Raw(2, count.to_le_bytes().into()));
    assert!(matches!(read(parts(2)), GgufError::Split { count: 2 }));
    Gguf::from_bytes(parts(1).build()).unwrap();
    let mut version = one().build();
    version[4] = 1;
    assert!(matches!(Gguf::from_bytes(version), Err(GgufError::Version { found: 1 })));
    // The offset of the second tensor is behind its name, rank, size and type.
    let two = one().f32("first", &[8], &[0.0; 8]).f32("second", &[8], &[0.0; 8]).build();
    let at = two.windows(6).position(|name| name == b"second").unwrap() + 6 + 4 + 8 + 4;
    for (offset, fits) in [(0u64, false), (32, true)] {
        let mut moved = two.clone();
        moved[at..at + 8].copy_from_slice(&offset.to_le_bytes());
        match Gguf::from_bytes(moved) {
            Ok(_) => assert!(fits),
            Err(GgufError::Overlap { first, second }) => {
                assert!(!fits && first == "first" && second == "second")
            }
            Err(e) => panic!("{e}"),
        }
    }
    // An empty tensor shares nothing.
    Gguf::from_bytes(one().f32("empty", &[0], &[]).f32("w", &[1], &[0.0]).build()).unwrap();
    let long = one().meta("k", Meta::I32s(vec![0; (1 << 22) + 1]));
    assert!(matches!(read(long), GgufError::TooLong { len: 4194305, unit: "elements", .. }));
    let long = one().meta("k", Meta::Str("a".repeat((1 << 24) + 1)));
    assert!(matches!(read(long), GgufError::TooLong { len: 16777217, unit: "bytes", .. }));
    // An array of arrays of arrays …
    let mut deep = [&b"GGUF\x03\0\0\0"[..], &0u64.to_le_bytes(), &1u64.to_le_bytes()].concat();
    deep.extend(1u64.to_le_bytes());
    deep.push(b'k');
    deep.extend(9u32.to_le_bytes());
    for _ in 0..50 {
        deep.extend(9u32.to_le_bytes());
        deep.extend(1u64.to_le_bytes());
    }
    assert!(matches!(Gguf::from_bytes(deep), Err(GgufError::TooDeep { .. })));
}

#[test]
fn opening_names_the_file_and_the_remedy() {
    let folder = std::env::temp_dir().join(format!("graphable-gguf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("cut.gguf");
    let whole = small().build();
    std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let e = Gguf::open(&path).unwrap_err().to_string();
    assert!(e.contains("cut.gguf") && e.contains("truncated") && e.contains("help: download"), "{e}");
    std::fs::write(&path, b"PK\x03\x04 a wheel").unwrap();
    let e = Gguf::open(&path).unwrap_err().to_string();
    assert!(e.contains("not a GGUF file") && e.contains("help: pass a file"), "{e}");
    assert!(e.contains(r#"it starts with "PK\x03\x04" instead of "GGUF""#), "{e}");
    std::fs::write(&path, b"").unwrap();
    let e = Gguf::open(&path).unwrap_err().to_string();
    assert!(e.contains("not a GGUF file: it is empty"), "{e}");
    // Whatever else such a part lacks, among it the architecture, which only the first one has.
    let part = Builder::default()
        .meta("split.count", Meta::Raw(2, 3u16.to_le_bytes().into()))
        .meta("split.no", Meta::Raw(2, 1u16.to_le_bytes().into()));
    std::fs::write(&path, part.build()).unwrap();
    let e = Gguf::open(&path).unwrap_err().to_string();
    assert!(e.contains("one of the 3 parts of a split model (`split.count`)"), "{e}");
    assert!(e.contains("cut.gguf") && e.contains("gguf-split --merge"), "{e}");
    let e = Gguf::open(&folder.join("none.gguf")).unwrap_err().to_string();
    assert!(e.contains("none.gguf") && e.contains("help: check the path"), "{e}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Every format, compared with an implementation that shares no code with ours (`tests/gguf/blocks.py`), bit by bit.
#[test]
fn block_formats_are_those_of_the_gguf_package() {
    let saved = include_bytes!("../gguf/blocks.safetensors");
    let saved = safetensors::SafeTensors::deserialize(saved).unwrap();
    let mut compared = 0;
    for ty in TensorType::ALL.into_iter().filter(|ty| ty.float().is_none()) {
        let blocks = saved.tensor(&format!("{ty}.blocks")).unwrap();
        let elements = saved.tensor(&format!("{ty}.elements")).unwrap();
        assert_eq!(blocks.shape()[1], ty.block_bytes(), "{ty}");
        assert_eq!(elements.shape()[1], ty.block_elements(), "{ty}");
        let expected = elements.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let expected: Vec<f32> = expected.collect();
        // NaN equals nothing, so there is none.
        assert_eq!(ty.dequantise(blocks.data()), expected, "{ty}");
        compared += 1;
    }
    assert_eq!((compared, saved.len()), (11, 22));
}

#[test]
fn types_have_the_numbers_of_ggml() {
    for ty in TensorType::ALL {
        assert_eq!(TensorType::from_code(ty.code()), Some(ty));
    }
    // Q8_1, Q8_K and the I formats but one are not read.
    let unknown = [4, 5, 9, 15, 16, 17, 18, 19, 21, 22, 23, 29, 31, 34, 35, 39];
    assert!(unknown.iter().all(|&code| TensorType::from_code(code).is_none()));
}
