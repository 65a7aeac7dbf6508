//! The formats that are read, one file each.

pub mod alibaba;
pub mod blkparse;
pub mod fio;
pub mod fiu;
mod lines;
pub mod msr;
pub mod recognise;
pub mod tencent;
pub mod vscsi;
pub mod vscsi_csv;

use std::fmt;
use std::str::FromStr;

pub use lines::{LineFormat, Lines, Parsed};

use crate::input::Buffer;
use crate::input::buffer::Broken;
use crate::record::{Op, Record};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// VMware's vscsiStats as text.
    VscsiCsv,
    /// VMware's vscsiStats in binary, version 1.
    Vscsi1,
    /// VMware's vscsiStats in binary, version 2, with response times.
    Vscsi2,
    /// MSR Cambridge, and others of SNIA's IOTTA repository.
    Msr,
    /// Alibaba's cloud block storage.
    Alibaba,
    /// Tencent's cloud block storage.
    Tencent,
    /// Florida International University.
    Fiu,
    /// Text of blkparse: requests as the device got them.
    Blkparse,
    /// Text of blkparse: requests as they were queued.
    BlkparseQueued,
    /// fio's iolog, version 2.
    Fio2,
    /// fio's iolog, version 3.
    Fio3,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 11] = [
        Format::VscsiCsv,
        Format::Vscsi1,
        Format::Vscsi2,
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Fiu,
        Format::Blkparse,
        Format::BlkparseQueued,
        Format::Fio2,
        Format::Fio3,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::VscsiCsv => "vscsi-csv",
            Format::Vscsi1 => "vscsi1",
            Format::Vscsi2 => "vscsi2",
            Format::Msr => "msr",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Fiu => "fiu",
            Format::Blkparse => "blkparse",
            Format::BlkparseQueued => "blkparse-q",
            Format::Fio2 => "fio2",
            Format::Fio3 => "fio3",
        }
    }

    /// What it is, and what stands in a record.
    pub fn about(self) -> &'static str {
        match self {
            Format::VscsiCsv => "VMware vscsiStats, text: serial, bytes, SG entries, read|write, LBN, µs",
            Format::Vscsi1 => "VMware vscsiStats, binary version 1: records of 32 bytes, µs",
            Format::Vscsi2 => "VMware vscsiStats, binary version 2: records of 40 bytes, µs, response times",
            Format::Msr => {
                "MSR Cambridge, SNIA IOTTA: time (100 ns), host, disk, Read|Write, offset, size, response (100 ns)"
            }
            Format::Alibaba => "Alibaba block storage: device, R|W, offset, length, µs",
            Format::Tencent => "Tencent block storage: s, sector, sectors, 0|1 (read, write), volume",
            Format::Fiu => "FIU: ns, pid, process, sector, sectors, R|W, major, minor, digests",
            Format::Blkparse => "blkparse text, what the device was asked: response from issue (D) to completion (C)",
            Format::BlkparseQueued => {
                "blkparse text, what was asked of the block layer: response from queued (Q) to completion (C)"
            }
            Format::Fio2 => "fio iolog version 2: file, action, offset, length; waits in µs",
            Format::Fio3 => "fio iolog version 3: µs, file, action, offset, length",
        }
    }

    /// It is recognised by its content; `blkparse-q` has to be asked for.
    pub fn is_recognised(self) -> bool {
        self != Format::BlkparseQueued
    }

    /// What its volume numbers are.
    pub fn volumes(self) -> Volumes {
        match self {
            Format::VscsiCsv | Format::Vscsi1 | Format::Vscsi2 => Volumes::None,
            Format::Msr | Format::Alibaba | Format::Tencent => Volumes::Numbers,
            Format::Fiu | Format::Blkparse | Format::BlkparseQueued => Volumes::Devices,
            Format::Fio2 | Format::Fio3 => Volumes::Files,
        }
    }

    pub(crate) fn decoder(self) -> Box<dyn Decode> {
        match self {
            Format::VscsiCsv => Box::new(Lines::<vscsi_csv::VscsiCsv>::default()),
            Format::Vscsi1 => Box::new(vscsi::Binary::<1>::default()),
            Format::Vscsi2 => Box::new(vscsi::Binary::<2>::default()),
            Format::Msr => Box::new(Lines::<msr::Msr>::default()),
            Format::Alibaba => Box::new(Lines::<alibaba::Alibaba>::default()),
            Format::Tencent => Box::new(Lines::<tencent::Tencent>::default()),
            Format::Fiu => Box::new(Lines::<fiu::Fiu>::default()),
            Format::Blkparse => Box::new(blkparse::Blkparse::new(b'D')),
            Format::BlkparseQueued => Box::new(blkparse::Blkparse::new(b'Q')),
            Format::Fio2 | Format::Fio3 => Box::new(Lines::<fio::Iolog>::default()),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            format!("'{text}' is no format of traces; expected one of {names}")
        })
    }
}

