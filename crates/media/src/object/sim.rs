//! An object store that misbehaves on command, for seeded tests.
//!
//! [`Bucket`] outlives those who use it. What was asked of it takes effect when its moment has come, also when whoever asked is gone; answers get
//! lost; what was done once may be done again later. Time goes on with every poll. The bucket watches the promises that nobody else can see: an
//! anchor names only objects that are there, no object is deleted that the anchor names, and none is overwritten.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use random::SplitMix64;

use super::anchor::ANCHOR_NAME;
use super::{Anchor, Answer, Ask, Failure, Outside};

/// What a bucket does to its users; chances in parts per million.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knobs {
    /// A request takes effect after up to so many milliseconds, and is answered after as many more.
    pub latency_ms: u64,
    /// It fails and has no effect.
    pub refused: u32,
    /// It takes effect, and its answer is an error.
    pub lost: u32,
    /// Its answer is an error, and it takes effect up to a minute later.
    pub delayed: u32,
    /// It takes effect twice, the second time up to a minute later.
    pub doubled: u32,
    /// The store answers nothing for a while now and then: begun with this chance, for up to a minute.
    pub hangs: u32,
    /// A read of an object takes a minute longer.
    pub slow: u32,
    /// It ignores conditions, which no store may that devices lie in.
    pub careless: bool,
}

/// How much longer a slow read takes.
const SLOW_MS: u64 = 60_000;

/// When time begins, milliseconds since 1970.
const BEGIN_MS: u64 = 1_700_000_000_000;

/// What will happen to the bucket.
struct Effect {
    at_ms: u64,
    ask: Ask,
    /// To whom the answer goes: which client, under which number, and whether as an error.
    answer: Option<(u64, u64, bool)>,
}

struct State {
    objects: BTreeMap<String, Vec<u8>>,
    anchor: Option<(Vec<u8>, u64)>,
    versions: u64,
    clock_ms: u64,
    random: SplitMix64,
    knobs: Knobs,
    effects: Vec<Effect>,
    hangs_until_ms: u64,
    clients: u64,
    living: BTreeSet<u64>,
    /// Answers on their way: when, to whom, under which number.
    answers: Vec<(u64, u64, u64, Answer)>,
    broken: Option<String>,
    deleted: u64,
    commits: u64,
}

/// The store.
#[derive(Clone)]
pub struct Bucket(Rc<RefCell<State>>);

/// A journal's notes on the disk of their host.
#[derive(Clone, Debug, Default)]
pub struct SimNotes(Rc<RefCell<Vec<u8>>>);

/// One user of the bucket.
pub struct SimOutside {
    bucket: Bucket,
    notes: SimNotes,
    client: u64,
    /// How fast the host's own clock runs, parts per thousand.
    rate: u64,
    /// Notes that are being written: what stands here is lost in a power cut.
    writing: VecDeque<(u64, Vec<u8>)>,
}

impl SimNotes {
    /// A file with this content.
    pub fn new(bytes: Vec<u8>) -> SimNotes {
        SimNotes(Rc::new(RefCell::new(bytes)))
    }

    /// What it holds.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }

    /// Writes it anew.
    pub fn replace(&self, bytes: Vec<u8>) {
        self.0.replace(bytes);
    }
}

impl Bucket {
    /// An empty one.
    pub fn new(seed: u64, knobs: Knobs) -> Bucket {
        Bucket(Rc::new(RefCell::new(State {
            objects: BTreeMap::new(),
            anchor: None,
            versions: 0,
            clock_ms: BEGIN_MS,
            random: SplitMix64::new(seed),
            knobs,
            effects: Vec::new(),
            hangs_until_ms: 0,
            clients: 0,
            living: BTreeSet::new(),
            answers: Vec::new(),
            broken: None,
            deleted: 0,
            commits: 0,
        })))
    }

    /// A user, with the notes of its journal.
    pub fn client(&self, notes: &SimNotes) -> SimOutside {
        self.client_at(notes, 1000)
    }

    /// The same on a host whose clock runs at so many parts per thousand of the right speed.
    pub fn client_at(&self, notes: &SimNotes, rate: u64) -> SimOutside {
        let mut state = self.0.borrow_mut();
        state.clients += 1;
        let client = state.clients;
        state.living.insert(client);
        SimOutside { bucket: self.clone(), notes: notes.clone(), client, rate, writing: VecDeque::new() }
    }

