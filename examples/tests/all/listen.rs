//! The detector of speech, and the program: probabilities are those of the wheel's ONNX graph in onnxruntime.
//!
//! The first test that runs downloads the wheel (11 MB) into the user's cache.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use graphable::{Device, Mode};
use graphable_examples::{
    audio::Recording,
    fetch::{Cache, SILERO},
    silero::{CHUNK, Listener},
};

use crate::commands::{Folder, json, refused};

/// Written by `listen/compare.py --fixture`, for the samples below: the graph is that of the ONNX model, and the weights are
/// those of the file that the program uses, which are others than the model's own.
const PROBABILITIES: &str = include_str!("../listen/probabilities.txt");

/// Where the weights are. The tests need the package index once; without it they fail and say so.
fn weights() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let get = || Cache::of_user(true).and_then(|c| c.get(&SILERO)).unwrap_or_else(|e| panic!("{e}"));
    FOLDER.get_or_init(get).join(SILERO.files[0].name)
}

pub(crate) fn listener(device: Device, mode: Mode) -> Listener {
    Listener::load(&weights(), device, mode).unwrap()
}

/// As `listen/signals.py`: noise, and sounds of a voice, which are pulses through resonances.
fn samples() -> Vec<i16> {
    const A: [(f64, f64); 3] = [(1.895914, 0.976713), (1.787689, 0.965274), (1.123231, 0.953969)];
    const I: [(f64, f64); 3] = [(1.962876, 0.976713), (1.333821, 0.965274), (0.817821, 0.953969)];
    let (mut noise, mut phase, mut past) = (1u64, 0.0, [[0.0; 2]; 3]);
    let sample = |t: u32| {
        noise = (noise * 1_103_515_245 + 12345) % 2_147_483_648;
        let hiss = noise as f64 / 1_073_741_824.0 - 1.0;
        let voiced = (6000..22000).contains(&t) || (30000..42000).contains(&t);
        phase += (110.0 + f64::from(t % 8000) * 0.005) / 16000.0;
        let mut pulse = 0.0;
        if phase >= 1.0 {
            phase -= 1.0;
            pulse = 1.0;
        }
        let mut value = if voiced { pulse + 0.02 * hiss } else { 0.0 };
        let resonances = if (14000..36000).contains(&t) { I } else { A };
        for ((a, b), [first, second]) in resonances.into_iter().zip(&mut past) {
            let now = value + a * *first - b * *second;
            (*second, *first) = (*first, now);
            value = now * 0.2;
        }
        let loud = if (24000..28000).contains(&t) { 0.103 } else { 0.003 };
        ((value * 4.0 + loud * hiss) * 0.5).clamp(-1.0, 1.0) * 32767.0
    };
    (0..48000).map(sample).map(|v| v as i16).collect()
}

fn probabilities() -> Vec<f32> {
    PROBABILITIES.lines().map(|line| line.parse().unwrap()).collect()
}

/// The chunks of a recording, the last one filled up with zeros.
fn chunks(samples: &[i16]) -> Vec<[f32; CHUNK]> {
    let chunk = |part: &[i16]| std::array::from_fn(|i| part.get(i).map_or(0.0, |v| f32::from(*v) / 32768.0));
    samples.chunks(CHUNK).map(chunk).collect()
}

pub(crate) fn assert_heard(listener: &mut Listener, what: &str) {
    let wanted = probabilities();
    let chunks = chunks(&samples());
    assert_eq!(chunks.len(), wanted.len());
    for (i, (chunk, wanted)) in chunks.iter().zip(wanted).enumerate() {
        let found = listener.hear(chunk).unwrap();
        assert!((found - wanted).abs() < 1e-4, "{what}, chunk {i}: {found} instead of {wanted}");
    }
}

#[test]
fn probabilities_are_those_of_the_onnx_model_in_every_mode() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut listener = listener(Device::cpu(), mode);
        assert_heard(&mut listener, "first");
        // It remembers what it has heard, until it is told to forget.
        let first = chunks(&samples())[0];
        assert!((listener.hear(&first).unwrap() - probabilities()[0]).abs() > 1e-3);
        listener.capture(|_| ()).unwrap();
        assert_heard(&mut listener, "again");
        if mode != Mode::None {
            let stats = listener.runtime().stats();
            assert_eq!((stats.live_recordings, stats.fallbacks), (1, 0), "one graph for every chunk");
            assert!(stats.replays >= 94 * 2 - 4, "{}", stats.replays);
        }
    }
}

