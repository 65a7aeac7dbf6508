//! What is written is read again, as far as the format can say it; bytes that nobody wrote are never more than an error.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use trace::info::{Characteriser, Source};
use trace::playback::{Map, Pace, Playback, Survey};
use trace::{Format, LARGEST_OFFSET, Op, OutputFormat, Reader, Record, TraceError, Wanted, Writer};

fn read(path: &Path, wanted: &Wanted) -> Vec<Record> {
    let reader = Reader::open(path, wanted).unwrap_or_else(|error| panic!("{error}"));
    reader.collect::<Result<Vec<Record>, TraceError>>().unwrap_or_else(|error| panic!("{error}"))
}

/// Records in sectors and in µs, which every format can say.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Trim), Just(Op::Flush)];
    let response = proptest::option::of(1u64..1 << 40);
    let one = (op, 0u64..1 << 50, 1u64..4096, 0u64..1 << 30, response, 0u32..5);
    let one = one.prop_map(|(op, sector, sectors, gap, response, volume)| {
        let (offset, bytes) = if op == Op::Flush { (0, 0) } else { (sector * 512, sectors * 512) };
        Record { time_ns: gap * 1000, offset, bytes, response_ns: response.map(|us| us * 1000), volume, op }
    });
    prop::collection::vec(one, 1..60).prop_map(|mut records| {
        let mut now = 0;
        for record in &mut records {
            now += record.time_ns;
            record.time_ns = now;
        }
        records
    })
}

