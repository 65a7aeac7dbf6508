//! The journal before the store: what `media`'s medium of a device on objects does with bytes, done without any, on events in virtual time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use ftl::{Geometry, LebId, Medium, PageAddr, ReadFor, SlotRead};
use media::object::plan::{Action, Plan};
use media::object::{Anchor, Claimed, Notes, NotesHead, ObjectId};

use super::store::{Books, Store};
use super::{JOURNAL_NS, MS, ObjectsConfig};
use crate::device::Nanos;

/// When time begins, milliseconds since 1970.
const BEGIN_MS: u64 = 1_700_000_000_000;

/// Something that ends.
pub(super) enum Event {
    Program {
        id: u64,
        leb: u32,
        start: u32,
        len: u32,
    },
    Read {
        id: u64,
        leb: u32,
    },
    /// A part of a read from the store.
    Got {
        id: u64,
    },
    Put {
        leb: u32,
        id: ObjectId,
        len: u32,
    },
    Swapped {
        number: u64,
        bytes: u64,
    },
    Deleted(ObjectId),
    /// An answer to a client.
    Answer(u32),
}

/// The journal, the plan and the store.
pub(super) struct Journal {
    pub plan: Plan,
    pub books: Books,
    pub store: Store,
    pub now: Nanos,
    /// When the plan wants to be called again.
    pub wake: Option<Nanos>,
    page_bytes: u32,
    slot_bytes: u32,
    events: BTreeMap<(Nanos, u64), Event>,
    next: u64,
    /// Programs that wait until the store is less far behind.
    held: VecDeque<(u64, PageAddr, Range<u32>)>,
    /// Parts of reads that the store has not given yet.
    fetching: HashMap<u64, u32>,
    erases: Vec<(LebId, u64)>,
    finished: VecDeque<(u64, bool)>,
    /// Something happened that the plan has not looked at.
    stirred: bool,
}

impl Journal {
    pub fn new(geometry: Geometry, config: &ObjectsConfig) -> Result<Journal, String> {
        let anchor = Anchor {
            device: [1; 16],
            journal: [2; 16],
            attach: 1,
            epoch: 1,
            commit: 0,
            renewal: 0,
            released: false,
            written_ms: BEGIN_MS,
            mark: 0,
            ahead_bytes: 0,
            host: "simulated".into(),
            geometry,
            labels: [Vec::new(), Vec::new()],
            limits: config.limits,
            lebs: Vec::new(),
            garbage: Vec::new(),
        };
        let (url, endpoint) = ("simulated:".into(), String::new());
        let head = NotesHead { device: anchor.device, journal: anchor.journal, url, endpoint, limits: config.limits };
        let claimed = Claimed { anchor, version: String::new(), asked_ms: 0 };
        let labels = [Vec::new(), Vec::new()];
        Ok(Journal {
            plan: Plan::new(claimed, &Notes::new(head), labels, (BEGIN_MS, config.seed), |_| 0)?,
            books: Books::new(config.prices),
            store: config.store,
            now: 0,
            wake: None,
            page_bytes: geometry.page_bytes(),
            slot_bytes: geometry.slot_bytes(),
            events: BTreeMap::new(),
            next: 0,
            held: VecDeque::new(),
            fetching: HashMap::new(),
            erases: Vec::new(),
            finished: VecDeque::new(),
            stirred: true,
        })
    }

    pub fn next_event(&self) -> Option<Nanos> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn later(&mut self, after: Nanos, event: Event) {
        self.events.insert((self.now + after, self.next), event);
        self.next += 1;
    }

    /// Lets everything happen that ends now, up to the next answer to a client.
    pub fn happen(&mut self) -> Option<u32> {
        self.stirred |= self.wake.take_if(|at| *at <= self.now).is_some();
        while let Some(first) = self.events.first_entry().filter(|first| first.key().0 <= self.now) {
            let event = first.remove();
            if let Event::Answer(tag) = event {
                return Some(tag);
            }
            self.stirred = true;
            self.end(event);
        }
        None
    }

    fn end(&mut self, event: Event) {
        match event {
            Event::Program { id, leb, start, len } => {
                self.plan.program_done(leb, start, len, true);
                self.finished.push_back((id, true));
            }
            Event::Read { id, leb } => {
                self.plan.read_ended(leb);
                self.finished.push_back((id, true));
            }
            Event::Got { id } => {
                let left = self.fetching.entry(id).or_insert(1);
                *left -= 1;
                if *left == 0 {
                    self.fetching.remove(&id);
                    self.finished.push_back((id, true));
                }
            }
            Event::Put { leb, id, len } => {
                self.books.put(self.now, id, len);
                self.plan.uploaded(leb, id, Ok(()));
            }
            Event::Swapped { number, bytes } => {
                self.books.swapped(self.now, bytes);
                self.plan.swapped(number, Ok(number.to_string()));
            }
            Event::Deleted(id) => {
                self.books.deleted(self.now, id);
                self.plan.deleted(id, Ok(()));
            }
            Event::Answer(_) => {}
        }
    }

