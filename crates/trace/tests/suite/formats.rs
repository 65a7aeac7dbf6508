//! Every format, from a small file made by hand; what is wrong in one; compression.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use trace::{Aside, Compression, Format, Op, Reader, Record, TraceError, Wanted};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read_as(name: &str, wanted: &Wanted) -> (Vec<Record>, Format, Aside) {
    let mut reader = Reader::open(&data(name), wanted).unwrap_or_else(|error| panic!("{error}"));
    let records =
        reader.by_ref().collect::<Result<Vec<Record>, TraceError>>().unwrap_or_else(|error| panic!("{error}"));
    (records, reader.format(), reader.aside())
}

fn read(name: &str) -> (Vec<Record>, Format, Aside) {
    read_as(name, &Wanted::default())
}

/// Time, operation, offset, bytes, response, volume.
type Brief = (u64, Op, u64, u64, Option<u64>, u32);

fn brief(records: &[Record]) -> Vec<Brief> {
    records.iter().map(|r| (r.time_ns, r.op, r.offset, r.bytes, r.response_ns, r.volume)).collect()
}

use Op::{Flush, Read, Trim, Write as Put};

#[test]
fn vscsi_text() {
    let (records, format, aside) = read("vscsi.csv");
    assert_eq!(format, Format::VscsiCsv);
    let expected = [
        (900_100_000, Put, 2048 * 512, 4096, None, 0),
        (900_350_000, Read, 4096 * 512, 8192, None, 0),
        (901_000_000, Put, 2056 * 512, 512, None, 0),
    ];
    assert_eq!(brief(&records), expected);
    assert_eq!(aside.empty, 1);
}

#[test]
fn vscsi_binary() {
    let (records, format, aside) = read("vscsi1.bin");
    assert_eq!(format, Format::Vscsi1);
    let expected = [
        (900_100_000, Put, 2048 * 512, 4096, None, 0),
        (900_350_000, Read, 4096 * 512, 8192, None, 0),
        (901_000_000, Put, 2056 * 512, 512, None, 0),
    ];
    assert_eq!(brief(&records), expected);
    assert_eq!(aside.other_commands, 1);
    let (records, format, aside) = read("vscsi2.bin");
    assert_eq!(format, Format::Vscsi2);
    let expected = [
        (900_100_000, Put, 2048 * 512, 4096, Some(50_000), 0),
        (900_350_000, Read, 4096 * 512, 8192, Some(400_000), 0),
        (900_360_000, Flush, 0, 0, Some(700_000), 0),
        (901_000_000, Put, 2056 * 512, 512, None, 0),
    ];
    assert_eq!(brief(&records), expected);
    assert_eq!(aside.other_commands, 1, "the list of an UNMAP says nothing");
}

#[test]
fn msr() {
    let (records, format, _) = read("msr.csv");
    assert_eq!(format, Format::Msr);
    let expected = [
        (12_900_000_000_000_010_000, Read, 1_048_576, 4096, Some(2_500_000), 0),
        (12_900_000_000_000_035_000, Put, 8192, 16_384, Some(120_000), 1),
        (12_900_000_000_000_036_000, Read, 1_052_672, 4096, Some(90_000), 0),
    ];
    assert_eq!(brief(&records), expected);
}

#[test]
fn clouds() {
    let (records, format, _) = read("alibaba.csv");
    assert_eq!(format, Format::Alibaba);
    let expected = [
        (1_577_808_000_000_100_000, Read, 1_048_576, 4096, None, 7),
        (1_577_808_000_000_350_000, Put, 8192, 16_384, None, 7),
        (1_577_808_000_000_360_000, Read, 1_052_672, 512, None, 9),
    ];
    assert_eq!(brief(&records), expected);
    let (records, format, _) = read("tencent.csv");
    assert_eq!(format, Format::Tencent);
    let expected = [
        (1_538_323_200_000_000_000, Read, 1_048_576, 4096, None, 1063),
        (1_538_323_200_000_000_000, Put, 8192, 16_384, None, 1063),
        (1_538_323_201_000_000_000, Read, 1_052_672, 512, None, 1064),
    ];
    assert_eq!(brief(&records), expected);
}

#[test]
fn fiu() {
    let (records, format, _) = read("fiu.blkparse");
    assert_eq!(format, Format::Fiu);
    let expected = [
        (1_000_100, Read, 1_048_576, 4096, None, 6 << 20),
        (1_000_350, Put, 8192, 16_384, None, 6 << 20),
        (1_000_360, Read, 1_052_672, 4096, None, 8 << 20 | 1),
    ];
    assert_eq!(brief(&records), expected);
}

