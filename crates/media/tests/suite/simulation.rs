//! The simulated medium: late and out of order, lossy when the power goes, strict with its user.

use std::collections::BTreeSet;

use media::sim::{Cut, Knobs, SimMedia, SimStore};
use media::{Command, LABEL_BYTES, Media, MediaError, PageAddr};
use random::SplitMix64;
use rustix::io::Errno;

use crate::common::*;

const PAGE: u32 = 69632;

fn new(seed: u64) -> (SimStore, SimMedia) {
    let store = SimStore::new(geometry());
    let medium = SimMedia::new(&store, seed, Knobs::default());
    (store, medium)
}

fn allocated(seed: u64) -> (SimStore, SimMedia) {
    let (store, mut medium) = new(seed);
    for block in 0..geometry().blocks {
        run(&mut medium, Command::Allocate { block }).expect("allocate");
    }
    run(&mut medium, Command::Sync).expect("sync");
    (store, medium)
}

fn start(medium: &mut SimMedia, id: u64, at: PageAddr, seed: u32) {
    let page = medium.page();
    fill(&page, 0..PAGE, seed);
    assert!(medium.submit(id, Command::Program { at, bytes: 0..PAGE, page }).is_none());
}

fn again(store: &SimStore) -> SimMedia {
    SimMedia::new(store, 99, Knobs::default())
}

#[test]
fn a_seed_gives_the_same_run_and_seeds_differ_in_order() {
    let order = |seed| {
        let (store, mut medium) = allocated(seed);
        for id in 0..8 {
            start(&mut medium, id, at(0, 0, id as u32 % 4), id as u32 + if id > 3 { 0 } else { 9 });
            if id == 3 {
                (0..4).for_each(|_| drop(next(&mut medium)));
                run(&mut medium, Command::Erase { block: 0 }).expect("erase");
                run(&mut medium, Command::Allocate { block: 0 }).expect("allocate");
            }
        }
        let order: Vec<u64> = (0..4).map(|_| next(&mut medium).id).collect();
        store.power_cut(&mut SplitMix64::from_state(seed));
        (order, (0..4).map(|page| read(&mut again(&store), at(0, 0, page), 0..PAGE)).collect::<Vec<_>>())
    };
    assert_eq!(order(5), order(5));
    let orders: BTreeSet<Vec<u64>> = (0..50).map(|seed| order(seed).0).collect();
    assert!(orders.len() > 10, "{orders:?}");
}

#[test]
fn a_sync_covers_exactly_what_was_done_before_it_was_submitted() {
    for seed in 0..50 {
        let (store, mut medium) = allocated(seed);
        program_page(&mut medium, at(0, 0, 0), 1);
        start(&mut medium, 1, at(0, 0, 1), 2);
        assert!(medium.submit(2, Command::Sync).is_none());
        let mut done = BTreeSet::new();
        while done.len() < 2 {
            done.insert(next(&mut medium).id);
        }
        assert!(store.has_volatile());
        store.power_cut_as(&mut SplitMix64::from_state(seed), &Cut::LOSE_ALL);
        let mut medium = again(&store);
        expect(&mut medium, at(0, 0, 0), 0..PAGE, 1);
        expect_zeros(&mut medium, at(0, 0, 1), 0..PAGE);
    }
}

#[test]
fn what_no_sync_covered_is_absent_whole_or_torn_in_pieces() {
    let mut fates = BTreeSet::new();
    for seed in 0..200 {
        let (store, mut medium) = allocated(seed);
        program_page(&mut medium, at(0, 0, 0), 1); // done
        start(&mut medium, 1, at(1, 0, 0), 2); // under way
        store.power_cut(&mut SplitMix64::from_state(seed));
        let mut medium = again(&store);
        for (die, seed) in [(0, 1), (1, 2)] {
            let bytes = read(&mut medium, at(die, 0, 0), 0..PAGE);
            let mut there = Vec::new();
            for (number, piece) in bytes.chunks(512).enumerate() {
                let new = piece.iter().zip(number as u32 * 512..).all(|(found, index)| *found == byte(seed, index));
                assert!(new || piece.iter().all(|byte| *byte == 0), "a piece is whole or absent");
                there.push(new);
            }
            let count = there.iter().filter(|new| **new).count();
            let prefix = there[..count].iter().all(|new| *new);
            fates.insert((
                die,
                if count == 0 {
                    0
                } else if count == there.len() {
                    1
                } else {
                    2 + u8::from(prefix)
                },
            ));
        }
    }
    assert_eq!(fates.len(), 8, "each of absent, whole, torn anywhere and torn after a prefix: {fates:?}");
}