/// What a format keeps of a record.
fn kept(format: OutputFormat, record: &Record) -> Record {
    match format {
        OutputFormat::Msr => *record,
        OutputFormat::Fio3 => Record { response_ns: None, ..*record },
        OutputFormat::Vscsi2 => Record { volume: 0, ..*record },
        OutputFormat::VscsiCsv => Record { volume: 0, response_ns: None, ..*record },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(records in records(), ending in prop::sample::select(vec!["", ".gz", ".zst", ".xz", ".bz2"])) {
        let directory = tempfile::tempdir().expect("a directory");
        for format in OutputFormat::ALL {
            let path = directory.path().join(format!("{format}{ending}"));
            let mut writer = Writer::create(&path, format, |volume| format!("/v{volume}")).expect("a new file").from_epoch(0);
            for record in &records {
                writer.write(record).expect("written");
            }
            let left = writer.finish().expect("finished");
            prop_assert_eq!((left.records, left.widened), (0, 0));
            let wanted = Wanted { format: Some(format.name().parse().expect("a format that is read")), volume: None };
            let mut expected: Vec<Record> = records.iter().map(|record| kept(format, record)).collect();
            if format == OutputFormat::Fio3 {
                // Files are numbered as they appear.
                let mut seen = Vec::new();
                for record in &mut expected {
                    if !seen.contains(&record.volume) {
                        seen.push(record.volume);
                    }
                    record.volume = seen.iter().position(|volume| *volume == record.volume).expect("seen") as u32;
                }
            }
            prop_assert_eq!(read(&path, &wanted), expected, "{}", format);
        }
    }

    #[test]
    fn addresses_between_sectors_are_widened_and_said(offset in 0u64..1 << 40, bytes in 1u64..100_000) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.vscsi");
        let mut writer = Writer::create(&path, OutputFormat::Vscsi2, |_| String::new()).expect("a new file");
        writer.write(&Record { offset, bytes, ..Record::default() }).expect("written");
        let left = writer.finish().expect("finished");
        let record = read(&path, &Wanted::default())[0];
        prop_assert!(record.offset <= offset && record.end() >= offset + bytes);
        prop_assert!(offset - record.offset < 512 && record.end() - (offset + bytes) < 512);
        prop_assert_eq!(left.widened == 0, (record.offset, record.bytes) == (offset, bytes));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0..Format::ALL.len()) {
        let wanted = Wanted { format: Some(Format::ALL[at]), volume: None };
        if let Ok(reader) = Reader::new(Cursor::new(bytes), Path::new("t"), &wanted) {
            for record in reader.flatten() {
                prop_assert!(record.check().is_ok() && record.end() <= LARGEST_OFFSET);
            }
        }
    }

    #[test]
    fn what_is_played_lies_on_the_device(
        records in records(),
        sectors in 1u64..5000,
        sector in prop::sample::select(vec![512u32, 4096]),
        map in prop::sample::select(Map::ALL.to_vec()),
        pace in prop::sample::select(vec![Pace::Recorded, Pace::Scaled(0.5), Pace::Depth]),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.csv");
        let mut writer = Writer::create(&path, OutputFormat::Msr, |_| String::new()).expect("a new file");
        for record in &records {
            writer.write(record).expect("written");
        }
        writer.finish().expect("finished");
        let wanted = Wanted { format: Some(Format::Msr), volume: None };
        let survey = Survey::of(&path, &wanted, map).expect("a trace");
        let bytes = sectors * u64::from(sector);
        let Ok(playback) = Playback::new(&path, &wanted, &survey, map, pace, bytes, sector) else {
            prop_assert_eq!(map, Map::Compact, "only what must fit may not fit");
            return Ok(());
        };
        let (mut due, mut requests) = (0, 0);
        for item in playback {
            let item = item.expect("it plays");
            prop_assert!(item.due_ns >= due && (item.due_ns == 0 || pace != Pace::Depth));
            due = item.due_ns;
            if item.op == Op::Flush {
                prop_assert_eq!((item.offset, item.bytes), (0, 0));
            } else {
                prop_assert!(item.bytes > 0 && item.offset + u64::from(item.bytes) <= bytes, "{:?} of {}", item, bytes);
                prop_assert!(item.offset.is_multiple_of(u64::from(sector)) && item.bytes.is_multiple_of(sector));
            }
            requests += u64::from(item.op != Op::Trim);
        }
        prop_assert_eq!(requests, records.iter().filter(|record| record.op != Op::Trim).count() as u64);
    }

    #[test]
    fn figures_agree_with_counting(records in records()) {
        let mut characteriser = Characteriser::default();
        records.iter().for_each(|record| characteriser.add(record));
        let info = characteriser.finish(Source::default());
        let count = |op: Op| records.iter().filter(|record| record.op == op).count() as u64;
        let ops = &info.requests;
        let counted = [ops.read.requests, ops.write.requests, ops.trim.requests, ops.flush.requests];
        prop_assert_eq!(counted, Op::ALL.map(count));
        let mut touched = std::collections::HashSet::new();
        let (mut written, mut again) = (std::collections::HashSet::new(), 0u64);
        for record in records.iter().filter(|record| record.op.has_data()) {
            for block in record.offset / 4096..record.end().div_ceil(4096) {
                touched.insert((record.volume, block));
                again += u64::from(record.op == Op::Write && !written.insert((record.volume, block)));
            }
        }
        prop_assert_eq!(info.footprint.touched.blocks, touched.len() as u64);
        prop_assert_eq!(info.footprint.written.blocks, written.len() as u64);
        if let Some(percent) = info.overwrites.overwritten_percent {
            let expected = 100.0 * again as f64 / info.overwrites.written_blocks as f64;
            prop_assert!((percent - expected).abs() < 1e-9);
        }
        let rows = &info.timeline.rows;
        prop_assert!(rows.len() <= 512);
        prop_assert_eq!(rows.iter().map(|row| row.reads + row.writes + row.trims + row.flushes).sum::<u64>(), info.records);
        prop_assert_eq!(rows.last().map_or(0, |row| row.footprint_blocks), info.footprint.touched.blocks);
        serde_json::to_string(&info).expect("it can be printed");
        prop_assert!(!trace::info::table(&info).is_empty());
    }
}

#[test]
fn half_a_trace_is_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.csv.zst");
    let mut writer = Writer::create(&path, OutputFormat::Msr, |_| String::new()).expect("a new file");
    let record = Record { time_ns: 0, offset: 0, bytes: 4096, response_ns: None, volume: 0, op: Op::Read };
    writer.write(&record).expect("written");
    assert!(path.exists());
    drop(writer);
    assert!(!path.exists(), "it was given up, and stays");
    let mut writer = Writer::create(&path, OutputFormat::Msr, |_| String::new()).expect("its name is free again");
    writer.write(&record).expect("written");
    writer.finish().expect("finished");
    assert!(path.exists(), "a whole trace stays");
    assert!(Writer::create(&path, OutputFormat::Msr, |_| String::new()).is_err(), "it is there already");
    assert!(path.exists(), "what was there before stays");
}
