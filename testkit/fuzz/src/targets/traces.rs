//! Block traces: every format as it is named, recognition, compression, and what is made of the records.

use std::io::Cursor;
use std::path::Path;

use trace::info::{Characteriser, Source};
use trace::{Format, LARGEST_OFFSET, LARGEST_REQUEST, Op, Reader, Wanted};

use super::Target;

pub const RECOGNISED: Target = Target {
    name: "trace",
    about: "block traces of every format, plain and compressed, recognised by their content",
    weight: 40,
    corpus: || {
        let plain = [VSCSI_CSV, MSR, ALIBABA, TENCENT, FIU, BLKPARSE, FIO2, FIO3].map(|text| text.as_bytes().to_vec());
        let binary = [vscsi(1), vscsi(2)];
        let compressed = [
            // Two lines of Alibaba's, by gzip, zstd and bzip2.
            GZIP.to_vec(),
            ZSTD.to_vec(),
            BZIP2.to_vec(),
            XZ.to_vec(),
        ];
        plain.into_iter().chain(binary).chain(compressed).collect()
    },
    words: &["fio version 2 iolog\n", "fio version 3 iolog\n", "read", "W", "8,0", "\u{1f}\u{8b}"],
    run: |input| read(input, None),
};

macro_rules! named {
    ($constant:ident, $format:ident, $name:literal, $corpus:expr, $words:expr) => {
        pub const $constant: Target = Target {
            name: $name,
            about: concat!("block traces of the format ", $name),
            weight: 10,
            corpus: || $corpus,
            words: $words,
            run: |input| read(input, Some(Format::$format)),
        };
    };
}

named!(VSCSI_TEXT, VscsiCsv, "vscsi-csv", vec![VSCSI_CSV.into()], &["read", "write", "trim", "flush", "#"]);
named!(VSCSI_1, Vscsi1, "vscsi1", vec![vscsi(1)], &["\u{28}\0\0\u{1}", "\u{2a}\0\0\u{1}"]);
named!(VSCSI_2, Vscsi2, "vscsi2", vec![vscsi(2)], &["\u{28}\0\0\u{2}", "\u{42}\0\0\u{2}", "\u{35}\0\0\u{2}"]);
named!(MSR_TEXT, Msr, "msr", vec![MSR.into()], &["Read", "Write", "Timestamp,"]);
named!(ALIBABA_TEXT, Alibaba, "alibaba", vec![ALIBABA.into()], &["R", "W"]);
named!(TENCENT_TEXT, Tencent, "tencent", vec![TENCENT.into()], &["0", "1", "0.000000001"]);
named!(FIU_TEXT, Fiu, "fiu", vec![FIU.into()], &["R", "W"]);
named!(BLKPARSE_D, Blkparse, "blkparse", vec![BLKPARSE.into()], BLKPARSE_WORDS);
named!(BLKPARSE_Q, BlkparseQueued, "blkparse-q", vec![BLKPARSE.into()], BLKPARSE_WORDS);
named!(
    IOLOG_2,
    Fio2,
    "fio2",
    vec![FIO2.into()],
    &["fio version 2 iolog", "wait", "read", "write", "trim", "sync", "add"]
);
named!(
    IOLOG_3,
    Fio3,
    "fio3",
    vec![FIO3.into()],
    &["fio version 3 iolog", "wait", "read", "write", "trim", "sync", "open"]
);

const BLKPARSE_WORDS: &[&str] =
    &["8,0", " Q ", " D ", " C ", " + ", "FWFS", "DS", "RA", "[0]", "CPU0 (8,0):", "4294967295"];

const VSCSI_CSV: &str = "#Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,Time Stamp\n\
    11,4096,1,write,2048,900100\n12,8192,2,read,4096,900350\n";
const MSR: &str =
    "129000000000000100,mail,0,Read,1048576,4096,25000\n129000000000000350,mail,1,Write,8192,16384,1200\n";