#[test]
fn blkparse() {
    let (records, format, aside) = read("blkparse.txt");
    assert_eq!(format, Format::Blkparse);
    let device = 8 << 20;
    let expected = [
        (110_000, Read, 1_048_576, 4096, Some(400_000), device),
        (355_000, Put, 8192, 16_384, Some(300_000), device),
        (701_000, Flush, 0, 0, None, device),
        (810_000, Trim, 2_097_152, 1_048_576, Some(100_000), device),
    ];
    assert_eq!(brief(&records), expected);
    assert_eq!(aside, Aside::default());
    let wanted = Wanted { format: Some(Format::BlkparseQueued), volume: None };
    let (records, _, _) = read_as("blkparse.txt", &wanted);
    let expected = [
        (100_000, Read, 1_048_576, 4096, Some(410_000), device),
        (350_000, Put, 8192, 16_384, Some(305_000), device),
        (700_000, Flush, 0, 0, None, device),
        (800_000, Trim, 2_097_152, 1_048_576, Some(110_000), device),
    ];
    assert_eq!(brief(&records), expected);
}

#[test]
fn fio() {
    let (records, format, _) = read("fio2.iolog");
    assert_eq!(format, Format::Fio2);
    let expected = [
        (0, Read, 1_048_576, 4096, None, 0),
        (250_000, Put, 8192, 16_384, None, 0),
        (260_000, Flush, 0, 0, None, 0),
        (260_000, Trim, 2_097_152, 1_048_576, None, 0),
    ];
    assert_eq!(brief(&records), expected);
    let (records, format, _) = read("fio3.iolog");
    assert_eq!(format, Format::Fio3);
    let expected = [
        (100_000, Read, 1_048_576, 4096, None, 0),
        (350_000, Put, 8192, 16_384, None, 1),
        (360_000, Flush, 0, 0, None, 0),
        (400_000, Trim, 2_097_152, 1_048_576, None, 0),
    ];
    assert_eq!(brief(&records), expected);
    let mut reader = Reader::open(&data("fio3.iolog"), &Wanted { format: None, volume: Some(1) }).expect("a trace");
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!((reader.other_volumes(), reader.volume_name(1).as_str()), (3, "/tmp/b"));
}

/// What is said of a text, as a file called `t`.
fn complaint(bytes: &[u8], format: Option<Format>) -> String {
    let wanted = Wanted { format, volume: None };
    match Reader::new(Cursor::new(bytes.to_vec()), Path::new("t"), &wanted) {
        Err(error) => error.to_string(),
        Ok(reader) => match reader.collect::<Result<Vec<Record>, TraceError>>() {
            Err(error) => error.to_string(),
            Ok(records) => panic!("{records:?}"),
        },
    }
}

#[test]
fn mistakes_are_said_with_their_line_and_what_was_expected() {
    let good = "7,R,0,4096,1\n7,W,4096,4096,2\n";
    for (line, expected) in [
        ("7,X,0,4096,3\n", "t: line 3: the operation is 'X'; expected a read or a write; a line is: device, R|W"),
        ("7,R,0,4096\n", "t: line 3: the time is missing"),
        ("7,R,0,4096,3,9\n", "t: line 3: more than 5 fields"),
        ("7,R,-1,4096,3\n", "t: line 3: the offset is '-1'; expected a whole number below 2^64"),
        ("99999999999,R,0,512,3\n", "t: line 3: the device is 99999999999; expected a whole number below 2^32"),
        ("7,R,0,4096,99999999999999999999\n", "t: line 3: the time is '99999999999999999999'; expected a whole number"),
        ("7,R,0,4096,18446744073709551615\n", "expected a time that is below 2^64 nanoseconds (584 years)"),
        ("7,R,0,2000000000,3\n", "a request of 2000000000 bytes; expected at most 1073741824 (1 GiB)"),
        ("7,R,9223372036854775807,4096,3\n", "expected a request that ends below 2^63 (8 EiB)"),
        ("7,W,81", "t: line 3: the file ends within this line, so its last record is cut off: the length is missing"),
    ] {
        let message = complaint(format!("{good}{line}").as_bytes(), None);
        assert!(message.contains(expected), "{line}: {message}");
    }
    let message = complaint(b"0,512\n", Some(Format::Tencent));
    assert!(message.contains("t: line 1: the size is missing") || message.contains("'0,512'"), "{message}");
    let message = complaint(b"not a trace\nat all\n", None);
    assert!(message.contains("t: its format is not recognised") && message.contains("'not a trace'"), "{message}");
    assert!(complaint(b"", None).contains("it is empty"));
    assert!(complaint(&[0; 100], None).contains("it is binary"));
    assert!(complaint(b"fio version 3 iolog\n5 /a erase 0 0\n", None).contains("t: line 2: the action is 'erase'"));
    assert!(complaint(b"fio version 4 iolog\n", Some(Format::Fio3)).contains("line 1: the first line is"));
}