#[test]
fn flipped_bits_are_single() {
    let (store, mut medium) = allocated(1);
    program_page(&mut medium, at(0, 0, 0), 1);
    store.power_cut_as(&mut SplitMix64::from_state(1), &Cut { whole: 0, torn: 0, flipped: 1_000_000 });
    let bytes = read(&mut again(&store), at(0, 0, 0), 0..PAGE);
    let wrong: u32 = bytes.iter().zip(0..).map(|(found, index)| (found ^ byte(1, index)).count_ones()).sum();
    assert_eq!(wrong, 1);
}

#[test]
fn erases_happen_or_not_on_each_die_and_in_part() {
    let mut left = BTreeSet::new();
    for seed in 0..300 {
        let (store, mut medium) = allocated(seed);
        for die in 0..2 {
            (0..4).for_each(|page| program_page(&mut medium, at(die, 0, page), 1));
        }
        run(&mut medium, Command::Sync).expect("sync");
        run(&mut medium, Command::Erase { block: 0 }).expect("erase");
        expect_zeros(&mut medium, at(0, 0, 0), 0..PAGE);
        store.power_cut(&mut SplitMix64::from_state(seed));
        let mut medium = again(&store);
        let there = |die| (0..4).filter(|page| read(&mut medium, at(die, 0, *page), 5..6)[0] == byte(1, 5)).count();
        left.insert([0, 1].map(there));
    }
    for expected in [[0, 0], [4, 4], [0, 4], [4, 0]] {
        assert!(left.contains(&expected), "{left:?}");
    }
    assert!(left.iter().any(|[first, _]| (1..4).contains(first)), "{left:?}");
}

#[test]
fn a_label_under_way_is_old_new_or_torn_and_the_other_copy_stays() {
    let label = |seed: u8| vec![vec![seed; LABEL_BYTES as usize]; 2];
    let mut fates = BTreeSet::new();
    for seed in 0..100 {
        let (store, mut medium) = new(seed);
        run(&mut medium, Command::WriteLabel { copy: 0, bytes: label(1) }).expect("label");
        run(&mut medium, Command::WriteLabel { copy: 1, bytes: label(2) }).expect("label");
        assert!(medium.submit(1, Command::WriteLabel { copy: 0, bytes: label(3) }).is_none());
        store.power_cut(&mut SplitMix64::from_state(seed));
        let mut medium = again(&store);
        assert_eq!(medium.read_label(0, 1), Ok(label(2)[0].clone()));
        let bytes = medium.read_label(1, 0).expect("label");
        let new = bytes.iter().filter(|byte| **byte == 3).count();
        assert!(bytes.iter().all(|byte| [1, 3].contains(byte)));
        fates.insert((new > 0, new < bytes.len()));
    }
    assert_eq!(fates, BTreeSet::from([(false, true), (true, false), (true, true)]));
}