    /// What it does from now on.
    pub fn set_knobs(&self, knobs: Knobs) {
        let mut state = self.0.borrow_mut();
        state.knobs = knobs;
        state.hangs_until_ms = 0;
    }

    /// It answers nothing for a while.
    pub fn hang(&self, ms: u64) {
        let mut state = self.0.borrow_mut();
        state.hangs_until_ms = state.hangs_until_ms.max(state.clock_ms + ms);
    }

    /// Lets time pass.
    pub fn pass(&self, ms: u64) {
        let mut state = self.0.borrow_mut();
        state.clock_ms += ms;
        state.take_effect();
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.0.borrow().clock_ms
    }

    /// Milliseconds by a clock that runs at so many parts per thousand of the right speed, and that nobody sets.
    pub fn steady_ms(&self, rate: u64) -> u64 {
        (self.now_ms() - BEGIN_MS) * rate / 1000
    }

    /// The anchor that stands there.
    pub fn anchor(&self) -> Option<Anchor> {
        let state = self.0.borrow();
        state.anchor.as_ref().and_then(|(bytes, _)| Anchor::decode(bytes).ok())
    }

    /// A promise that was broken.
    pub fn broken(&self) -> Option<String> {
        self.0.borrow().broken.clone()
    }

    /// How many anchors were written, and objects deleted.
    pub fn counts(&self) -> (u64, u64) {
        let state = self.0.borrow();
        (state.commits, state.deleted)
    }

    /// All names.
    pub fn names(&self) -> Vec<String> {
        self.0.borrow().objects.keys().cloned().collect()
    }
}

/// What a version is called: as with real stores, no version's name follows from another's.
fn word(version: u64) -> String {
    format!("{:016x}", SplitMix64::new(version).bits())
}

impl State {
    fn take_effect(&mut self) {
        let now = self.clock_ms;
        if now < self.hangs_until_ms {
            return;
        }
        while let Some(at) = (0..self.effects.len())
            .filter(|at| self.effects[*at].at_ms <= now)
            .min_by_key(|at| (self.effects[*at].at_ms, *at))
        {
            let Effect { ask, answer, .. } = self.effects.remove(at);
            let result = self.apply(&ask);
            if let Some((client, id, lost)) = answer.filter(|(client, ..)| self.living.contains(client)) {
                let result = if lost { Answer::Failed(Failure::Other("no answer in time".into())) } else { result };
                let at = now + self.random.below(self.knobs.latency_ms + 1);
                self.answers.push((at, client, id, result));
            }
        }
    }

    fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    fn named(&self) -> Option<Anchor> {
        self.anchor.as_ref().and_then(|(bytes, _)| Anchor::decode(bytes).ok())
    }

    fn apply(&mut self, ask: &Ask) -> Answer {
        match ask {
            Ask::Put { name, bytes } => {
                let old = self.objects.insert(name.clone(), bytes.clone());
                if old.is_some_and(|old| old != *bytes) {
                    self.breaks(format!("the object {name} was overwritten with something else"));
                }
                Answer::Done
            }
            Ask::Get { name, range } => match self.objects.get(name) {
                None => Answer::Failed(Failure::Missing),
                Some(object) => {
                    let len = object.len() as u64;
                    let (from, to) = (range.start.min(len) as usize, range.end.min(len) as usize);
                    Answer::Bytes(object[from..to].to_vec())
                }
            },
            Ask::Delete { name } if name == ANCHOR_NAME => {
                self.anchor = None;
                Answer::Done
            }
            Ask::Delete { name } => {
                let anchor = self.named();
                if anchor.is_some_and(|anchor| anchor.objects().any(|id| id.name(&anchor.device) == *name)) {
                    self.breaks(format!("the object {name} was deleted while the anchor named it"));
                }
                self.deleted += u64::from(self.objects.remove(name).is_some());
                Answer::Done
            }
            Ask::Fetch => match &self.anchor {
                None => Answer::Failed(Failure::Missing),
                Some((bytes, version)) => Answer::Anchor(bytes.clone(), word(*version)),
            },
            Ask::Swap { bytes, expected } => self.swap(bytes, expected.as_deref()),
            Ask::Note { .. } => Answer::Done,
        }
    }