impl serde::Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for Format {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Format, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What the numbers of volumes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volumes {
    /// There is one, 0.
    None,
    /// The trace's own numbers.
    Numbers,
    /// Major and minor number of a Linux device, see [`device_number`].
    Devices,
    /// Files in the order in which they appear, from 0.
    Files,
}

impl Volumes {
    /// How a volume is called, and asked for.
    pub fn show(self, volume: u32) -> String {
        match self {
            Volumes::Devices => format!("{},{}", volume >> 20, volume & 0xf_ffff),
            Volumes::None | Volumes::Numbers | Volumes::Files => volume.to_string(),
        }
    }
}

/// A volume as people give it: a number, or `major,minor`.
///
/// # Errors
/// It is neither.
pub fn parse_volume(text: &str) -> Result<u32, String> {
    let expected = || format!("'{text}' is no volume; expected a number, or major,minor of a device");
    match text.split_once(',') {
        None => text.trim().parse().map_err(|_| expected()),
        Some((major, minor)) => {
            let part = |text: &str| text.trim().parse::<u64>().map_err(|_| expected());
            device_number(part(major)?, part(minor)?)
        }
    }
}

/// Major and minor number in one, as the kernel keeps them: 12 and 20 bits.
///
/// # Errors
/// One is too large.
pub fn device_number(major: u64, minor: u64) -> Result<u32, String> {
    if major >= 1 << 12 || minor >= 1 << 20 {
        return Err(format!(
            "device {major},{minor}; expected a major number below 4096 and a minor one below 1048576"
        ));
    }
    Ok((major << 20 | minor) as u32)
}

/// What was read and is no record, or less than one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Commands that move no data: inquiries, reservations and the like.
    pub other_commands: u64,
    /// Reads, writes and trims of nothing.
    pub empty: u64,
    /// Requests whose completion is not in the trace, where others have one.
    pub unanswered: u64,
    /// The last line has no end, so its last number may be cut off.
    pub last_line_unended: bool,
}

/// Turns bytes into records.
pub(crate) trait Decode: Send {
    /// Appends some records: a few thousand at most. `false`: that was the end.
    fn fill(&mut self, input: &mut Buffer, records: &mut Vec<Record>) -> Result<bool, Broken>;

    /// What was read besides.
    fn aside(&self) -> Aside;

    /// Names of volumes, where they are files.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Records that [`Decode::fill`] appends at once.
const BATCH: usize = 1024;

/// Read or write, in the words that most formats use.
#[inline]
fn op_of(word: &[u8]) -> Result<Op, String> {
    match word {
        b"R" | b"r" | b"Read" | b"read" | b"READ" => Ok(Op::Read),
        b"W" | b"w" | b"Write" | b"write" | b"WRITE" => Ok(Op::Write),
        // What our own writers call the others; no published trace has them.
        b"Trim" | b"trim" => Ok(Op::Trim),
        b"Flush" | b"flush" => Ok(Op::Flush),
        _ => Err(crate::input::fields::unexpected("the operation", word, "a read or a write")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_formats() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let message = "dtrace".parse::<Format>().expect_err("unknown");
        assert!(message.contains("vscsi-csv, vscsi1") && message.contains("'dtrace'"), "{message}");
    }

    #[test]
    fn volumes_are_numbers_or_devices() {
        assert_eq!(parse_volume("12"), Ok(12));
        let device = parse_volume("8,16").expect("a device");
        assert_eq!(Volumes::Devices.show(device), "8,16");
        assert_eq!(Volumes::Numbers.show(device), device.to_string());
        assert!(parse_volume("8,x").is_err() && parse_volume("4096,0").is_err() && parse_volume("sda").is_err());
    }
}
