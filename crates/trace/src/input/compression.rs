//! Compressed traces: recognised by their first bytes when read, by the file's ending when written.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    Plain,
    /// gzip, several members allowed.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
}

/// First bytes of each.
const MAGIC: &[(&[u8], Compression)] = &[
    (&[0x1f, 0x8b], Compression::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], Compression::Xz),
    (b"BZh", Compression::Bzip2),
];

/// Bytes that are read from the file at once.
const CHUNK: usize = 256 << 10;
/// A window of 128 MiB, as `zstd --long` makes them, and nothing larger: what a file says must not decide about memory.
const ZSTD_WINDOW_LOG: u32 = 27;
/// Memory that an xz file may ask for: what `xz -9` needs, twice.
const XZ_MEMORY: u64 = 128 << 20;

impl Compression {
    /// Of a file that begins so.
    pub fn of_content(beginning: &[u8]) -> Compression {
        let found = MAGIC.iter().find(|(magic, _)| beginning.starts_with(magic));
        found.map_or(Compression::Plain, |(_, compression)| *compression)
    }

    /// Of a file that is called so.
    pub fn of_name(path: &Path) -> Compression {
        match path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            Some("xz") => Compression::Xz,
            Some("bz2") => Compression::Bzip2,
            _ => Compression::Plain,
        }
    }

    /// What people call it.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Compression::Plain => None,
            Compression::Gzip => Some("gzip"),
            Compression::Zstd => Some("zstd"),
            Compression::Xz => Some("xz"),
            Compression::Bzip2 => Some("bzip2"),
        }
    }
}

/// The decompressed bytes of anything that can be read.
///
/// # Errors
/// Its first bytes cannot be read, or the decoder cannot be made.
pub fn decoded(input: impl Read + Send + 'static) -> io::Result<(Box<dyn Read + Send>, Compression)> {
    let mut input = BufReader::with_capacity(CHUNK, input);
    let compression = Compression::of_content(input.fill_buf()?);
    let decoded: Box<dyn Read + Send> = match compression {
        Compression::Plain => Box::new(input),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(input, stream))
        }
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
    };
    Ok((decoded, compression))
}

/// A file that compresses what is written to it.
pub enum Encoder {
    /// As it is.
    Plain(BufWriter<File>),
    /// gzip.
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    /// Zstandard.
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
    /// xz.
    Xz(liblzma::write::XzEncoder<BufWriter<File>>),
    /// bzip2.
    Bzip2(bzip2::write::BzEncoder<BufWriter<File>>),
}

impl Encoder {
    /// Onto a file, each with its usual level.
    ///
    /// # Errors
    /// The encoder cannot be made.
    pub fn new(file: File, compression: Compression) -> io::Result<Encoder> {
        let file = BufWriter::with_capacity(CHUNK, file);
        Ok(match compression {
            Compression::Plain => Encoder::Plain(file),
            Compression::Gzip => Encoder::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Compression::Zstd => Encoder::Zstd(zstd::stream::write::Encoder::new(file, 0)?),
            Compression::Xz => Encoder::Xz(liblzma::write::XzEncoder::new(file, 6)),
            Compression::Bzip2 => Encoder::Bzip2(bzip2::write::BzEncoder::new(file, bzip2::Compression::default())),
        })
    }

    /// The end: everything is in the file.
    ///
    /// # Errors
    /// The file takes nothing more.
    pub fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Encoder::Plain(file) => file,
            Encoder::Gzip(encoder) => encoder.finish()?,
            Encoder::Zstd(encoder) => encoder.finish()?,
            Encoder::Xz(encoder) => encoder.finish()?,
            Encoder::Bzip2(encoder) => encoder.finish()?,
        };
        file.flush()
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoder::Plain(file) => file.write(bytes),
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
            Encoder::Xz(encoder) => encoder.write(bytes),
            Encoder::Bzip2(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Plain(file) => file.flush(),
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
            Encoder::Xz(encoder) => encoder.flush(),
            Encoder::Bzip2(encoder) => encoder.flush(),
        }
    }
}