    fn swap(&mut self, bytes: &[u8], expected: Option<&str>) -> Answer {
        let now = self.anchor.as_ref().map(|(_, version)| word(*version));
        if now.as_deref() != expected && !self.knobs.careless {
            return Answer::Failed(Failure::Precondition);
        }
        let Ok(new) = Anchor::decode(bytes) else {
            self.breaks("an anchor that cannot be read".into());
            return Answer::Done;
        };
        let missing = new.objects().map(|id| id.name(&new.device)).find(|name| !self.objects.contains_key(name));
        if let Some(name) = missing {
            self.breaks(format!("commit {} names the object {name}, which is not there", new.commit));
        }
        if let Some(old) = self.named().filter(|_| !self.knobs.careless) {
            if new.epoch < old.epoch || new.id() <= old.id() || new.commit < old.commit || new.mark < old.mark {
                let (from, to) = ((old.id(), old.mark), (new.id(), new.mark));
                self.breaks(format!("the anchor went back: owner, commit and mark from {from:?} to {to:?}"));
            }
            if new.epoch == old.epoch && new.attach != old.attach {
                self.breaks(format!("two owners had the epoch {}", new.epoch));
            }
        }
        self.commits += 1;
        self.versions += 1;
        self.anchor = Some((bytes.to_vec(), self.versions));
        Answer::Swapped(word(self.versions))
    }
}

impl Drop for SimOutside {
    /// What it asked for takes effect all the same.
    fn drop(&mut self) {
        let client = self.client;
        let mut state = self.bucket.0.borrow_mut();
        state.answers.retain(|(_, to, ..)| *to != client);
        state.living.remove(&client);
    }
}

impl Outside for SimOutside {
    fn ask(&mut self, id: u64, ask: Ask) {
        let mut guard = self.bucket.0.borrow_mut();
        let state = &mut *guard;
        let now = state.clock_ms;
        if let Ask::Note { bytes } = &ask {
            // The host's own disk.
            self.writing.push_back((id, bytes.clone()));
            let at = now + state.random.below(3);
            state.answers.push((at, self.client, id, Answer::Done));
            return;
        }
        let knobs = state.knobs;
        if state.random.chance(knobs.hangs) {
            state.hangs_until_ms = now + state.random.below(60_000);
        }
        let slow = knobs.slow > 0 && matches!(ask, Ask::Get { .. }) && state.random.chance(knobs.slow);
        let at_ms = now + state.random.below(knobs.latency_ms + 1) + if slow { SLOW_MS } else { 0 };
        let late_ms = now + state.random.below(60_000);
        let error = || Answer::Failed(Failure::Other("503 slow down".into()));
        if state.random.chance(knobs.refused) {
            state.answers.push((at_ms, self.client, id, error()));
        } else if state.random.chance(knobs.delayed) {
            state.answers.push((at_ms, self.client, id, error()));
            state.effects.push(Effect { at_ms: late_ms, ask, answer: None });
        } else {
            let lost = state.random.chance(knobs.lost);
            if state.random.chance(knobs.doubled) {
                state.effects.push(Effect { at_ms: late_ms, ask: ask.clone(), answer: None });
            }
            state.effects.push(Effect { at_ms, ask, answer: Some((self.client, id, lost)) });
        }
        state.take_effect();
    }

    fn answer(&mut self) -> Option<(u64, Answer)> {
        let mut state = self.bucket.0.borrow_mut();
        state.take_effect();
        let now = state.clock_ms;
        let due: Vec<usize> = (0..state.answers.len())
            .filter(|at| state.answers[*at].0 <= now && state.answers[*at].1 == self.client)
            .collect();
        let chosen = *due.get(state.random.below(due.len().max(1) as u64) as usize)?;
        let (_, _, id, answer) = state.answers.remove(chosen);
        // Notes are appended in order.
        if let Some(last) = self.writing.iter().position(|(writing, _)| *writing == id) {
            let written = self.writing.drain(..=last).flat_map(|(_, bytes)| bytes);
            self.notes.0.borrow_mut().extend(written);
        }
        Some((id, answer))
    }

    fn wait(&mut self) {
        self.bucket.pass(5);
    }

    fn now_ms(&self) -> u64 {
        self.bucket.now_ms()
    }

    fn steady_ms(&self) -> u64 {
        self.bucket.steady_ms(self.rate)
    }

    fn alarm(&mut self, _at_ms: u64) {}
}
