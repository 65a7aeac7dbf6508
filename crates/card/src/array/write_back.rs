//! A controller's battery-backed memory in front of an array: writes are answered from it, and put on the array in order of address.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::agenda::Answers;
use crate::device::{Answer, Failure, Nanos, Op, Request, VirtualDevice};
use crate::report::Report;
use crate::steps::Steps;

/// Writes that are put on the array at once.
const AT_ONCE: usize = 16;
/// Writing back begins when so much of the memory is taken, or when the array has nothing else to do: one in so many parts.
const EAGER: u64 = 8;

/// Memory that answers writes before the device behind it has them.
pub struct WriteBack {
    inner: Box<dyn VirtualDevice>,
    /// Bytes of memory; of a line, the unit in which neighbours are written together.
    bytes: u64,
    line: u64,
    /// Dirty lines: the range of each that is dirty, in bytes from its start.
    dirty: BTreeMap<u64, (u64, u64)>,
    dirty_bytes: u64,
    /// The next line to write is the first behind this one: round and round.
    swept: u64,
    under_way: HashMap<u32, Purpose>,
    next_tag: u32,
    cleaning: usize,
    reading: usize,
    waiting: VecDeque<(u32, Request)>,
    flushes: Vec<u32>,
    failed: Option<Failure>,
    answers: Answers,
    now: Nanos,
    host_read: u64,
    host_written: u64,
}

#[derive(Clone, Copy)]
enum Purpose {
    Host { tag: u32 },
    Clean { bytes: u64 },
    Flush { tag: u32 },
}

impl WriteBack {
    /// `bytes` of memory in lines of `line` bytes, best a row of the array behind.
    pub fn new(inner: Box<dyn VirtualDevice>, bytes: u64, line: u64) -> Self {
        WriteBack {
            inner,
            bytes,
            line,
            dirty: BTreeMap::new(),
            dirty_bytes: 0,
            swept: 0,
            under_way: HashMap::new(),
            next_tag: 0,
            cleaning: 0,
            reading: 0,
            waiting: VecDeque::new(),
            flushes: Vec::new(),
            failed: None,
            answers: Answers::default(),
            now: 0,
            host_read: 0,
            host_written: 0,
        }
    }

    fn inner_submit(&mut self, now: Nanos, request: Request, purpose: Purpose) {
        while self.under_way.contains_key(&self.next_tag) {
            self.next_tag = self.next_tag.wrapping_add(1);
        }
        self.under_way.insert(self.next_tag, purpose);
        self.inner.submit(now, self.next_tag, request);
        self.next_tag = self.next_tag.wrapping_add(1);
    }

