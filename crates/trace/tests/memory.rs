//! A trace is read in fixed memory. Alone in its process, so that all memory is its own.

use std::path::Path;

use trace::info::characterise;
use trace::{Reader, Wanted};

/// Memory of this process that was ever in use at once, bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

#[test]
fn a_long_trace_takes_no_more_memory_than_a_short_one() {
    /// So many lines, made as they are read.
    struct Made(u64, u64, Vec<u8>);
    impl std::io::Read for Made {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            while self.2.len() < 4096 && self.0 < self.1 {
                let at = self.0;
                self.2.extend(format!("7,W,{},4096,{at}\n", (at % 50_000) * 4096).into_bytes());
                self.0 += 1;
            }
            let count = to.len().min(self.2.len());
            to[..count].copy_from_slice(&self.2[..count]);
            self.2.drain(..count);
            Ok(count)
        }
    }
    let run = |lines: u64| {
        let reader = Reader::new(Made(0, lines, Vec::new()), Path::new("t"), &Wanted::default()).expect("recognised");
        assert_eq!(characterise(reader, |_| true).expect("sound").records, lines);
        peak()
    };
    let (short, long) = (run(100_000), run(2_000_000));
    // The text alone is 70 MB, its records 110 MB.
    assert!(long - short < 16 << 20, "{} MiB more", (long - short) >> 20);
}
