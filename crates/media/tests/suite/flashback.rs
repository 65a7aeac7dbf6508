//! The loss of a die: nothing that depends on it is answered before it is on record.

use std::ops::Range;

use media::flashback::{DieState, Flashback, SlotCheck, media_geometry};
use media::sim::{Knobs, SimMedia, SimStore};
use media::{Base, Command, Done, Drilled, Geometry, Media};

use crate::common::*;

/// Believes everything: nothing is repaired here.
struct Believes;

impl SlotCheck for Believes {
    fn seq(&self, _slot: &[u8], _number: ftl::Slot) -> Option<u64> {
        Some(1)
    }

    fn number_at(&self) -> Range<usize> {
        0..4
    }
}

/// Three dies, one of them for parity, on a medium of these faults.
fn of_three_dies(knobs: Knobs) -> Flashback {
    let shape = Geometry { dies: 3, parity: 1, ..geometry() };
    let store = SimStore::new(media_geometry(&shape));
    let mut medium = SimMedia::new(&store, 5, Knobs::default());
    for block in 0..medium.geometry().blocks {
        run(&mut medium, Command::Allocate { block }).expect("allocate");
    }
    medium.set_knobs(knobs);
    Flashback::new(Drilled::Plain(Base::Plain(Box::new(medium))), shape, Box::new(Believes), vec![DieState::Good; 3])
}

/// The die that holds a lane of the first stripe.
fn die_of(flashback: &Flashback, lane: u32) -> u32 {
    flashback.geometry().die_of(0, lane)
}

/// Asks for the page of a lane of the first stripe to be programmed.
fn program(flashback: &mut Flashback, id: u64, lane: u32) {
    let (page, bytes) = (flashback.page(), 0..flashback.geometry().page_bytes());
    fill(&page, bytes.clone(), 1);
    let at = at(die_of(flashback, lane), 0, 0);
    assert!(flashback.submit(id, Command::Program { at, bytes, page }).is_none());
}

/// The first die fails a program that is under way.
fn with_a_failing_program() -> Flashback {
    let mut flashback = of_three_dies(Knobs { program_error: 1_000_000, ..Knobs::default() });
    program(&mut flashback, 7, 0);
    flashback
}

/// What is done by the time at which a loss is to be put on record.
fn done_until_the_loss(flashback: &mut Flashback) -> Vec<Done> {
    let mut done = Vec::new();
    for _ in 0..1000 {
        done.extend(flashback.poll());
        if flashback.wants_record() {
            done.extend(flashback.poll());
            return done;
        }
        flashback.wait();
    }
    panic!("a program that fails costs no die");
}

#[test]
fn a_program_that_cost_a_die_is_answered_when_the_loss_is_on_record() {
    let mut flashback = with_a_failing_program();
    let early = done_until_the_loss(&mut flashback);
    assert!(early.is_empty(), "answered before: {early:?}");
    let states = flashback.dies().to_vec();
    assert_eq!(states.iter().filter(|state| **state == DieState::Lost).count(), 1, "{states:?}");
    flashback.recorded(&states);
    let done = flashback.poll().expect("an answer");
    assert!(done.id == 7 && done.result.is_ok(), "{done:?}");
}

#[test]
fn a_loss_that_cannot_be_put_on_record_is_an_error() {
    let mut flashback = with_a_failing_program();
    assert!(done_until_the_loss(&mut flashback).is_empty());
    flashback.record_failed();
    let done = flashback.poll().expect("an answer");
    assert!(done.id == 7 && done.result.is_err(), "{done:?}");
    assert!(!flashback.wants_record(), "the record is tried again although nobody waits for it");
}

/// What is done within a time in which all of it should be.
fn done_soon(flashback: &mut Flashback) -> Vec<Done> {
    (0..1000).filter_map(|_| flashback.poll()).collect()
}

/// Its owner tries a program again that failed because no loss could be recorded, when its stripe is long complete.
#[test]
fn a_program_of_a_complete_stripe_is_tried_again_until_the_loss_is_on_record() {
    for lane in 0..2 {
        let mut flashback = of_three_dies(Knobs::default());
        let lost = die_of(&flashback, lane);
        assert!(flashback.lose(lost));
        for lane in 0..2 {
            program(&mut flashback, u64::from(lane), lane);
        }
        for _ in 0..3 {
            let done = done_soon(&mut flashback);
            assert!(done.iter().all(|done| done.id != u64::from(lane)), "answered before: {done:?}");
            assert!(!flashback.is_open(0), "the stripe is complete");
            flashback.record_failed();
            let done = done_soon(&mut flashback);
            assert!(matches!(&done[..], [Done { result: Err(_), .. }]), "{done:?}");
            program(&mut flashback, u64::from(lane), lane);
        }
        assert!(done_soon(&mut flashback).is_empty(), "answered before");
        let states = flashback.dies().to_vec();
        flashback.recorded(&states);
        let done = done_soon(&mut flashback);
        assert!(matches!(&done[..], [Done { result: Ok(None), .. }]), "{done:?}");
        assert!(!flashback.is_open(0), "a stripe was begun for it");
    }
}