#[test]
fn a_binary_record_is_named_by_its_byte() {
    let mut bytes = std::fs::read(data("vscsi1.bin")).expect("read");
    bytes.truncate(100);
    let message = complaint(&bytes, None);
    assert!(
        message.contains("t: the record at byte 96: the last record is cut off after 4 bytes; expected 32"),
        "{message}"
    );
    let mut bytes = std::fs::read(data("vscsi1.bin")).expect("read");
    bytes[32 + 15] = 7;
    let message = complaint(&bytes, Some(Format::Vscsi1));
    assert!(message.contains("t: the record at byte 32: its version is 0x0700; expected 0x0100"), "{message}");
}

#[test]
fn the_records_before_a_mistake_are_given() {
    let text = "7,R,0,4096,1\n7,W,4096,4096,2\nrubbish\n7,R,0,4096,3\n";
    let mut reader = Reader::new(Cursor::new(text), Path::new("t"), &Wanted::default()).expect("recognised");
    assert!(reader.next().is_some_and(|record| record.is_ok()));
    assert!(reader.next().is_some_and(|record| record.is_ok()));
    assert!(reader.next().is_some_and(|record| record.is_err()));
    assert!(reader.next().is_none(), "nothing comes behind it");
}

#[test]
fn a_last_line_without_an_end_is_read_and_told() {
    let mut reader =
        Reader::new(Cursor::new("7,R,0,4096,1\n7,R,0,512,12"), Path::new("t"), &Wanted::default()).expect("text");
    assert_eq!(reader.by_ref().filter(|record| record.is_ok()).count(), 2);
    assert!(reader.aside().last_line_unended);
}

fn compressed(plain: &[u8], how: Compression) -> Vec<u8> {
    let mut to = Vec::new();
    match how {
        Compression::Plain => to.extend(plain),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(&mut to, flate2::Compression::fast());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory");
        }
        Compression::Zstd => to = zstd::encode_all(plain, 1).expect("memory"),
        Compression::Xz => {
            let mut encoder = liblzma::write::XzEncoder::new(&mut to, 1);
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory");
        }
        Compression::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(&mut to, bzip2::Compression::fast());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory");
        }
    }
    to
}

const COMPRESSED: [Compression; 4] = [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2];

#[test]
fn compressed_traces_are_read_like_plain_ones() {
    let plain = std::fs::read(data("msr.csv")).expect("read");
    let (expected, _, _) = read("msr.csv");
    for how in COMPRESSED {
        // Two after each other, as `cat a.gz b.gz` makes them, are one.
        let second = plain.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
        let bytes = [compressed(&plain, how), compressed(&plain[second..], how)].concat();
        let mut reader = Reader::new(Cursor::new(bytes), Path::new("t"), &Wanted::default()).expect("recognised");
        let records = reader.by_ref().collect::<Result<Vec<Record>, TraceError>>().expect("sound");
        assert_eq!(records, [expected.clone(), expected.clone()].concat(), "{how:?}");
        assert_eq!(reader.compression(), how);
    }
}

#[test]
fn compressed_data_that_is_cut_off_or_damaged_is_said() {
    let lines: String =
        (0..200_000).map(|at| format!("7,R,{},4096,{at}\n", at * 7919 % 1_000_003_u64 * 4096)).collect();
    for how in COMPRESSED {
        let mut bytes = compressed(lines.as_bytes(), how);
        let half = bytes.len() / 2;
        let message = complaint(&bytes[..half], None);
        let name = how.name().expect("a name");
        assert!(message.starts_with("t: ") && message.contains(&format!("cut off {name} data")), "{how:?}: {message}");
        bytes[half..half + 64].iter_mut().for_each(|byte| *byte ^= 0x55);
        assert!(!complaint(&bytes, None).is_empty());
    }
}
