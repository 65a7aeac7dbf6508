//! What a store that misbehaves costs a device on objects, and which stores the device refuses: in
//! virtual time, over many seeds.

use ftl::{Geometry, TRAILER_BYTES};
use media::object::claim::{Claim, ClaimError, Claimant, Claimed, call, claim, found};
use media::object::notes::Note;
use media::object::sim::{Bucket, Knobs, SimNotes};
use media::object::{
    Anchor, Answer, Ask, LebEntry, Limits, Notes, NotesHead, ObjectHead, ObjectId, ObjectMedia, Outside, Segment,
};
use media::sim::{Knobs as DiskKnobs, SimMedia, SimStore};
use media::{Command, Media, PageAddr};

const DEVICE: [u8; 16] = [3; 16];
/// LEBs that the store has; the one behind them is in the journal.
const REMOTE: u32 = 8;
const READS: u32 = 400;

fn geometry() -> Geometry {
    Geometry {
        dies: 1,
        parity: 0,
        blocks: REMOTE + 2,
        pages_per_block: 4,
        slots_per_page: 4,
        sector_bytes: 512,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: 512,
    }
}

fn anchor(lebs: Vec<LebEntry>) -> Anchor {
    Anchor {
        device: DEVICE,
        journal: [5; 16],
        attach: 1,
        epoch: 1,
        commit: 1,
        renewal: 0,
        released: false,
        written_ms: 0,
        mark: 0,
        ahead_bytes: 0,
        host: "host".into(),
        geometry: geometry(),
        labels: [vec![1], vec![1]],
        limits: Limits::default(),
        lebs,
        garbage: Vec::new(),
    }
}

fn head() -> NotesHead {
    NotesHead {
        device: DEVICE,
        journal: [5; 16],
        url: String::new(),
        endpoint: String::new(),
        limits: Limits::default(),
    }
}

/// What stands in a LEB.
fn content(leb: u32) -> Vec<u8> {
    (0..geometry().block_bytes() as usize).map(|at| (at * 7 + leb as usize * 31) as u8 | 1).collect()
}

/// A device whose LEBs are in the store in three parts each, and one in the journal.
fn device(seed: u64) -> (Bucket, ObjectMedia) {
    let (bucket, notes) = (Bucket::new(seed, Knobs::default()), SimNotes::default());
    let mut outside = bucket.client(&notes);
    let mut known = Notes::new(head());
    let (mut lebs, mut number) = (Vec::new(), 0);
    for leb in 0..REMOTE {
        let (bytes, life) = (content(leb), 1 << 32 | u64::from(leb + 1));
        let third = bytes.len() / 3;
        let mut segments = Vec::new();
        for range in [0..third, third..2 * third, 2 * third..bytes.len()] {
            number += 1;
            let (id, start) = (ObjectId { epoch: 1, leb, number }, range.start as u32);
            segments.push(Segment { id, len: range.len() as u32 });
            let bytes = ObjectHead { device: DEVICE, leb, life, start }.object(&bytes[range]);
            assert_eq!(call(&mut outside, Ask::Put { name: id.name(&DEVICE), bytes }), Answer::Done);
        }
        lebs.push(LebEntry { leb, life, segments });
        known.add(Note::Life { leb, life });
        known.add(Note::Gone { leb, life });
    }
    known.add(Note::Life { leb: REMOTE, life: 1 << 32 | 99 });
    let anchor = anchor(lebs);
    let asked_ms = outside.steady_ms();
    let Answer::Swapped(version) = call(&mut outside, Ask::Swap { bytes: anchor.encode(), expected: None }) else {
        panic!("there was no anchor");
    };
    let disk = SimStore::new(geometry());
    let mut journal = SimMedia::new(&disk, seed, DiskKnobs::default());
    let page = journal.page();
    let bytes = content(REMOTE)[..geometry().page_bytes() as usize].to_vec();
    // SAFETY: nobody else knows the page yet.
    unsafe { page.bytes_mut(0..bytes.len()) }.copy_from_slice(&bytes);
    let at = PageAddr { die: 0, block: REMOTE, page: 0 };
    carried_out(&mut journal, Command::Erase { block: REMOTE });
    carried_out(&mut journal, Command::Allocate { block: REMOTE });
    carried_out(&mut journal, Command::Program { at, bytes: 0..bytes.len() as u32, page });
    let media =
        ObjectMedia::new(Box::new(journal), Box::new(outside), Claimed { anchor, version, asked_ms }, &known, seed)
            .expect("it fits");
    (bucket, media)
}

