//! What every medium does the same way, run over each of them.

use std::collections::HashSet;
use std::rc::Rc;

use media::drill::DrillMedia;
use media::nand::{Nand, Paced, Shape, inner_geometry};
use media::{Base, Command, LABEL_BYTES, Media, MediaError, Memory};

use crate::common::*;

fn roundtrip(media: &mut dyn Media) {
    let geometry = *media.geometry();
    run(media, Command::Allocate { block: 1 }).expect("allocate");
    for die in 0..geometry.dies {
        for page in 0..geometry.pages_per_block {
            program_page(media, at(die, 1, page), die * 100 + page);
        }
    }
    run(media, Command::Sync).expect("sync");
    for die in 0..geometry.dies {
        for page in 0..geometry.pages_per_block {
            let seed = die * 100 + page;
            expect(media, at(die, 1, page), 0..geometry.page_bytes(), seed);
            for slot in 0..geometry.slots_per_page {
                let start = slot * geometry.slot_bytes();
                expect(media, at(die, 1, page), start..start + geometry.slot_bytes(), seed);
            }
            expect(media, at(die, 1, page), geometry.page_bytes() - 1..geometry.page_bytes(), seed);
            expect(media, at(die, 1, page), 4095..4097, seed);
        }
    }
    expect_zeros(media, at(0, 0, 0), 0..geometry.page_bytes());
    expect_zeros(media, at(1, 2, 3), 4000..5000);
}

fn partial_programs(media: &mut dyn Media) {
    let (unit, bytes) = (media.geometry().unit_bytes, media.geometry().page_bytes());
    run(media, Command::Allocate { block: 0 }).expect("allocate");
    // The same buffer, filled further while its first units are already on the medium.
    let page = media.page();
    fill(&page, 0..2 * unit, 1);
    run(media, Command::Program { at: at(0, 0, 0), bytes: 0..2 * unit, page: Rc::clone(&page) }).expect("program");
    let first = run(media, Command::Read { at: at(0, 0, 0), bytes: 10..unit + 10 }).expect("read").expect("bytes");
    fill(&page, 2 * unit..9 * unit, 2);
    run(media, Command::Program { at: at(0, 0, 0), bytes: 2 * unit..9 * unit, page }).expect("program");
    // Another buffer goes on with the same page, while the first read's bytes are still lent out.
    program(media, at(0, 0, 0), 9 * unit..bytes, 3);
    expect(media, at(0, 0, 0), 0..2 * unit, 1);
    expect(media, at(0, 0, 0), 2 * unit..9 * unit, 2);
    expect(media, at(0, 0, 0), 9 * unit..bytes, 3);
    assert!(first.bytes().iter().zip(10..).all(|(found, index)| *found == byte(1, index)));
}

fn erase(media: &mut dyn Media) {
    let bytes = media.geometry().page_bytes();
    for block in [1, 2] {
        run(media, Command::Allocate { block }).expect("allocate");
        for die in 0..media.geometry().dies {
            program_page(media, at(die, block, 0), 10 + block);
        }
    }
    let lent = run(media, Command::Read { at: at(0, 1, 0), bytes: 0..bytes }).expect("read").expect("bytes");
    run(media, Command::Erase { block: 1 }).expect("erase");
    for die in 0..media.geometry().dies {
        expect_zeros(media, at(die, 1, 0), 0..bytes);
        expect(media, at(die, 2, 0), 0..bytes, 12);
    }
    run(media, Command::Allocate { block: 1 }).expect("allocate");
    for page in 0..media.geometry().pages_per_block {
        program_page(media, at(0, 1, page), 20);
    }
    expect(media, at(0, 1, 0), 0..bytes, 20);
    // Bytes that were read stay what they were, whatever happened to the block since.
    assert!(lent.bytes().iter().zip(0..).all(|(found, index)| *found == byte(11, index)));
}

fn labels(media: &mut dyn Media) {
    let dies = media.geometry().dies;
    let zeros = vec![0; LABEL_BYTES as usize];
    let label = |seed: u8, len: usize| (0..len).map(|index| seed ^ index as u8).collect::<Vec<u8>>();
    for die in 0..dies {
        assert_eq!(media.read_label(die, 0), Ok(zeros.clone()));
        assert_eq!(media.read_label(die, 1), Ok(zeros.clone()));
    }
    let full = |seed: u8| (0..dies).map(|die| label(seed + die as u8, LABEL_BYTES as usize)).collect::<Vec<_>>();
    run(media, Command::WriteLabel { copy: 1, bytes: full(40) }).expect("label");
    for die in 0..dies {
        assert_eq!(media.read_label(die, 0), Ok(zeros.clone()));
        assert_eq!(media.read_label(die, 1), Ok(full(40)[die as usize].clone()));
    }
    // A short one: its bytes are what counts.
    run(media, Command::WriteLabel { copy: 0, bytes: vec![label(9, 700); dies as usize] }).expect("label");
    for die in 0..dies {
        assert_eq!(media.read_label(die, 0).map(|bytes| bytes[..700].to_vec()), Ok(label(9, 700)));
        assert_eq!(media.read_label(die, 1), Ok(full(40)[die as usize].clone()));
    }
    expect_zeros(media, at(0, 0, 0), 0..4096);
    assert!(media.read_label(0, 2).is_err());
    assert!(media.read_label(dies, 0).is_err());
}

