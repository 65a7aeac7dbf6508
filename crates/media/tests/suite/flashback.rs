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

/// Three dies, one of them for parity, of which the first fails a program that is under way.
fn with_a_failing_program() -> Flashback {
    let shape = Geometry { dies: 3, parity: 1, ..geometry() };
    let store = SimStore::new(media_geometry(&shape));
    let mut medium = SimMedia::new(&store, 5, Knobs::default());
    for block in 0..medium.geometry().blocks {
        run(&mut medium, Command::Allocate { block }).expect("allocate");
    }
    medium.set_knobs(Knobs { program_error: 1_000_000, ..Knobs::default() });
    let mut flashback = Flashback::new(
        Drilled::Plain(Base::Plain(Box::new(medium))),
        shape,
        Box::new(Believes),
        vec![DieState::Good; 3],
    );
    let page = flashback.page();
    fill(&page, 0..shape.page_bytes(), 1);
    let at = (0..3).map(|die| at(die, 0, 0)).find(|at| shape.lane_of(at.page, at.die) == 0).expect("a first lane");
    let program = Command::Program { at, bytes: 0..shape.page_bytes(), page };
    assert!(flashback.submit(7, program).is_none());
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