    /// A command of the layer that is done.
    pub fn finished(&mut self) -> Option<(u64, bool)> {
        self.finished.pop_front()
    }

    /// Has the plan look at what happened. Whether anything came of it.
    pub fn pump(&mut self) -> bool {
        if !std::mem::take(&mut self.stirred) {
            return false;
        }
        let now_ms = self.now / MS;
        let before = self.finished.len();
        loop {
            self.plan.step(BEGIN_MS + now_ms, now_ms);
            let Some(action) = self.plan.action() else { break };
            self.carry_out(action);
            while let Some(action) = self.plan.action() {
                self.carry_out(action);
            }
        }
        while let Some((_, _, part)) = self.held.front() {
            if !self.plan.admits(part.end - part.start) {
                break;
            }
            if let Some((id, at, part)) = self.held.pop_front() {
                self.plan.program_let_go(at.block);
                self.begin(id, at, &part);
            }
        }
        let wake = self.plan.wakes_ms().map(|at| at.saturating_sub(BEGIN_MS) * MS);
        self.wake = wake.map(|at| at.max((now_ms + 1) * MS));
        self.finished.len() > before
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::SyncCut => self.plan.cut_synced(true),
            Action::Upload { leb, id, len, .. } => {
                self.plan.read_ended(leb);
                self.later(self.store.takes(len.into()), Event::Put { leb, id, len });
            }
            Action::Note(note) => self.plan.noted(note, Ok(())),
            Action::Swap { number, bytes, .. } => {
                let bytes = bytes.len() as u64;
                self.later(self.store.takes(bytes), Event::Swapped { number, bytes });
            }
            Action::Fetch { number } => {
                let anchor = self.plan.anchor().encode();
                self.plan.fetched(number, Ok((anchor, String::new())));
            }
            Action::Erase { leb } => {
                if let Some(at) = self.erases.iter().position(|(erased, _)| *erased == leb) {
                    let (_, id) = self.erases.swap_remove(at);
                    self.finished.push_back((id, true));
                }
            }
            Action::Punch { leb } => self.plan.punched(leb),
            Action::Delete(id) => self.later(self.store.takes(0), Event::Deleted(id)),
        }
    }

    fn begin(&mut self, id: u64, at: PageAddr, part: &Range<u32>) {
        let (start, len) = (at.page * self.page_bytes + part.start, part.end - part.start);
        self.plan.program_begins(at.block, start, len);
        self.later(JOURNAL_NS + Nanos::from(len), Event::Program { id, leb: at.block, start, len });
    }
}

impl Medium for Journal {
    fn read_slots(&mut self, id: u64, read: &SlotRead, _: u32) -> bool {
        let (leb, len) = (read.page.block, read.count * self.slot_bytes);
        if self.plan.is_local(leb) {
            self.plan.read_begins(leb);
            self.later(JOURNAL_NS + Nanos::from(len), Event::Read { id, leb });
            return false;
        }
        let start = read.page.page * self.page_bytes + read.at * self.slot_bytes;
        let places = self.plan.places(leb, start, start + len);
        if places.is_empty() {
            return true;
        }
        self.fetching.insert(id, places.len() as u32);
        for (_, _, len) in places {
            self.books.got(len.into());
            self.later(self.store.takes(len.into()), Event::Got { id });
        }
        false
    }

    fn read(&mut self, _: u64, _: PageAddr, _: u32, _: &ReadFor) -> bool {
        true
    }

    fn program_part(&mut self, id: u64, at: PageAddr, part: Range<u32>, _: u32) -> bool {
        if self.held.is_empty() && self.plan.admits(part.end - part.start) {
            self.begin(id, at, &part);
        } else {
            self.plan.program_held(at.block);
            self.held.push_back((id, at, part));
        }
        false
    }

    fn erase(&mut self, id: u64, leb: LebId) -> bool {
        self.erases.push((leb, id));
        self.plan.erase(leb);
        self.stirred = true;
        false
    }

    fn finish(&mut self, leb: LebId) {
        self.plan.finished(leb);
    }
}