fn refused_labels(media: &mut dyn Media) {
    let refused = Err(MediaError::Os(rustix::io::Errno::INVAL));
    for (copy, bytes) in [(0, vec![vec![1; LABEL_BYTES as usize + 1]]), (2, vec![vec![1]]), (0, vec![vec![1]; 3])] {
        assert_eq!(run(media, Command::WriteLabel { copy, bytes }).map(|_| ()), refused);
    }
    assert_eq!(media.read_label(0, 0), Ok(vec![0; LABEL_BYTES as usize]));
}

fn many_at_once(media: &mut dyn Media) {
    let geometry = *media.geometry();
    for block in 0..geometry.blocks {
        run(media, Command::Allocate { block }).expect("allocate");
    }
    let everywhere = || {
        let pages = move |block| (0..geometry.pages_per_block).map(move |page| (block, page));
        let dies = move |die| (0..geometry.blocks).flat_map(pages).map(move |(block, page)| at(die, block, page));
        (0..geometry.dies).flat_map(dies).zip(0u64..)
    };
    let mut under_way = HashSet::new();
    for (at, id) in everywhere() {
        let page = media.page();
        fill(&page, 0..geometry.page_bytes(), id as u32);
        under_way.insert(id);
        if let Some(done) = media.submit(id, Command::Program { at, bytes: 0..geometry.page_bytes(), page }) {
            assert!(done.result.is_ok() && under_way.remove(&done.id));
        }
    }
    while !under_way.is_empty() {
        let done = next(media);
        assert!(matches!(done.result, Ok(None)) && under_way.remove(&done.id));
    }
    let check = |done: media::Done, under_way: &mut HashSet<u64>| {
        assert!(under_way.remove(&done.id));
        let slice = done.result.expect("read").expect("bytes");
        let start = 4128 * (done.id as u32 % 16);
        assert!(slice.bytes().iter().zip(start..).all(|(found, index)| *found == byte(done.id as u32, index)));
    };
    for (at, id) in everywhere() {
        let start = 4128 * (id as u32 % 16);
        under_way.insert(id);
        if let Some(done) = media.submit(id, Command::Read { at, bytes: start..start + 4128 }) {
            check(done, &mut under_way);
        }
    }
    while !under_way.is_empty() {
        let done = next(media);
        check(done, &mut under_way);
    }
    assert!(media.poll().is_none());
}

macro_rules! suite {
    ($name:ident, $with:expr) => {
        mod $name {
            use super::*;
            suite!(@tests $with; roundtrip partial_programs erase labels refused_labels many_at_once);
        }
    };
    (@tests $with:expr; $($test:ident)*) => {
        $(#[test]
        fn $test() {
            let with: fn(fn(&mut dyn Media)) = $with;
            with(super::$test);
        })*
    };
}

fn with_file(dir: tempfile::TempDir, page_cache: bool, test: fn(&mut dyn Media)) {
    let paths = create(&dir, &geometry());
    test(&mut open(&paths, page_cache));
}

suite!(memory, |test| test(&mut Memory::new(geometry())));
suite!(file, |test| with_file(disk(), false, test));
suite!(file_through_the_page_cache, |test| with_file(disk(), true, test));
suite!(file_in_shm, |test| with_file(shm(), false, test));
/// Flash in time with its bytes in memory; its clock goes as fast as it is asked to.
fn with_paced(test: fn(&mut dyn Media)) {
    let profile = profile::find("iodrive-320-mlc").expect("a sheet");
    let sheet = &profile.flash().expect("a flash card").module;
    let shape = Shape { geometry: geometry(), dies_per_chip: 1, spares: 1, erase_divisor: 1, slc_pages: 0 };
    let nand = Nand::new(&shape, &sheet.nand, &sheet.controller, &sheet.energy, 1);
    test(&mut Paced::new(nand, Box::new(Memory::new(inner_geometry(&geometry())))));
}

mod paced {
    use super::*;
    // It keeps one label for all dies: tested in `paced.rs`.
    suite!(@tests |test| with_paced(test); roundtrip partial_programs erase many_at_once);
}

suite!(drilled, |test| test(&mut DrillMedia::new(Base::Plain(Box::new(Memory::new(geometry()))), true)));
suite!(drilled_behind_capacitors, |test| test(&mut DrillMedia::new(
    Base::Plain(Box::new(Memory::new(geometry()))),
    false
)));
suite!(drilled_file, |test| {
    let dir = disk();
    let paths = create(&dir, &geometry());
    test(&mut DrillMedia::new(Base::Plain(Box::new(open(&paths, false))), true));
});

suite!(simulated, |test| {
    for seed in 0..20 {
        let store = media::sim::SimStore::new(geometry());
        test(&mut media::sim::SimMedia::new(&store, seed, media::sim::Knobs::default()));
    }
});
