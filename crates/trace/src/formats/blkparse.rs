//! Text of blkparse, in its default form. A request and its completion are two lines, so requests wait here, in order, for theirs.

use std::collections::{BTreeMap, VecDeque};

use super::{Aside, BATCH, Decode, device_number};
use crate::error::Place;
use crate::input::Buffer;
use crate::input::buffer::Broken;
use crate::input::fields::{Fields, number, seconds, sectors, unexpected};
use crate::record::{Op, Record};

/// Requests that wait for their completion at most. A disk has 32 to 1024 outstanding; one that waits longer than this is given
/// without a response time.
const MOST_WAITING: usize = 16_384;

/// What a line looks like.
const SHAPE: &str = "major,minor, cpu, sequence, time in s, pid, action, RWBS, sector + sectors [process]";

/// An event that matters here.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// Queued (`Q`) or issued (`D`), whichever was asked for.
    Begin(Record),
    /// Completed: volume, operation, first byte, byte after the last, time.
    End { volume: u32, op: Op, start: u64, end: u64, time_ns: u64 },
    /// A command that moves no data.
    Other,
    /// Something else that blkparse tells.
    Nothing,
}

/// Reads blkparse's text.
#[derive(Debug)]
pub struct Blkparse {
    /// The action that a request begins with.
    begin: u8,
    /// In order of their beginning; those in front are given out first.
    waiting: VecDeque<Waiting>,
    /// Number of the first that waits.
    first: u64,
    /// Those that have no completion yet, by volume, first byte and number.
    open: BTreeMap<(u32, u64, u64), u64>,
    /// Some completion was seen, so those without are worth telling.
    completions: bool,
    /// Requests queued and issued, whichever was asked for.
    seen: [u64; 2],
    /// What a completion ends; kept for its memory.
    ended: Vec<(u32, u64, u64)>,
    /// The summary at the end of the text has begun.
    summary: bool,
    over: bool,
    aside: Aside,
}

#[derive(Debug)]
struct Waiting {
    record: Record,
    done: bool,
}

impl Blkparse {
    /// Requests begin with this action: `Q` or `D`.
    pub fn new(begin: u8) -> Blkparse {
        Blkparse {
            begin,
            waiting: VecDeque::new(),
            first: 0,
            open: BTreeMap::new(),
            completions: false,
            seen: [0; 2],
            ended: Vec::new(),
            summary: false,
            over: false,
            aside: Aside::default(),
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Nothing => {}
            Event::Other => self.aside.other_commands += 1,
            Event::Begin(record) => {
                let number = self.first + self.waiting.len() as u64;
                // A flush has no address by which its completion could be told from others.
                let done = record.op == Op::Flush;
                if !done {
                    self.open.insert((record.volume, record.offset, number), record.end());
                }
                self.waiting.push_back(Waiting { record, done });
            }
            Event::End { volume, op, start, end, time_ns } => {
                self.completions = true;
                // One that began before may end here in part: then this is its last part.
                let before =
                    self.open.range((volume, 0, 0)..(volume, start, 0)).next_back().map(|(key, end)| (*key, *end));
                self.ended.clear();
                self.ended.extend(before.filter(|(_, reach)| *reach > start && *reach <= end).map(|(key, _)| key));
                let within = self.open.range((volume, start, 0)..(volume, end, 0)).filter(|(_, reach)| **reach <= end);
                self.ended.extend(within.map(|(key, _)| *key));
                let mut last = None;
                for at in 0..self.ended.len() {
                    let key @ (_, offset, number) = self.ended[at];
                    let Some(waiting) = self.waiting.get_mut((number - self.first) as usize) else { continue };
                    // Of several for the same place the oldest is the one that is done.
                    if waiting.record.op != op || last == Some(offset) {
                        continue;
                    }
                    last = Some(offset);
                    waiting.done = true;
                    waiting.record.response_ns = Some(time_ns.saturating_sub(waiting.record.time_ns));
                    self.open.remove(&key);
                }
            }
        }
    }

    /// Gives out those in front that are done, or that have waited too long.
    fn release(&mut self, records: &mut Vec<Record>, all: bool) {
        while let Some(front) = self.waiting.front() {
            if !(front.done || all || self.waiting.len() > MOST_WAITING) {
                return;
            }
            if !front.done {
                self.open.remove(&(front.record.volume, front.record.offset, self.first));
                self.aside.unanswered += u64::from(self.completions);
            }
            records.push(front.record);
            self.waiting.pop_front();
            self.first += 1;
        }
    }

    fn nothing_found(&self) -> Option<String> {
        let [queued, issued] = self.seen;
        match self.begin {
            b'D' if issued == 0 && queued > 0 => Some(format!(
                "no request was issued to the device (D), {queued} were queued (Q); read it as blkparse-q"
            )),
            b'Q' if queued == 0 && issued > 0 => {
                Some(format!("no request was queued (Q), {issued} were issued to the device (D); read it as blkparse"))
            }
            _ => None,
        }
    }
}

