//! Sound as samples: WAV files, and PCM without a header, read as they come.

use std::{
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// Samples a second; no other rate is read.
const RATE: u32 = 16_000;
/// The loudest sample is 1; some programs write floats in the range of 16 bits. Beyond, it is no sound, and what hears it would not
/// hear what follows.
const LOUDEST: f32 = 32_768.0;

/// How a sample is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    U8,
    I16,
    I24,
    I32,
    F32,
}

impl Encoding {
    fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::I16 => 2,
            Self::I24 => 3,
            Self::I32 | Self::F32 => 4,
        }
    }

    /// The value of a sample of this size, between -1 and 1.
    fn value(self, bytes: &[u8]) -> f32 {
        match (self, bytes) {
            (Self::U8, &[a]) => (f32::from(a) - 128.0) / 128.0,
            (Self::I16, &[a, b]) => f32::from(i16::from_le_bytes([a, b])) / 32768.0,
            (Self::I24, &[a, b, c]) => i32::from_le_bytes([0, a, b, c]) as f32 / 2_147_483_648.0,
            (Self::I32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]) as f32 / 2_147_483_648.0,
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            _ => 0.0,
        }
    }
}

/// A recording that is read while it grows: one channel, 16 kHz.
pub struct Recording<R> {
    source: BufReader<R>,
    /// For messages.
    name: PathBuf,
    encoding: Encoding,
    /// Their mean is taken.
    channels: usize,
    /// Bytes that are left; `None` if it lasts until the source ends.
    left: Option<u64>,
    /// Bytes that were read.
    at: u64,
    bytes: Vec<u8>,
}

impl<R: Read> Recording<R> {
    /// Samples of 16 bits, little-endian, one channel, 16 kHz.
    pub fn raw(source: R, name: &Path) -> Self {
        let (source, name) = (BufReader::new(source), name.to_owned());
        Self { source, name, encoding: Encoding::I16, channels: 1, left: None, at: 0, bytes: Vec::new() }
    }

    /// Reads the header of a WAV file.
    ///
    /// # Errors
    /// [`Error::File`] if it is not one, or of another rate, or its samples are compressed.
    pub fn wav(source: R, name: &Path) -> Result<Self> {
        let mut recording = Self::raw(source, name);
        let mut riff = [0; 12];
        let n = recording.fill(&mut riff)?;
        if n < riff.len() || &riff[..4] != b"RIFF" || &riff[8..] != b"WAVE" {
            let help = "pass a WAV file, or `--raw` for samples without a header";
            return Err(
                recording.wrong("it is not a WAV file: it does not begin with `RIFF` and `WAVE`", help)
            );
        }
        let whole = u32::from_le_bytes([riff[4], riff[5], riff[6], riff[7]]);
        let mut known = false;
        loop {
            let mut header = [0; 8];
            if recording.fill(&mut header)? < header.len() {
                return Err(recording.wrong("it ends before its samples", "check how it was made"));
            }
            let [a, b, c, d, size @ ..] = header;
            let size = u32::from_le_bytes(size);
            match &[a, b, c, d] {
                b"fmt " => {
                    recording.read_format(size)?;
                    known = true;
                }
                b"data" if known => {
                    // Programs that do not know the sizes when they begin write the largest number, or 0 here, and for the
                    // whole file a large number, 0, or what there is without samples, with or without the 8 bytes before it.
                    let is_whole_unknown = whole >= 0x7fff_f000 || u64::from(whole) <= recording.at;
                    let is_unknown = size == u32::MAX || size == 0 && is_whole_unknown;
                    recording.left = (!is_unknown).then_some(u64::from(size));
                    return Ok(recording);
                }
                b"data" => {
                    return Err(
                        recording.wrong("its format is not before its samples", "check how it was made")
                    );
                }
                _ => recording.skip(u64::from(size) + u64::from(size % 2))?,
            }
        }
    }