const ALIBABA: &str = "7,R,1048576,4096,1577808000000100\n7,W,8192,16384,1577808000000350\n";
const TENCENT: &str = "1538323200,2048,8,0,1063\n1538323200.5,16,32,1,1064\n";
const FIU: &str = "1000100 4892 syslogd 2048 8 R 6 0 d41d8cd9\n1000350 17 kjournald 16 32 W 8 1\n";
const BLKPARSE: &str = "\
  8,0    0        1     0.000100000   697  Q   R 2048 + 8 [imapd]
  8,0    0        5     0.000110000   697  D   R 2048 + 8 [imapd]
  8,0    1        1     0.000350000   221  Q  WS 16 + 32 [jbd2]
  8,0    1        2     0.000355000   221  D  WS 16 + 32 [jbd2]
  8,0    0        6     0.000510000     0  C   R 2048 + 8 [0]
  8,0    1        3     0.000655000     0  C  WS 16 + 32 [0]
  8,0    1        5     0.000701000   221  D  FF [jbd2]
CPU0 (8,0):
";
const FIO2: &str =
    "fio version 2 iolog\n/d add\n/d open\n/d read 1048576 4096\n/d wait 250 0\n/d write 8192 16384\n/d sync 0 0\n";
const FIO3: &str = "fio version 3 iolog\n0 /a add\n1 /a open\n100 /a read 1048576 4096\n400 /b trim 2097152 1048576\n";

/// The two lines of `ALIBABA`.
const GZIP: &[u8] = include_bytes!("traces/alibaba.gz");
const ZSTD: &[u8] = include_bytes!("traces/alibaba.zst");
const BZIP2: &[u8] = include_bytes!("traces/alibaba.bz2");
const XZ: &[u8] = include_bytes!("traces/alibaba.xz");

/// Three records of a version.
fn vscsi(version: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (command, length, lbn) in [(0x2au16, 4096u32, 2048u64), (0x28, 8192, 4096), (0x42, 1 << 20, 16)] {
        let tail: [&[u8]; 2] = [&lbn.to_le_bytes(), &900_100u64.to_le_bytes()];
        if version == 1 {
            bytes.extend(
                [&[1, 0, 0, 0x80], &length.to_le_bytes()[..], &[1, 0, 0, 0], &command.to_le_bytes(), &[0, 1]].concat(),
            );
            bytes.extend(tail.concat());
        } else {
            bytes.extend(
                [&command.to_le_bytes()[..], &[0, 2], &[1, 0, 0, 0], &length.to_le_bytes(), &[1, 0, 0, 0]].concat(),
            );
            bytes.extend(tail.concat());
            bytes.extend(50u64.to_le_bytes());
        }
    }
    bytes
}

/// Blocks of one input that are characterised: a request of 1 GiB has 262,144 of them, and an input holds hundreds of requests.
const BLOCKS: u64 = 20_000;

fn read(input: &[u8], format: Option<Format>) {
    let wanted = Wanted { format, volume: None };
    let reader = match Reader::new(Cursor::new(input.to_vec()), Path::new("t"), &wanted) {
        Ok(reader) => reader,
        Err(error) => return assert!(error.to_string().starts_with("t: ")),
    };
    let (mut characteriser, mut blocks) = (None, 0);
    for record in reader {
        match record {
            Ok(record) => {
                assert!(record.end() <= LARGEST_OFFSET && (record.bytes > 0) == (record.op != Op::Flush), "{record:?}");
                assert!(!record.op.has_data() || record.bytes <= LARGEST_REQUEST);
                blocks += if record.op.has_data() { record.bytes / 4096 + 2 } else { 0 };
                if blocks <= BLOCKS {
                    characteriser.get_or_insert_with(Characteriser::default).add(&record);
                }
            }
            Err(error) => {
                let message = error.to_string();
                assert!(message.starts_with("t: ") && message.len() < 1000, "{message}");
            }
        }
    }
    // Most inputs hold no record, and figures take longer to set up than such an input to read.
    let Some(characteriser) = characteriser else { return };
    let info = characteriser.finish(Source::default());
    assert!(!trace::info::table(&info).is_empty() && info.timeline.rows.len() <= 512);
}