/// `major,minor`.
fn device(word: &[u8]) -> Option<(u64, u64)> {
    let comma = word.iter().position(|byte| *byte == b',')?;
    Some((number(&word[..comma])?, number(&word[comma + 1..])?))
}

/// What blkparse calls R, W, D and so on: with F in front for a flush before, and letters behind that do not matter.
fn op_of(rwbs: &[u8]) -> Option<Op> {
    let flush = rwbs.first() == Some(&b'F');
    match rwbs.get(usize::from(flush)) {
        Some(b'R') => Some(Op::Read),
        Some(b'W') => Some(Op::Write),
        Some(b'D') => Some(Op::Trim),
        _ if flush => Some(Op::Flush),
        _ => None,
    }
}

/// What a line tells. The first of the two numbers counts `Q`, the second `D`.
fn event(line: &[u8], begin: u8, seen: &mut [u64; 2]) -> Result<Event, String> {
    let mut words = Fields::words(line);
    let first = words.text("the device")?;
    let (major, minor) = device(first).ok_or_else(|| unexpected("the device", first, "major,minor"))?;
    let volume = device_number(major, minor)?;
    words.number("the cpu")?;
    words.number("the sequence number")?;
    let time = words.text("the time")?;
    let time_ns = seconds(time).ok_or_else(|| unexpected("the time", time, "seconds with nine decimals"))?;
    words.number("the pid")?;
    let action = words.text("the action")?;
    match action {
        b"Q" => seen[0] += 1,
        b"D" => seen[1] += 1,
        b"C" => {}
        _ => return Ok(Event::Nothing),
    }
    let is_end = action == b"C";
    if !is_end && action != [begin] {
        return Ok(Event::Nothing);
    }
    let rwbs = words.text("RWBS")?;
    let Some(op) = op_of(rwbs) else {
        return Ok(if is_end { Event::Nothing } else { Event::Other });
    };
    // What has no address, or none that means anything, is a flush if it says so, and else nothing.
    let flush = Record { time_ns, offset: 0, bytes: 0, response_ns: None, volume, op: Op::Flush };
    let without = Ok(if is_end || !rwbs.starts_with(b"F") { Event::Nothing } else { Event::Begin(flush) });
    let place = words.next().filter(|word| !word.starts_with(b"[") && !word.starts_with(b"("));
    let (Some(place), Some(b"+")) = (place, words.next()) else { return without };
    let place = number(place).ok_or_else(|| unexpected("the sector", place, "a whole number"))?;
    let start = sectors("the sector", place)?;
    let bytes = sectors("the number of sectors", words.number("the number of sectors")?)?;
    if bytes == 0 || op == Op::Flush {
        return without;
    }
    let record = Record { time_ns, offset: start, bytes, response_ns: None, volume, op };
    record.check()?;
    if is_end {
        return Ok(Event::End { volume, op, start, end: record.end(), time_ns });
    }
    Ok(Event::Begin(record))
}

/// The beginning of what blkparse prints when it is done.
fn begins_summary(line: &[u8]) -> bool {
    [b"CPU".as_slice(), b"Total", b"Throughput", b"Events", b"Skips"].iter().any(|word| line.starts_with(word))
}

/// How many of some lines are events, and how many nothing that could be one.
pub fn judge<'a>(lines: impl Iterator<Item = &'a [u8]>) -> (usize, usize) {
    let (mut good, mut bad) = (0, 0);
    for line in lines {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if begins_summary(line) {
            break;
        }
        match event(line, b'D', &mut [0; 2]) {
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        }
    }
    (good, bad)
}

impl Decode for Blkparse {
    fn fill(&mut self, input: &mut Buffer, records: &mut Vec<Record>) -> Result<bool, Broken> {
        for _ in 0..BATCH {
            let Some(line) = input.line()? else {
                self.release(records, true);
                if !self.over {
                    self.over = true;
                    if let Some(problem) = self.nothing_found() {
                        return Err(Broken::Malformed(Place::Line(1), problem));
                    }
                }
                return Ok(false);
            };
            if line.bytes.trim_ascii().is_empty() || line.bytes.starts_with(b"#") {
                continue;
            }
            self.summary |= begins_summary(line.bytes);
            match event(line.bytes, self.begin, &mut self.seen) {
                Ok(event) => self.take(event),
                Err(_) if self.summary => {}
                Err(problem) => {
                    let cut = if line.complete { "" } else { "the file ends within this line: " };
                    let problem = format!("{cut}{problem}; a line is: {SHAPE}");
                    return Err(Broken::Malformed(Place::Line(line.number), problem));
                }
            }
            self.release(records, false);
        }
        Ok(true)
    }

    fn aside(&self) -> Aside {
        self.aside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, begin: u8) -> (Vec<Record>, Aside) {
        let mut input = Buffer::new(Box::new(std::io::Cursor::new(text.as_bytes().to_vec())));
        let (mut blkparse, mut records) = (Blkparse::new(begin), Vec::new());
        while blkparse.fill(&mut input, &mut records).expect("events") {}
        (records, blkparse.aside())
    }