    /// Parts of a request by line: line number, range within.
    fn lines(&self, request: Request) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let (line, start, end) = (self.line, request.offset, request.offset + u64::from(request.bytes));
        (start / line..=(end - 1) / line)
            .map(move |at| (at, start.max(at * line) - at * line, end.min((at + 1) * line) - at * line))
    }

    fn held(&self, request: Request) -> bool {
        self.lines(request).all(|(at, from, to)| self.dirty.get(&at).is_some_and(|held| held.0 <= from && to <= held.1))
    }

    fn touched(&self, request: Request) -> bool {
        self.lines(request).any(|(at, from, to)| self.dirty.get(&at).is_some_and(|held| held.0 < to && from < held.1))
    }

    /// Takes a write, unless there is no room.
    fn keep(&mut self, now: Nanos, request: Request) -> bool {
        if self.dirty_bytes + u64::from(request.bytes) > self.bytes {
            return false;
        }
        for (at, from, to) in self.lines(request).collect::<Vec<_>>() {
            match self.dirty.get_mut(&at) {
                Some(held) if from <= held.1 && held.0 <= to => {
                    let joined = (held.0.min(from), held.1.max(to));
                    self.dirty_bytes += (joined.1 - joined.0) - (held.1 - held.0);
                    *held = joined;
                }
                Some(held) => {
                    // Two ranges in one line with a gap: the older one goes to the array now.
                    let older = std::mem::replace(held, (from, to));
                    self.dirty_bytes += to - from;
                    self.clean(now, at, older);
                }
                None => {
                    self.dirty.insert(at, (from, to));
                    self.dirty_bytes += to - from;
                }
            }
        }
        true
    }

    /// Puts a range on the array. Its memory is free when the array has it.
    fn clean(&mut self, now: Nanos, line: u64, range: (u64, u64)) {
        self.cleaning += 1;
        let bytes = range.1 - range.0;
        let request = Request::new(Op::Write, line * self.line + range.0, bytes as u32);
        self.inner_submit(now, request, Purpose::Clean { bytes });
    }

    /// Starts as much writing back as is due.
    fn work(&mut self, now: Nanos) {
        let pressed = self.dirty_bytes * EAGER >= self.bytes || !self.flushes.is_empty();
        while self.cleaning < AT_ONCE && (pressed || self.reading == 0) {
            let next = self.dirty.range(self.swept..).next().or_else(|| self.dirty.iter().next());
            let Some((&line, &range)) = next else { break };
            self.swept = line + 1;
            self.dirty.remove(&line);
            self.clean(now, line, range);
        }
        if self.dirty.is_empty() && self.cleaning == 0 {
            for tag in std::mem::take(&mut self.flushes) {
                match self.failed.take() {
                    Some(failure) => self.answers.put(now, tag, Err(failure)),
                    None => {
                        let flush = Request::new(Op::Flush, 0, 0);
                        self.inner_submit(now, flush, Purpose::Flush { tag });
                    }
                }
            }
        }
    }

    /// Whether everything that was written is on the array.
    #[cfg(test)]
    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.dirty_bytes == 0 && self.cleaning == 0 && self.waiting.is_empty()
    }

    fn collect(&mut self) {
        while let Some(answer) = self.inner.answer() {
            match self.under_way.remove(&answer.tag) {
                Some(Purpose::Host { tag }) => {
                    self.reading -= 1;
                    self.answers.put(answer.at, tag, answer.result);
                }
                Some(Purpose::Flush { tag }) => self.answers.put(answer.at, tag, answer.result),
                Some(Purpose::Clean { bytes }) => {
                    self.cleaning -= 1;
                    self.dirty_bytes -= bytes;
                    self.failed = self.failed.or(answer.result.err());
                    while let Some(&(tag, request)) = self.waiting.front() {
                        if !self.keep(answer.at, request) {
                            break;
                        }
                        self.waiting.pop_front();
                        self.answers.put(answer.at, tag, Ok(()));
                    }
                }
                None => {}
            }
            self.work(answer.at);
        }
    }
}

impl Steps for WriteBack {
    fn next_step(&mut self) -> Nanos {
        self.inner.next_event().unwrap_or(Nanos::MAX)
    }

    fn next_answer(&self) -> Nanos {
        self.answers.next_at().unwrap_or(Nanos::MAX)
    }

    fn step(&mut self, limit: Nanos) -> Nanos {
        let at = self.inner.advance_to_answer(limit);
        self.collect();
        at
    }
}

impl VirtualDevice for WriteBack {
    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn submit(&mut self, now: Nanos, tag: u32, request: Request) {
        if let Err(failure) = request.check(self.bytes(), self.sector_bytes()) {
            self.answers.put(now, tag, Err(failure));
            return;
        }
        match request.op {
            Op::Write => {
                self.host_written += u64::from(request.bytes);
                if self.waiting.is_empty() && self.keep(now, request) {
                    self.answers.put(now, tag, Ok(()));
                } else {
                    self.waiting.push_back((tag, request));
                }
            }
            Op::Read => {
                self.host_read += u64::from(request.bytes);
                if self.held(request) {
                    self.answers.put(now, tag, Ok(()));
                } else {
                    self.reading += 1;
                    self.inner_submit(now, request, Purpose::Host { tag });
                }
            }
            Op::Trim => {
                if self.touched(request) {
                    // What is dirty may be written yet; giving the range up later than asked is allowed.
                    self.answers.put(now, tag, Ok(()));
                } else {
                    self.reading += 1;
                    self.inner_submit(now, request, Purpose::Host { tag });
                }
            }
            Op::Flush => self.flushes.push(tag),
        }
        self.work(now);
        self.collect();
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.next_of_all()
    }

    fn advance(&mut self, now: Nanos) {
        self.run(now);
        self.inner.advance(now);
        self.collect();
        self.now = self.now.max(now);
    }

    fn advance_to_answer(&mut self, limit: Nanos) -> Nanos {
        self.now = self.now.max(self.run_to_answer(limit));
        self.now
    }

    fn answer(&mut self) -> Option<Answer> {
        self.answers.take(self.now)
    }

    fn report(&self) -> Report {
        Report { host_read_bytes: self.host_read, host_written_bytes: self.host_written, ..self.inner.report() }
    }
}