    fn read_format(&mut self, size: u32) -> Result<()> {
        let mut format = [0; 40];
        let used = format.len().min(size as usize);
        if used < 16 || self.fill(&mut format[..used])? < used {
            return Err(self.wrong("its format is cut off", "check how it was made"));
        }
        self.skip(u64::from(size) + u64::from(size % 2) - used as u64)?;
        let word = |at: usize| u16::from_le_bytes([format[at], format[at + 1]]);
        // The extensible format has the number of the format further on.
        let kind = if word(0) == 0xfffe && used >= 26 { word(24) } else { word(0) };
        let rate = u32::from_le_bytes([format[4], format[5], format[6], format[7]]);
        let convert = "convert it: `ffmpeg -i FILE -ar 16000 -ac 1 -c:a pcm_s16le out.wav`";
        if rate != RATE {
            return Err(
                self.wrong(&format!("it has {rate} samples a second, and {RATE} are needed"), convert)
            );
        }
        self.channels = usize::from(word(2));
        self.encoding = match (kind, word(14)) {
            _ if self.channels == 0 => return Err(self.wrong("it has no channel", convert)),
            (1, 8) => Encoding::U8,
            (1, 16) => Encoding::I16,
            (1, 24) => Encoding::I24,
            (1, 32) => Encoding::I32,
            (3, 32) => Encoding::F32,
            (kind, bits) => {
                let reason = format!("its samples have {bits} bits in format {kind}, which is not read");
                return Err(self.wrong(&reason, convert));
            }
        };
        let (frame, said) = (self.encoding.bytes() * self.channels, usize::from(word(12)));
        // Some programs write other numbers for samples without gaps.
        if said > frame {
            let reason = format!(
                "{} channels of {} bits take {said} bytes in it, and only those of {frame} are read",
                self.channels,
                word(14)
            );
            return Err(self.wrong(&reason, convert));
        }
        Ok(())
    }

    /// Fills `chunk`, waiting for samples that are not there yet. Returns how many there are: fewer at the end only.
    ///
    /// # Errors
    /// [`Error::File`] if they cannot be read, or one is not a number or far too large.
    pub fn read(&mut self, chunk: &mut [f32]) -> Result<usize> {
        let frame = self.encoding.bytes() * self.channels;
        let wanted = (chunk.len() * frame) as u64;
        let wanted = self.left.map_or(wanted, |left| left.min(wanted));
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(wanted as usize, 0);
        let n = self.fill(&mut bytes)?;
        if let Some(left) = &mut self.left {
            *left -= n as u64;
        }
        let mut count = 0;
        for (to, frame) in chunk.iter_mut().zip(bytes[..n].chunks_exact(frame)) {
            let all = frame.chunks_exact(self.encoding.bytes()).map(|bytes| self.encoding.value(bytes));
            *to = all.sum::<f32>() / self.channels as f32;
            count += 1;
        }
        self.bytes = bytes;
        match chunk[..count].iter().find(|sample| !(-LOUDEST..=LOUDEST).contains(*sample)) {
            None => Ok(count),
            Some(sample) => {
                let reason =
                    format!("a sample is {sample}; the loudest is 1, or 32768 in the range of 16 bits");
                Err(self.wrong(&reason, "check how it was made"))
            }
        }
    }

    /// Fills `bytes` as far as the source has any.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut n = 0;
        while n < bytes.len() {
            match self.source.read(&mut bytes[n..]) {
                Ok(0) => break,
                Ok(more) => {
                    n += more;
                    self.at += more as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&self.name, "read", &e)),
            }
        }
        Ok(n)
    }

    fn skip(&mut self, n: u64) -> Result<()> {
        let skipped = io::copy(&mut self.source.by_ref().take(n), &mut io::sink());
        self.at += skipped.map_err(|e| Error::io(&self.name, "read", &e))?;
        Ok(())
    }

    fn wrong(&self, reason: &str, help: &str) -> Error {
        Error::File { path: self.name.clone(), reason: reason.into(), help: help.into() }
    }
}