    fn brief(records: &[Record]) -> Vec<(u64, u64, Option<u64>)> {
        records.iter().map(|r| (r.offset / 512, r.bytes / 512, r.response_ns.map(|ns| ns / 1_000_000))).collect()
    }

    /// Two neighbours are queued, merged, issued as one and completed; another is split into two.
    const MERGED: &str = "\
  8,0    0        1     0.001000000   697  Q   W 100 + 8 [a]
  8,0    0        2     0.002000000   697  Q   W 108 + 8 [a]
  8,0    0        3     0.002100000   697  M   W 108 + 8 [a]
  8,0    0        4     0.003000000   697  D   W 100 + 16 [a]
  8,0    1        5     0.003500000   698  Q   R 4000 + 32 [b]
  8,0    1        6     0.003600000   698  X   R 4000 / 4016 [b]
  8,0    1        7     0.004000000   698  D   R 4000 + 16 [b]
  8,0    1        8     0.005000000   698  D   R 4016 + 16 [b]
  8,0    1        9     0.006000000     0  C   R 4000 + 16 [0]
  8,0    0       10     0.007000000     0  C   W 100 + 16 [0]
  8,0    1       11     0.009000000     0  C   R 4016 + 16 [0]
";

    #[test]
    fn the_device_and_the_whole_way_are_two_stories() {
        let (records, aside) = read(MERGED, b'D');
        assert_eq!(brief(&records), [(100, 16, Some(4)), (4000, 16, Some(2)), (4016, 16, Some(4))]);
        assert_eq!(aside, Aside::default());
        let (records, _) = read(MERGED, b'Q');
        assert_eq!(brief(&records), [(100, 8, Some(6)), (108, 8, Some(5)), (4000, 32, Some(5))]);
    }

    #[test]
    fn the_same_place_twice_is_answered_twice() {
        let text = "\
8,0 0 1 0.001000000 1 D R 8 + 8 [a]
8,0 0 2 0.002000000 1 D R 8 + 8 [a]
8,0 0 3 0.003000000 1 D W 8 + 8 [a]
8,0 0 4 0.005000000 1 C R 8 + 8 [0]
8,0 0 5 0.008000000 1 C R 8 + 8 [0]
";
        let (records, aside) = read(text, b'D');
        assert_eq!(brief(&records), [(8, 8, Some(4)), (8, 8, Some(6)), (8, 8, None)]);
        assert_eq!(aside.unanswered, 1);
    }

    #[test]
    fn flushes_and_trims_and_other_commands() {
        let text = "\
8,0 0 1 0.001000000 1 D FF [kworker]
8,0 0 1 0.001200000 1 D FF 2048 + 8 [kworker]
8,0 0 2 0.001500000 1 D FWS 64 + 8 [jbd2]
8,0 0 3 0.002000000 1 D DS 2048 + 4096 [fstrim]
8,0 0 4 0.003000000 1 D N 36 (12 00 00 00 24 00 ..) [smart]
8,0 0 5 0.004000000 1 C DS 2048 + 4096 [0]
CPU0 (8,0):
 Reads Queued:           0,        0KiB
";
        let (records, aside) = read(text, b'D');
        let ops: Vec<Op> = records.iter().map(|record| record.op).collect();
        assert_eq!(ops, [Op::Flush, Op::Flush, Op::Write, Op::Trim]);
        assert!(records[..2].iter().all(|record| (record.offset, record.bytes) == (0, 0)));
        assert_eq!((records[3].bytes, records[3].response_ns), (4096 * 512, Some(2_000_000)));
        assert_eq!((aside.other_commands, aside.unanswered), (1, 1));
    }

    #[test]
    fn requests_that_are_never_answered_do_not_fill_memory() {
        let mut text = String::new();
        for at in 0..40_000u64 {
            text.push_str(&format!("8,0 0 {at} {}.000000000 1 D R {} + 8 [a]\n", at, at * 8));
        }
        let mut input = Buffer::new(Box::new(std::io::Cursor::new(text.into_bytes())));
        let (mut blkparse, mut records, mut most) = (Blkparse::new(b'D'), Vec::new(), 0);
        while blkparse.fill(&mut input, &mut records).expect("events") {
            most = most.max(blkparse.waiting.len());
            assert_eq!(blkparse.open.len(), blkparse.waiting.len());
        }
        assert_eq!(records.len(), 40_000);
        assert!(most <= MOST_WAITING, "{most}");
        assert!(records.windows(2).all(|pair| pair[0].time_ns < pair[1].time_ns));
    }

    #[test]
    fn the_wrong_half_is_said() {
        let queued: String =
            MERGED.lines().filter(|line| line.contains("  Q  ")).map(|line| format!("{line}\n")).collect();
        let mut input = Buffer::new(Box::new(std::io::Cursor::new(queued.into_bytes())));
        match Blkparse::new(b'D').fill(&mut input, &mut Vec::new()) {
            Err(Broken::Malformed(_, problem)) => assert!(problem.contains("3 were queued (Q); read it as blkparse-q")),
            other => panic!("{other:?}"),
        }
    }
}
