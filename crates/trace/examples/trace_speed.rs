//! Records a second and memory, format by format: `cargo run --release -p openvsl-trace --example trace_speed -- [FILE] [RECORDS]`. A FILE is read
//! again and again until so many records are through; before it the same number of made-up ones in every format. Each is read, and
//! characterised. Rates are by processor time of this program's one thread, so that they mean something on a machine that others use too.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use trace::generate::MailServer;
use trace::info::Characteriser;
use trace::{Reader, Wanted};

/// Some bytes, so many times, behind a beginning that comes once.
struct Again {
    beginning: Cursor<Vec<u8>>,
    bytes: Vec<u8>,
    at: usize,
    left: u64,
}

impl Read for Again {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let count = self.beginning.read(to)?;
        if count > 0 {
            return Ok(count);
        }
        if self.at == self.bytes.len() {
            if self.left == 0 {
                return Ok(0);
            }
            (self.at, self.left) = (0, self.left - 1);
        }
        let count = to.len().min(self.bytes.len() - self.at);
        to[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Peak memory of this process, MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) >> 10
}

/// Seconds that this process has had a processor.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn measure(name: &str, beginning: &[u8], bytes: &[u8], records_in: u64, records: u64) {
    let again = || Again {
        beginning: Cursor::new(beginning.to_vec()),
        bytes: bytes.to_vec(),
        at: bytes.len(),
        left: records.div_ceil(records_in),
    };
    let reader = || Reader::new(again(), Path::new(name), &Wanted::default()).unwrap_or_else(|error| panic!("{error}"));
    let began = processor();
    let (mut count, mut sum) = (0u64, 0u64);
    for record in reader() {
        let record = record.unwrap_or_else(|error| panic!("{error}"));
        count += 1;
        sum = sum.wrapping_add(record.offset);
    }
    let read = processor() - began;
    let (rate, size) = (count as f64 / read / 1e6, bytes.len() as f64 * (records.div_ceil(records_in)) as f64);
    print!("{name:<12} {count:>10} records {rate:>7.2} M/s {:>7.0} MB/s", size / read / 1e6);
    let began = processor();
    let mut characteriser = Characteriser::default();
    let mut characterised = 0u64;
    for record in reader().take((count / 4) as usize).flatten() {
        characteriser.add(&record);
        characterised += 1;
    }
    let rate = characterised as f64 / (processor() - began) / 1e6;
    println!("   info {rate:>6.2} M/s   peak memory {} MiB   ({sum:x})", peak());
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().filter(|file| !file.is_empty());
    let records: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20_000_000);
    let made: Vec<trace::Record> = MailServer::default().requests().expect("sound").take(100_000).collect();
    let count = made.len() as u64;
    let text = |line: &dyn Fn(&trace::Record, usize) -> String| -> Vec<u8> {
        made.iter().enumerate().flat_map(|(at, record)| line(record, at).into_bytes()).collect()
    };
    let read = |record: &trace::Record| record.op == trace::Op::Read;
    let sectors = |record: &trace::Record| (record.offset / 512, record.bytes / 512);
    measure(
        "vscsi-csv",
        b"",
        &text(&|r, at| {
            let op = if read(r) { "read" } else { "write" };
            format!("{at},{},1,{op},{},{}\n", r.bytes, r.offset / 512, 2_756_778_716_647 + r.time_ns / 1000)
        }),
        count,
        records,
    );
    measure(
        "msr",
        b"",
        &text(&|r, _| {
            let op = if read(r) { "Read" } else { "Write" };
            format!("{},usr,0,{op},{},{},41286\n", 128_166_372_003_061_629 + r.time_ns / 100, r.offset, r.bytes)
        }),
        count,
        records,
    );
    measure(
        "alibaba",
        b"",
        &text(&|r, _| {
            let op = if read(r) { "R" } else { "W" };
            format!("419,{op},{},{},{}\n", r.offset, r.bytes, 1_577_808_144_360_767 + r.time_ns / 1000)
        }),
        count,
        records,
    );
    measure(
        "tencent",
        b"",
        &text(&|r, _| {
            let (first, length) = sectors(r);
            format!("{},{first},{length},{},1063\n", 1_538_323_200 + r.time_ns / 1_000_000_000, u8::from(!read(r)))
        }),
        count,
        records,
    );
    measure(
        "fiu",
        b"",
        &text(&|r, _| {
            let ((first, length), op) = (sectors(r), if read(r) { "R" } else { "W" });
            format!("{} 4892 imapd {first} {length} {op} 6 0 531e779f1b8e2f4b0a6c7d8e9f001122\n", r.time_ns)
        }),
        count,
        records,
    );
    measure(
        "blkparse",
        b"",
        &text(&|r, at| {
            let ((first, length), op) = (sectors(r), if read(r) { "R" } else { "W" });
            let time = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            let line = |ns: u64, action: char, process: &str| {
                format!("  8,0    1 {at:>8} {:>14}  697  {action}   {op} {first} + {length} [{process}]\n", time(ns))
            };
            line(r.time_ns, 'Q', "imapd") + &line(r.time_ns + 5000, 'D', "imapd") + &line(r.time_ns + 90_000, 'C', "0")
        }),
        count,
        records / 4,
    );
    measure(
        "fio3",
        b"fio version 3 iolog\n",
        &text(&|r, _| {
            let op = if read(r) { "read" } else { "write" };
            format!("{} /dev/sda {op} {} {}\n", r.time_ns / 1000, r.offset, r.bytes)
        }),
        count,
        records,
    );
    let binary: Vec<u8> = made
        .iter()
        .flat_map(|r| {
            let mut bytes = [0u8; 40];
            bytes[0..2].copy_from_slice(&(if read(r) { 0x28u16 } else { 0x2a }).to_le_bytes());
            bytes[2..4].copy_from_slice(&0x0200u16.to_le_bytes());
            bytes[8..12].copy_from_slice(&(r.bytes as u32).to_le_bytes());
            bytes[16..24].copy_from_slice(&(r.offset / 512).to_le_bytes());
            bytes[24..32].copy_from_slice(&(r.time_ns / 1000).to_le_bytes());
            bytes
        })
        .collect();
    measure("vscsi2", b"", &binary, count, records);
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&binary).expect("memory");
        encoder.finish().expect("memory")
    };
    measure("vscsi2.gz", b"", &gzip, count, records / 4);
    measure("vscsi2.zst", b"", &zstd::encode_all(&binary[..], 3).expect("memory"), count, records);
    if let Some(path) = file {
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let count = Reader::new(Cursor::new(bytes.clone()), Path::new(&path), &Wanted::default())
            .map(|reader| reader.filter(|record| record.is_ok()).count() as u64)
            .unwrap_or_else(|error| panic!("{error}"));
        measure("FILE", b"", &bytes, count.max(1), records);
    }
}