/// A WAV file with these fields of its format, and a chunk that is skipped; the size of the whole is not known.
fn wav(kind: u16, channels: u16, rate: u32, bits: u16, size: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF\0\0\0\0WAVELIST\x03\0\0\0abc\0fmt \x10\0\0\0".to_vec();
    bytes.extend([kind, channels].map(u16::to_le_bytes).as_flattened());
    bytes.extend([rate, rate * 2].map(u32::to_le_bytes).as_flattened());
    bytes.extend([channels * (bits / 8), bits].map(u16::to_le_bytes).as_flattened());
    bytes.extend_from_slice(b"data");
    bytes.extend(size.to_le_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn bytes(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn read(bytes: &[u8]) -> Vec<f32> {
    let mut recording = Recording::wav(bytes, Path::new("test.wav")).unwrap();
    let mut chunk = [9.0; 8];
    let n = recording.read(&mut chunk).unwrap();
    assert_eq!(recording.read(&mut [0.0]).unwrap(), 0, "nothing is left");
    chunk[..n].to_vec()
}

#[test]
fn wav_files_of_every_encoding_are_read() {
    let two = [1u8, 0, 2, 0, 0xff, 0xff, 0, 0x80];
    assert_eq!(read(&wav(1, 1, 16000, 16, 8, &two)), [1.0, 2.0, -1.0, -32768.0].map(|v| v / 32768.0));
    assert_eq!(read(&wav(1, 2, 16000, 16, 8, &two)), [1.5, -16384.5].map(|v| v / 32768.0));
    assert_eq!(
        read(&wav(1, 1, 16000, 16, 4, &two)),
        [1.0, 2.0].map(|v| v / 32768.0),
        "what follows is no sound"
    );
    // Of unknown length, and cut off.
    for size in [0, u32::MAX, 9] {
        assert_eq!(read(&wav(1, 1, 16000, 16, size, &two)).len(), 4);
    }
    // A file of known length has no sample, but something behind them; that of unknown length may say how long it is so far.
    for (whole, count) in [(56 + 8, 0), (u32::MAX, 4), (56 - 8, 4), (0, 4)] {
        let mut bytes = wav(1, 1, 16000, 16, 0, &two);
        assert_eq!(bytes.len(), 56 + two.len());
        bytes[4..8].copy_from_slice(&u32::to_le_bytes(whole));
        assert_eq!(read(&bytes).len(), count, "{whole}");
    }
    assert_eq!(read(&wav(1, 1, 16000, 16, 8, &two[..7])).len(), 3);
    assert_eq!(read(&wav(1, 1, 16000, 8, 3, &[0, 128, 255])), [-1.0, 0.0, 127.0 / 128.0]);
    assert_eq!(read(&wav(1, 1, 16000, 24, 6, &[0, 0, 64, 0, 0, 128])), [0.5, -1.0]);
    assert_eq!(read(&wav(1, 1, 16000, 32, 4, &[0, 0, 0, 64])), [0.5]);
    assert_eq!(read(&wav(3, 1, 16000, 32, 4, &0.25f32.to_le_bytes())), [0.25]);
    // The extensible format.
    let mut extensible = wav(0xfffe, 1, 16000, 16, 8, &two);
    let at = extensible.windows(4).position(|w| w == b"fmt ").unwrap();
    extensible[at + 4] = 40;
    let mut more = [0u8; 24];
    more[8] = 1;
    extensible.splice(at + 24..at + 24, more);
    assert_eq!(read(&extensible).len(), 4);
}

#[test]
fn bad_recordings_are_explained() {
    let says = |bytes: &[u8], wanted: &str| {
        let recording = Recording::wav(bytes, Path::new("test.wav"));
        let mut chunk = [0.0; 4];
        let e = recording.and_then(|mut r| r.read(&mut chunk)).unwrap_err().to_string();
        assert!(e.contains("test.wav") && e.contains(wanted) && e.contains("help:"), "{wanted} in {e}");
    };
    let good = wav(1, 1, 16000, 16, 2, &[0, 0]);
    says(b"", "not a WAV file");
    says(b"OggS and more than that", "not a WAV file");
    says(&good[..30], "ends before its samples");
    says(&good[..40], "cut off");
    says(&wav(1, 1, 44100, 16, 2, &[0, 0]), "44100 samples a second");
    says(&wav(1, 0, 16000, 16, 2, &[0, 0]), "no channel");
    says(&wav(2, 1, 16000, 4, 2, &[0, 0]), "4 bits in format 2");
    for (sample, shown) in
        [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (-3e19, "-30000000000000000000"), (4e4, "40000")]
    {
        says(
            &wav(3, 1, 16000, 32, 4, &sample.to_le_bytes()),
            &format!("a sample is {shown}; the loudest is 1"),
        );
    }
    // 24 bits in 4 bytes.
    let mut wide = wav(1, 2, 16000, 24, 8, &[0; 8]);
    let at = wide.windows(4).position(|w| w == b"fmt ").unwrap() + 8 + 12;
    wide[at] = 8;
    says(&wide, "2 channels of 24 bits take 8 bytes in it, and only those of 6");
    says(b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "format is not before its samples");
}

fn listen(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_listen"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its options does not read.
    child.stdin.take().unwrap().write_all(input).ok();
    child.wait_with_output().unwrap()
}

#[test]
fn listen_prints_probabilities_and_segments() {
    let folder = Folder::new("listen");
    let samples = samples();
    let data = bytes(&samples);
    let path = folder.file("signal.wav", &wav(1, 1, 16000, 16, data.len() as u32, &data));
    let v = json(&listen(&[&path, "--json", "--quiet", "--device", "cpu"], &[]));
    assert_eq!(v.as_object().unwrap().len(), 2);
    let found = v["probabilities"].as_array().unwrap();
    assert_eq!(found.len(), probabilities().len());
    for (found, wanted) in found.iter().zip(probabilities()) {
        assert!((found.as_f64().unwrap() - f64::from(wanted)).abs() < 1e-4, "{found} instead of {wanted}");
    }
    let segments = v["segments"].as_array().unwrap();
    assert!(!segments.is_empty() && segments.iter().all(|s| s["start"].as_f64() < s["end"].as_f64()), "{v}");

    // The same without a header, from standard input, and in every mode.
    for mode in ["none", "piecewise", "full"] {
        let raw = json(&listen(&["--raw", "--json", "--quiet", "--device", "cpu", "--mode", mode], &data));
        assert_eq!(raw["segments"], v["segments"], "{mode}");
    }
    // For people.
    let output = listen(&["-", "--device", "cpu"], &wav(1, 1, 16000, 16, 0, &data));
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(out.lines().count(), segments.len(), "{out}");
    assert!(out.lines().all(|line| line.contains(" – ") && line.ends_with(" s")), "{out}");
    for wanted in ["hear (", "full on cpu: 1 graphs", "94 chunks of 32 ms", "the host works"] {
        assert!(err.contains(wanted), "{wanted} in {err}");
    }
}

#[test]
fn listen_explains_bad_input() {
    let folder = Folder::new("listen-bad");
    let says = |args: &[&str], wanted: &[&str]| {
        let err = refused(&listen(args, b"nothing"));
        wanted.iter().for_each(|w| assert!(err.contains(w), "{w} in {err}"));
    };
    says(&[], &["standard input", "not a WAV file", "--raw"]);
    says(&["none.wav"], &["none.wav", "help: check the path"]);
    let empty = folder.file(
        "empty.safetensors",
        &safetensors::serialize([] as [(&str, safetensors::tensor::TensorView<'_>); 0], None).unwrap(),
    );
    says(&["--raw", "--model", &empty], &["stft_conv.weight", "help: use the file"]);
    let noise = folder.file("noise.safetensors", b"RIFF and more");
    says(
        &["--raw", "--model", &noise],
        &["noise.safetensors", "not a safetensors file", "help: use the file"],
    );
    says(&["--mode", "fast"], &["fast", "none, piecewise, full"]);
    // A recording without a sample has neither.
    let v = json(&listen(&["--raw", "--json", "--quiet", "--device", "cpu"], &[]));
    assert_eq!(v, serde_json::json!({ "probabilities": [], "segments": [] }));
}