#[test]
fn what_is_under_way_to_a_die_that_is_replaced_goes_to_the_old_one() {
    for keep in [false, true] {
        let (store, mut medium) = allocated(7);
        let bytes = vec![vec![5; LABEL_BYTES as usize]; 2];
        assert!(medium.submit(1, Command::WriteLabel { copy: 0, bytes: bytes.clone() }).is_none());
        start(&mut medium, 2, at(0, 1, 1), 4);
        start(&mut medium, 3, at(1, 1, 1), 4);
        store.replace_die(1);
        match keep {
            true => store.power_cut_as(&mut SplitMix64::from_state(1), &Cut::KEEP_ALL),
            false => (0..3).for_each(|_| while medium.poll().is_none() {}),
        }
        let mut medium = again(&store);
        assert_eq!(medium.read_label(0, 0), Ok(bytes[0].clone()));
        assert_eq!(medium.read_label(1, 0), Ok(vec![0; LABEL_BYTES as usize]));
        expect(&mut medium, at(0, 1, 1), 0..PAGE, 4);
        let read = run(&mut medium, Command::Read { at: at(1, 1, 1), bytes: 0..PAGE }).expect("read").expect("bytes");
        assert!(read.bytes().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn the_power_fails_with_the_chosen_command() {
    let (store, mut medium) = allocated(3);
    store.cut_at(store.commands() + 2);
    start(&mut medium, 10, at(0, 0, 0), 1);
    assert!(!store.is_off());
    start(&mut medium, 11, at(0, 0, 1), 2);
    assert!(store.is_off());
    let off = Err(MediaError::Os(Errno::NODEV));
    let late = medium.submit(12, Command::Sync).expect("refused on the spot");
    assert_eq!((late.id, late.result.map(|_| ())), (12, off.clone()));
    let mut failed = BTreeSet::new();
    while let Some(done) = medium.poll() {
        assert_eq!(done.result.map(|_| ()), off);
        failed.insert(done.id);
    }
    assert_eq!(failed, BTreeSet::from([10, 11]));
    assert!(medium.read_label(0, 0).is_err());
    store.power_cut_as(&mut SplitMix64::from_state(1), &Cut::KEEP_ALL);
    assert!(medium.submit(13, Command::Sync).is_some(), "a medium from before the cut stays dead");
    let mut medium = again(&store);
    expect(&mut medium, at(0, 0, 0), 0..PAGE, 1);
    expect(&mut medium, at(0, 0, 1), 0..PAGE, 2);
}

#[test]
fn a_dying_process_loses_nothing_that_was_submitted() {
    let (store, mut medium) = allocated(3);
    start(&mut medium, 1, at(0, 0, 0), 1);
    drop(medium);
    let mut medium = again(&store);
    expect(&mut medium, at(0, 0, 0), 0..PAGE, 1);
    assert!(store.has_volatile());
}

#[test]
fn forks_go_their_own_ways() {
    let (store, mut medium) = allocated(3);
    program_page(&mut medium, at(0, 0, 0), 1);
    let fork = store.fork();
    fork.power_cut_as(&mut SplitMix64::from_state(1), &Cut::LOSE_ALL);
    store.power_cut_as(&mut SplitMix64::from_state(1), &Cut::KEEP_ALL);
    expect_zeros(&mut again(&fork), at(0, 0, 0), 0..PAGE);
    expect(&mut again(&store), at(0, 0, 0), 0..PAGE, 1);
}

#[test]
fn faults_on_command() {
    let (store, mut medium) = allocated(3);
    program_page(&mut medium, at(0, 0, 0), 1);
    store.rot(at(0, 0, 0), 77, 0x10);
    let bytes = read(&mut medium, at(0, 0, 0), 76..79);
    assert_eq!(bytes, [byte(1, 76), byte(1, 77) ^ 0x10, byte(1, 78)]);
    store.lose_next_program();
    program_page(&mut medium, at(0, 0, 1), 2);
    expect_zeros(&mut medium, at(0, 0, 1), 0..PAGE);
    store.misdirect_next_program(at(1, 3, 3));
    program_page(&mut medium, at(0, 0, 2), 3);
    expect_zeros(&mut medium, at(0, 0, 2), 0..PAGE);
    expect(&mut medium, at(1, 3, 3), 0..PAGE, 3);
    store.fail_page(at(0, 0, 0));
    for _ in 0..2 {
        let failed = run(&mut medium, Command::Read { at: at(0, 0, 0), bytes: 0..1 });
        assert_eq!(failed.err(), Some(MediaError::Os(Errno::IO)));
    }
    run(&mut medium, Command::Erase { block: 0 }).expect("erase");
    expect_zeros(&mut medium, at(0, 0, 0), 0..PAGE);
}

#[test]
fn knobs_fail_commands() {
    let (_store, mut medium) = allocated(3);
    let always = 1_000_000;
    medium.set_knobs(Knobs { no_space: always, sync_error: always, program_error: always, ..Knobs::default() });
    assert_eq!(run(&mut medium, Command::Allocate { block: 0 }).err(), Some(MediaError::NoSpace));
    assert_eq!(run(&mut medium, Command::Sync).err(), Some(MediaError::Os(Errno::IO)));
    let page = medium.page();
    let program = Command::Program { at: at(0, 0, 0), bytes: 0..PAGE, page };
    assert_eq!(run(&mut medium, program).err(), Some(MediaError::Os(Errno::IO)));
    medium.set_knobs(Knobs { read_error: always, ..Knobs::default() });
    let read = |page| Command::Read { at: at(0, 0, page), bytes: 0..9 };
    assert_eq!(run(&mut medium, read(0)).err(), Some(MediaError::Os(Errno::IO)));
    medium.set_knobs(Knobs::default());
    assert_eq!(run(&mut medium, read(0)).err(), Some(MediaError::Os(Errno::IO)), "a broken page stays broken");
    assert!(run(&mut medium, read(1)).is_ok());
}

macro_rules! breaks_the_protocol {
    ($($name:ident: $message:literal, $break_it:expr;)*) => {
        mod breaks_the_protocol {
            use super::*;
            $(#[test]
            #[should_panic(expected = $message)]
            fn $name() {
                let break_it: fn(&mut SimMedia) = $break_it;
                break_it(&mut allocated(7).1);
            })*
        }
    };
}

breaks_the_protocol! {
    programs_a_unit_twice: "programmed before", |medium| {
        program(medium, at(0, 0, 0), 0..8192, 1);
        program(medium, at(0, 0, 0), 4096..12288, 1);
    };
    programs_part_of_a_unit: "units are 4096", |medium| program(medium, at(0, 0, 0), 0..100, 1);
    programs_behind_the_page: "units are 4096", |medium| {
        let page = medium.page();
        medium.submit(1, Command::Program { at: at(0, 0, 0), bytes: PAGE..PAGE + 4096, page });
    };
    programs_an_unallocated_block: "not allocated", |medium| {
        run(medium, Command::Erase { block: 0 }).expect("erase");
        program_page(medium, at(0, 0, 0), 1);
    };
    programs_while_the_erase_is_under_way: "is under way", |medium| {
        medium.submit(1, Command::Erase { block: 0 });
        start(medium, 2, at(0, 0, 0), 1);
    };
    programs_while_the_allocation_is_under_way: "is under way", |medium| {
        medium.submit(1, Command::Allocate { block: 0 });
        start(medium, 2, at(0, 0, 0), 1);
    };
    erases_while_a_program_is_under_way: "is under way", |medium| {
        start(medium, 2, at(0, 0, 0), 1);
        medium.submit(1, Command::Erase { block: 0 });
    };
    changes_a_buffer_under_way: "changed under way", |medium| {
        let page = medium.page();
        fill(&page, 0..PAGE, 1);
        medium.submit(1, Command::Program { at: at(0, 0, 0), bytes: 0..4096, page: page.clone() });
        fill(&page, 4000..4097, 2);
        next(medium);
    };
    reuses_an_id: "id 5 is under way", |medium| {
        medium.submit(5, Command::Sync);
        medium.submit(5, Command::Sync);
    };
    addresses_what_is_not_there: "outside", |medium| {
        run(medium, Command::Read { at: at(2, 0, 0), bytes: 0..1 }).expect("panics");
    };
}

#[test]
fn a_buffer_may_be_filled_behind_what_is_under_way() {
    let (_store, mut medium) = allocated(7);
    let page = medium.page();
    fill(&page, 0..4096, 1);
    medium.submit(1, Command::Program { at: at(0, 0, 0), bytes: 0..4096, page: page.clone() });
    fill(&page, 4096..PAGE, 2);
    assert!(next(&mut medium).result.is_ok());
}