fn carried_out(journal: &mut SimMedia, command: Command) {
    let mut done = journal.submit(0, command);
    while done.is_none() {
        journal.wait();
        done = journal.poll();
    }
    assert!(done.is_some_and(|done| done.result.is_ok()));
}

/// Reads a whole page, and gives how long that took, milliseconds.
fn read(media: &mut ObjectMedia, bucket: &Bucket, leb: u32, page: u32) -> u64 {
    let (began, bytes) = (bucket.now_ms(), geometry().page_bytes());
    let at = PageAddr { die: 0, block: leb, page };
    let mut done = media.submit(7, Command::Read { at, bytes: 0..bytes });
    while done.is_none() {
        done = media.poll();
        if done.is_none() {
            media.wait();
        }
    }
    let slice = done.expect("an answer").result.expect("it can be read").expect("with its bytes");
    let from = (page * bytes) as usize;
    assert_eq!(slice.bytes(), &content(leb)[from..from + bytes as usize], "page {page} of LEB {leb}");
    bucket.now_ms() - began
}

/// One request in fifty would take a minute. The device sends it once more, so no read takes that
/// long, and the store is asked at most a quarter more often.
#[test]
fn no_read_waits_for_the_slowest_requests_of_the_store() {
    for seed in 0..30 {
        let (bucket, mut media) = device(seed);
        bucket.set_knobs(Knobs { latency_ms: 40, slow: 20_000, refused: 5000, ..Knobs::default() });
        let mut took: Vec<u64> = (0..READS).map(|n| read(&mut media, &bucket, n * 5 % REMOTE, n % 4)).collect();
        took.sort_unstable();
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        let hedged = media.standing().hedged;
        assert!(longest < 10_000, "seed {seed}: a read took {longest} ms, half of them up to {median} ms");
        assert!((1..u64::from(READS) / 4).contains(&hedged), "seed {seed}: {hedged} of {READS} were asked for twice");
    }
}

/// What is in the journal is read at once, while reads of the store hang.
#[test]
fn a_read_of_the_journal_does_not_wait_for_the_store() {
    for seed in 0..30 {
        let (bucket, mut media) = device(seed);
        bucket.set_knobs(Knobs { latency_ms: 10, slow: 1_000_000, ..Knobs::default() });
        let bytes = geometry().page_bytes();
        for id in 100..140 {
            let at = PageAddr { die: 0, block: id as u32 % REMOTE, page: 1 };
            assert!(media.submit(id, Command::Read { at, bytes: 0..bytes }).is_none());
        }
        let took = read(&mut media, &bucket, REMOTE, 0);
        assert!(took < 1000, "seed {seed}: it took {took} ms");
    }
}

/// A store that ignores conditions would let two owners write: no device is made there, and nothing
/// is left of the attempt.
#[test]
fn no_device_is_made_where_conditions_are_ignored() {
    for seed in 0..100 {
        let knobs = Knobs { latency_ms: seed % 50, careless: seed % 2 == 1, ..Knobs::default() };
        let bucket = Bucket::new(seed, knobs);
        let made = found(&mut bucket.client(&SimNotes::default()), &anchor(Vec::new()));
        if knobs.careless {
            assert_eq!(made, Err(ClaimError::Careless("If-None-Match")), "seed {seed}");
            assert_eq!(bucket.anchor(), None, "seed {seed}: an anchor was left");
        } else {
            assert_eq!(made, Ok(()), "seed {seed}");
        }
    }
}

/// A store that began to ignore conditions, or another one that has a copy of the objects, refuses
/// the owner itself.
#[test]
fn no_device_is_claimed_where_conditions_are_ignored() {
    for seed in 0..100 {
        let bucket = Bucket::new(seed, Knobs { latency_ms: seed % 50, ..Knobs::default() });
        let mut outside = bucket.client(&SimNotes::default());
        assert_eq!(found(&mut outside, &anchor(Vec::new())), Ok(()), "seed {seed}");
        bucket.set_knobs(Knobs { careless: seed % 2 == 1, ..Knobs::default() });
        let who = Claimant { journal: [5; 16], attach: 2, host: "host".into() };
        let mut notes = Notes::new(head());
        notes.add(Note::Begun { epoch: 1, commit: 1 });
        let claimed = claim(&mut outside, &who, Claim::Own, &mut notes).map(|_| ());
        let careless = Err(ClaimError::Careless("If-Match"));
        assert_eq!(claimed, if seed % 2 == 1 { careless } else { Ok(()) }, "seed {seed}");
    }
}
