//! The model against times worked out by hand.

use super::*;

fn nand(dies: u32, channels: u32) -> Nand {
    changed(dies, channels, |_, _| ())
}

fn changed(dies: u32, channels: u32, change: impl FnOnce(&mut Shape, &mut Sheet)) -> Nand {
    let mut sheet = Sheet {
        dies_per_chip: 1,
        planes: 2,
        page_bytes: 4096,
        pages_per_block: 8,
        read_us: 50.0,
        program_us: vec![300.0, 900.0],
        erase_us: 3000.0,
        variation_percent: 0.0,
        endurance_cycles: 10_000,
        factory_bad_percent: 0.0,
        channels,
        channel_read_bytes_per_s: 100_000_000,
        channel_write_bytes_per_s: 100_000_000,
        independent_plane_reads: false,
        suspend: None,
        slc_cache: None,
        retry: None,
    };
    let controller = Controller {
        read_request_us: 10.0,
        write_request_us: 0.0,
        overwrite_us: 0.0,
        read_latency_us: 0.0,
        write_latency_us: 0.0,
        read_bytes_per_s: 1_000_000_000,
        write_bytes_per_s: 500_000_000,
        link_bytes_per_s: 1_000_000_000,
        buffer_bytes: 1 << 20,
        reserve_percent: 4.0,
        groomer: "fifo".into(),
        groom_round_bytes: 0,
        map_in_drive: false,
    };
    let energy =
        Energy { idle_watts: 5.0, read_uj: 10.0, program_uj: 60.0, erase_uj: 100.0, transfer_nj_per_byte: 1.0 };
    let geometry = Geometry {
        dies,
        parity: 0,
        blocks: 16,
        pages_per_block: 8,
        slots_per_page: 2,
        sector_bytes: 4096,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 8256,
    };
    let mut shape = Shape { geometry, dies_per_chip: 1, spares: 2, erase_divisor: 1, slc_pages: 0 };
    change(&mut shape, &mut sheet);
    Nand::new(&shape, &sheet, &controller, &energy, 1)
}

/// Runs to the end; gives what was done when.
fn run(nand: &mut Nand) -> Vec<(u64, Nanos)> {
    let mut done = Vec::new();
    while let Some(now) = nand.step() {
        done.extend(std::iter::from_fn(|| nand.done()).map(|done| (done.id, now)));
    }
    assert_eq!(nand.under_way(), 0);
    done
}

fn page(die: u32, page: u32) -> PageAddr {
    PageAddr { die, block: 0, page }
}

const HOST: Class = Class::Host { first: true };

#[test]
fn a_read_takes_cells_and_the_slower_of_path_and_channel() {
    let mut nand = nand(4, 4);
    nand.read(1000, 1, page(0, 0), 4096, HOST);
    // 50 us for the cells, in which it is set up on the path; the channel takes 40.96 us, the path 4.096.
    assert_eq!(run(&mut nand), [(1, 1000 + 50_000 + 40_960)]);
    nand.read(1_000_000, 2, page(0, 0), 512, HOST);
    assert_eq!(run(&mut nand), [(2, 1_000_000 + 50_000 + 5120)]);
}

#[test]
fn reads_are_set_up_one_after_the_other_while_cells_are_read() {
    let mut nand = changed(7, 7, |_, sheet| sheet.channel_read_bytes_per_s = 1_000_000_000);
    (0..7).for_each(|die| nand.read(0, u64::from(die), page(die, 0), 1000, HOST));
    // Five are set up in the 50 us of the cells, 10 us each; a page takes the path for a microsecond.
    let ends = run(&mut nand).into_iter().map(|(_, end)| end).collect::<Vec<_>>();
    assert_eq!(ends, [51_000, 52_000, 53_000, 54_000, 55_000, 66_000, 77_000]);
}

#[test]
fn a_read_without_cells_takes_the_path_only() {
    let mut nand = nand(4, 4);
    nand.pass(1000, 1, 4096);
    nand.pass(1000, 2, 4096);
    assert_eq!(run(&mut nand), [(1, 1000 + 14_096), (2, 1000 + 2 * 14_096)]);
    assert_eq!((nand.counts().reads, nand.counts().die_busy), (0, 0));
}

#[test]
fn a_program_takes_its_page_types_time() {
    let mut nand = nand(4, 4);
    nand.program(0, 1, page(0, 0), 8192);
    nand.program(0, 2, page(1, 1), 8192);
    // The second waits 16.384 us for the path; each channel takes 81.92 us.
    assert_eq!(run(&mut nand), [(1, 81_920 + 300_000), (2, 16_384 + 81_920 + 900_000)]);
    assert_eq!(nand.counts().programmed_bytes, 16_384);
}

#[test]
fn host_reads_pass_what_waits_but_not_what_is_under_way() {
    let mut nand = nand(1, 1);
    nand.program(0, 1, page(0, 0), 8192);
    nand.program(0, 2, page(0, 2), 8192);
    nand.read(0, 3, page(0, 0), 4096, HOST);
    let order: Vec<u64> = run(&mut nand).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [1, 3, 2]);
}

#[test]
fn reads_do_not_starve_the_rest() {
    let mut nand = nand(1, 1);
    nand.program(0, 100, page(0, 0), 8192);
    nand.program(0, 101, page(0, 2), 8192);
    for id in 0..40 {
        nand.read(0, id, page(0, 0), 512, HOST);
    }
    let done = run(&mut nand);
    let before = done.iter().position(|(id, _)| *id == 101).expect("done");
    assert!((8..=12).contains(&before), "{before} operations before the program that waits");
    assert_eq!(done.len(), 42);
}

#[test]
fn dies_on_one_channel_share_it() {
    let mut nand = nand(2, 1);
    nand.read(0, 1, page(0, 0), 4096, Class::Groom);
    nand.read(0, 2, page(1, 0), 4096, Class::Groom);
    assert_eq!(run(&mut nand), [(1, 90_960), (2, 90_960 + 40_960)]);
}

#[test]
fn an_erase_is_done_on_every_die_at_once() {
    let mut nand = nand(4, 4);
    nand.erase(0, 77, 3);
    assert_eq!(run(&mut nand), [(77, 3_000_000)]);
    assert_eq!(nand.wear().erases()[3], 1);
    let joules = nand.joules();
    assert!((joules - 4.0 * 2.0 * 100e-6).abs() < 1e-12, "{joules}");
}

#[test]
fn the_last_page_of_a_stripe_takes_the_parity_with_it() {
    let mut nand = nand(4, 4);
    nand.geometry.parity = 1;
    // Stripe 1 is turned by one: its data lies on dies 1, 2 and 3, its parity on die 0.
    for (id, die) in [(1, 1), (2, 2), (3, 3)] {
        assert_eq!(nand.counts().parity_bytes, 0);
        nand.program(0, id, page(die, 1), 8192);
    }
    assert!(nand.dies[0].busy);
    let done = run(&mut nand);
    assert_eq!(done.len(), 3, "nobody is told of parity: {done:?}");
    assert_eq!((nand.counts().parity_bytes, nand.counts().programmed_bytes), (8192, 4 * 8192));
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let times = |seed: u64| {
        let mut nand = nand(4, 2);
        nand.timing.variation = 20_000;
        nand.random = SplitMix64::new(seed);
        for id in 0..200 {
            match id % 3 {
                0 => nand.program(id * 10_000, id, page(id as u32 % 4, 0), 8192),
                _ => nand.read(id * 10_000, id, page(id as u32 % 4, 0), 4096, HOST),
            }
        }
        run(&mut nand)
    };
    assert_eq!(times(5), times(5));
    assert_ne!(times(5), times(6));
}

#[test]
fn erases_of_shorter_blocks_take_less() {
    let mut nand = changed(4, 4, |shape, _| shape.erase_divisor = 4);
    nand.erase(0, 77, 3);
    assert_eq!(run(&mut nand), [(77, 750_000)]);
    assert_eq!((nand.counts().erases, nand.counts().die_busy), (4, 4 * 750_000), "a block on every die");
}

#[test]
fn dies_of_a_chip_share_its_channel() {
    // Chips are counted through first: dies 0 and 2 are of one chip, 1 and 3 of the other.
    let mut nand = changed(4, 4, |shape, _| shape.dies_per_chip = 2);
    nand.read(0, 1, page(0, 0), 4096, Class::Groom);
    nand.read(0, 2, page(2, 0), 4096, Class::Groom);
    assert_eq!(run(&mut nand), [(1, 90_960), (2, 90_960 + 40_960)]);
    nand.read(1_000_000, 3, page(0, 0), 4096, Class::Groom);
    nand.read(1_000_000, 4, page(1, 0), 4096, Class::Groom);
    assert_eq!(run(&mut nand), [(3, 1_090_960), (4, 1_090_960 + 4_096)], "it waits for the path only");
}

#[test]
fn a_die_reads_on_while_its_register_is_read_out() {
    let mut nand = nand(1, 1);
    nand.read(0, 1, page(0, 0), 4096, Class::Groom);
    nand.read(0, 2, page(0, 1), 4096, Class::Groom);
    assert_eq!(run(&mut nand), [(1, 50_000 + 40_960), (2, 100_000 + 40_960)]);
}

#[test]
fn programs_load_at_the_rate_of_writes() {
    let mut nand = changed(1, 1, |_, sheet| sheet.channel_write_bytes_per_s = 50_000_000);
    nand.program(0, 1, page(0, 0), 8192);
    assert_eq!(run(&mut nand), [(1, 163_840 + 300_000)]);
    assert_eq!((nand.counts().die_busy, nand.path_busy()), (163_840 + 300_000, 16_384), "loading keeps the die");
    nand.read(1_000_000, 2, page(0, 0), 4096, HOST);
    run(&mut nand);
    assert_eq!((nand.counts().die_busy, nand.path_busy()), (463_840 + 50_000, 16_384 + 10_000 + 4_096));
    // A read of one plane, a program of both, and what was moved.
    let joules = 10e-6 + 2.0 * 60e-6 + (8192.0 + 4096.0) * 1e-9;
    assert!((nand.joules() - joules).abs() < 1e-12, "{}", nand.joules());
}

#[test]
fn host_reads_and_the_groomers_take_turns_on_the_path() {
    let mut nand = nand(8, 8);
    for die in 0..8 {
        let class = if die < 4 { HOST } else { Class::Groom };
        nand.read(0, u64::from(die), page(die, 0), 512, class);
    }
    let order: Vec<u64> = run(&mut nand).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn every_parity_page_is_loaded_and_programmed() {
    let mut nand = nand(4, 4);
    nand.geometry.parity = 2;
    nand.program(0, 1, page(0, 0), 8192);
    assert_eq!(nand.counts().parity_bytes, 0);
    nand.program(0, 2, page(1, 0), 8192);
    assert_eq!((nand.under_way(), nand.counts().parity_bytes), (4, 2 * 8192));
    run(&mut nand);
    let counts = nand.counts();
    assert_eq!((counts.programs, counts.bytes, counts.programmed_bytes), (4, 4 * 8192, 4 * 8192));
    // The second data page waits 16.384 us for the path with its die, the parity pages for nothing.
    assert_eq!(counts.die_busy, 4 * (81_920 + 300_000));
    assert_eq!(nand.path_busy(), 2 * 16_384, "parity takes nothing of the path");
}

/// Three data pages a stripe and one of parity; in stripe 0 die 3 holds it.
fn with_parity() -> Nand {
    let mut nand = nand(4, 4);
    nand.geometry.parity = 1;
    nand
}

#[test]
fn what_stood_on_a_lost_die_is_read_from_all_others() {
    let mut nand = with_parity();
    nand.set_lost(0, true);
    nand.read(0, 1, page(0, 0), 4096, HOST);
    // 50 us for the cells of three dies and 40.96 us for the channel of each, at the same time; then 10 + 4.096 us for the path.
    assert_eq!(run(&mut nand), [(1, 50_000 + 40_960 + 14_096)]);
    assert_eq!((nand.counts().reads, nand.counts().bytes, nand.counts().made_up_bytes), (3, 3 * 4096, 4096));
    nand.read(1_000_000, 2, page(0, 0), 4096, Class::Groom);
    assert_eq!(run(&mut nand), [(2, 1_000_000 + 50_000 + 40_960 + 4_096)], "the groomer makes no request");
    // Two at a time.
    nand.read(2_000_000, 3, page(0, 0), 4096, HOST);
    nand.read(2_000_000, 4, page(0, 0), 4096, HOST);
    let order: Vec<u64> = run(&mut nand).into_iter().map(|(id, _)| id).collect();
    assert_eq!(order, [3, 4]);
    nand.set_lost(0, false);
    nand.read(3_000_000, 5, page(0, 0), 4096, HOST);
    assert_eq!(run(&mut nand), [(5, 3_000_000 + 50_000 + 40_960)]);
    assert_eq!(nand.counts().made_up_bytes, 4 * 4096);
}

#[test]
fn nothing_is_programmed_or_erased_on_a_lost_die() {
    let mut nand = with_parity();
    nand.set_lost(0, true);
    nand.program(0, 1, page(0, 0), 8192);
    assert_eq!(run(&mut nand), [(1, 16_384)], "it takes the data path");
    nand.erase(1_000_000, 2, 0);
    assert_eq!(run(&mut nand), [(2, 4_000_000)]);
    assert_eq!((nand.counts().programs, nand.counts().erases), (0, 3));
    nand.set_lost(0, false);
    nand.set_lost(3, true);
    nand.program(5_000_000, 3, page(2, 0), 8192);
    run(&mut nand);
    assert_eq!((nand.counts().programs, nand.counts().parity_bytes), (1, 0), "its parity has nowhere to go");
}

#[test]
fn dies_are_out_of_reach_when_more_are_lost_than_parity_makes_up_for() {
    let mut nand = with_parity();
    nand.set_lost(2, true);
    assert!(!nand.is_out_of_reach(page(2, 0)));
    nand.set_lost(0, true);
    assert_eq!([0, 1, 2].map(|die| nand.is_out_of_reach(page(die, 0))), [true, false, true]);
    nand.set_lost(2, false);
    assert_eq!(nand.lost(), [0]);
    assert!(!nand.is_out_of_reach(page(0, 0)));
}

/// Chips of two dies each, one of the chips for parity: two groups of two data pages and one of parity a stripe.
fn with_parity_groups() -> Nand {
    changed(6, 3, |shape, _| {
        shape.geometry.parity = 2;
        shape.dies_per_chip = 2;
    })
}

#[test]
fn a_chip_may_be_lost_as_a_whole_and_no_two_dies_of_a_group() {
    let mut nand = with_parity_groups();
    let dies = |chip| (0..6).filter(|die| nand.chip_of(*die) == chip).collect::<Vec<u32>>();
    assert_eq!((nand.chips(), dies(0), dies(1), dies(2)), (3, vec![0, 3], vec![1, 4], vec![2, 5]));
    [0, 3].iter().for_each(|die| nand.set_lost(*die, true));
    assert!((0..6).all(|die| !nand.is_out_of_reach(page(die, 0))));
    assert_eq!(nand.lost_chips(), Some(vec![0]));
    // Dies 0, 2 and 4 are one group.
    nand.set_lost(4, true);
    assert_eq!((0..6).filter(|die| nand.is_out_of_reach(page(*die, 0))).collect::<Vec<u32>>(), [0, 4]);
    assert_eq!(nand.lost_chips(), None, "half of a chip is lost");
}

#[test]
fn a_lost_page_is_made_of_its_group_alone() {
    let mut nand = with_parity_groups();
    nand.set_lost(0, true);
    nand.read(0, 1, page(0, 0), 4096, HOST);
    run(&mut nand);
    assert_eq!((nand.counts().reads, nand.counts().made_up_bytes), (2, 4096), "of two others, not of five");
}

#[test]
fn a_chip_that_is_given_up_leaves_what_is_written_then_protected() {
    let mut nand = changed(10, 5, |shape, _| {
        shape.geometry.parity = 2;
        shape.dies_per_chip = 2;
    });
    let all = |block, nand: &Nand| (0..8).all(|die| !nand.is_out_of_reach(PageAddr { block, ..page(die, 0) }));
    nand.give_up(1, |block| block == 0);
    assert_eq!((nand.lost().to_vec(), nand.is_given_up(1), nand.is_given_up(2)), (vec![1, 6], true, false));
    assert!(all(0, &nand) && !nand.is_beyond_parity(0), "one of five chips is lost");
    // Six data pages are left in a stripe, on two dies of each of three chips, and the parity of both groups on the fourth.
    let mut programmed = Vec::new();
    for stripe in 0..4 {
        for lane in 0..6 {
            let at = PageAddr { die: nand.geometry.die_of(stripe, lane), block: 1, page: stripe };
            programmed.push(nand.seat(at).die);
            nand.program(u64::from(stripe) * 10_000_000, u64::from(lane), at, 8192);
        }
        run(&mut nand);
        let seats = &programmed[stripe as usize * 6..];
        let parity = nand.parity_dies(1, stripe);
        let mut used: Vec<u32> = seats.iter().copied().chain(parity.clone()).collect();
        used.sort_unstable();
        assert_eq!(used, [0, 2, 3, 4, 5, 7, 8, 9], "stripe {stripe} lies on every die that is left, once");
        assert_eq!(
            parity.iter().map(|die| nand.chip_of(*die)).collect::<Vec<u32>>(),
            [[0, 2, 3, 4][stripe as usize]; 2]
        );
    }
    assert_eq!((nand.counts().programs, nand.counts().parity_bytes), (4 * 8, 4 * 2 * 8192));
    // A second chip: what was laid out over four survives that, what lies on all five does not, until it is erased.
    nand.give_up(4, |block| block < 2);
    assert!(nand.is_beyond_parity(0) && !all(0, &nand));
    assert!(!nand.is_beyond_parity(1) && all(1, &nand) && !nand.is_beyond_parity(2));
    nand.erase(100_000_000, 1, 0);
    run(&mut nand);
    assert!(!nand.is_beyond_parity(0) && all(0, &nand));
}

#[test]
fn times_vary_to_both_sides_of_the_sheets() {
    let mut nand = changed(1, 1, |_, sheet| sheet.variation_percent = 10.0);
    let mut times = Vec::new();
    for id in 0..2_000 {
        nand.erase(id * 10_000_000, id, id as u32 % 16);
        times.extend(run(&mut nand).into_iter().map(|(_, at)| at - id * 10_000_000));
    }
    let (least, most) = (times.iter().min().copied(), times.iter().max().copied());
    assert!(least.is_some_and(|least| (2_700_000..2_710_000).contains(&least)), "{least:?}");
    assert!(most.is_some_and(|most| (3_290_000..=3_300_000).contains(&most)), "{most:?}");
    let mean = times.iter().sum::<u64>() / times.len() as u64;
    assert!(mean.abs_diff(3_000_000) < 20_000, "{mean}");
}

#[test]
fn an_erase_fails_when_a_block_is_worn_out_and_no_spare_is_left() {
    let mut nand = changed(4, 4, |_, sheet| sheet.endurance_cycles = 5);
    let mut erases = 0;
    let failed = loop {
        nand.erase(erases * 10_000_000, erases, 3);
        run_for_done(&mut nand, erases);
        erases += 1;
        if nand.wear().retired_lebs() > 0 {
            break erases;
        }
        assert!(erases < 1_000, "blocks of five cycles do not last");
    };
    // Two spares a die, and four blocks that begin.
    assert!(failed > 5 && nand.wear().bad_blocks() > 2, "{failed}");
    assert_eq!(nand.wear().reserve_percent(), 0.0);
}

/// Runs an erase to its end, which is good until the block is given up.
fn run_for_done(nand: &mut Nand, id: u64) {
    while nand.step().is_some() {}
    let done = nand.done().expect("the erase ends");
    assert_eq!((done.id, done.ok), (id, nand.wear().retired_lebs() == 0));
    assert!(nand.done().is_none());
}

fn suspending() -> Nand {
    changed(1, 1, |_, sheet| sheet.suspend = Some(profile::Suspend { after_us: 20.0, least_run_us: 100.0 }))
}

#[test]
fn a_program_is_suspended_for_a_read_unless_it_is_nearly_done() {
    // It programs from 81,920 to 981,920 ns; a read takes 50 us of the cells, and 40.96 of the channel.
    let with_a_read_at = |at: Nanos| {
        let mut nand = suspending();
        nand.program(0, 1, page(0, 1), 8192);
        while nand.next_event().is_some_and(|next| next < at) {
            nand.step();
        }
        nand.read(at, 2, page(0, 0), 4096, HOST);
        let done = run(&mut nand);
        assert_eq!(nand.counts().die_busy, 981_920 + 50_000);
        (done, nand.counts().suspended)
    };
    assert_eq!(with_a_read_at(300_000), (vec![(2, 410_960), (1, 1_051_920)], 1));
    assert_eq!(with_a_read_at(100_000), (vec![(2, 292_880), (1, 1_051_920)], 1), "it ran for 100 us at least");
    assert_eq!(with_a_read_at(970_000), (vec![(1, 981_920), (2, 1_072_880)], 0));
}

#[test]
fn what_is_suspended_ends_however_many_reads_come() {
    let mut nand = suspending();
    nand.erase(0, 1, 0);
    let mut done = Vec::new();
    for read in 0..1000 {
        let at = 10_000 * read;
        while nand.next_event().is_some_and(|next| next < at) {
            let now = nand.step().expect("an event");
            done.extend(std::iter::from_fn(|| nand.done()).map(|done| (done.id, now)));
        }
        nand.read(at, 100 + read, page(0, 0), 512, HOST);
    }
    done.extend(run(&mut nand));
    assert_eq!(done.len(), 1001);
    // In turn 100 us of its own, 20 to be suspended and eight reads of 50.
    let (_, ended) = done.iter().find(|(id, _)| *id == 1).expect("the erase ended");
    assert!((29 * 520_000..=31 * 520_000).contains(ended), "{ended}");
    assert!((28..=30).contains(&nand.counts().suspended), "{}", nand.counts().suspended);
}

/// One die whose cache holds two pages.
fn single_cells(when_full: profile::WhenFull) -> profile::SlcCache {
    profile::SlcCache { bytes: 16_384, bits_per_cell: 2, program_us: 100.0, read_us: 20.0, when_full, quiet_ms: 5.0 }
}

fn cached(when_full: profile::WhenFull) -> Nand {
    changed(1, 1, |shape, sheet| {
        shape.slc_pages = 2;
        sheet.slc_cache = Some(single_cells(when_full));
    })
}

/// When a program of a page begun at `now` ends, without what the channel takes.
fn programmed(nand: &mut Nand, now: Nanos, at: u32) -> Nanos {
    nand.program(now, 1, page(0, at), 8192);
    let taken = nand.run(Nanos::MAX).expect("it ends") - now - 81_920;
    assert_eq!(nand.done().map(|done| done.id), Some(1));
    taken
}

fn read_cells(nand: &mut Nand, now: Nanos, at: u32) -> Nanos {
    nand.read(now, 1, page(0, at), 4096, HOST);
    let taken = nand.run(Nanos::MAX).expect("it ends") - now - 40_960;
    assert_eq!(nand.done().map(|done| done.id), Some(1));
    taken
}

#[test]
fn a_full_cache_leaves_what_follows_to_dense_cells() {
    let mut nand = cached(profile::WhenFull::Dense);
    let times: Vec<Nanos> = (0..4).map(|at| programmed(&mut nand, u64::from(at) * 1_000_000, at)).collect();
    assert_eq!(times, [100_000, 100_000, 300_000, 900_000]);
    assert_eq!(read_cells(&mut nand, 4_000_000, 1), 20_000);
    assert_eq!(nand.under_way(), 0);
    // It is asked nothing more: both pages are folded, and read as dense ones.
    run(&mut nand);
    assert_eq!(nand.counts().folds, 2);
    assert_eq!(read_cells(&mut nand, 100_000_000, 1), 50_000);
}

#[test]
fn a_full_cache_folds_a_page_for_each_that_comes() {
    let mut nand = cached(profile::WhenFull::Fold);
    let times: Vec<Nanos> = (0..4).map(|at| programmed(&mut nand, u64::from(at) * 2_000_000, at)).collect();
    assert_eq!(times, [100_000, 100_000, 20_000 + 300_000 + 100_000, 20_000 + 900_000 + 100_000]);
    assert_eq!(nand.counts().folds, 2);
}

#[test]
fn a_cache_forgets_what_is_erased_and_holds_what_erased_flash_has_room_for() {
    let mut nand = cached(profile::WhenFull::Dense);
    programmed(&mut nand, 0, 0);
    nand.erase(1_000_000, 2, 0);
    run(&mut nand);
    assert_eq!(nand.counts().folds, 0);
    // 16 blocks of eight pages: with 126 dense ones there is room for one in the cache, which takes two.
    let mut nand = cached(profile::WhenFull::Dense);
    let full = |nand: &mut Nand, now, number: u32| {
        nand.program(now, 1, PageAddr { die: 0, block: number / 8, page: number % 8 }, 8192);
        run(nand);
    };
    (0..126).for_each(|number| full(&mut nand, u64::from(number) * 100_000_000, number));
    assert_eq!(nand.counts().folds, 126, "in each pause");
    full(&mut nand, 20_000_000_000, 126);
    full(&mut nand, 20_100_000_000, 127);
    assert_eq!(nand.counts().folds, 127, "the last one found no room");
}

#[test]
fn planes_that_are_independent_read_side_by_side() {
    let taken = |independent| {
        let mut nand = changed(1, 1, |_, sheet| sheet.independent_plane_reads = independent);
        nand.program(0, 99, page(0, 0), 8192);
        (0..200).for_each(|id| nand.read(0, id, page(0, 0), 512, HOST));
        nand.erase(0, 98, 1);
        let done = run(&mut nand);
        assert_eq!(done.len(), 202);
        let last = done.iter().filter(|(id, _)| *id < 98).map(|(_, at)| *at).max().expect("reads");
        // The program before them and the erase among them have the die for themselves.
        assert_eq!(nand.counts().reads, 200);
        assert_eq!(nand.counts().die_busy, 381_920 + 3_000_000 + 200 * 50_000);
        last - 381_920 - 3_000_000
    };
    let (alone, beside) = (taken(false), taken(true));
    assert!((98 * 50_000..=100 * 50_000).contains(&alone), "{alone}");
    assert!((alone / 2..alone * 3 / 4).contains(&beside), "{beside} of {alone}");
}

#[test]
fn reads_on_several_planes_wait_for_one_suspension() {
    let mut nand = changed(1, 1, |_, sheet| {
        sheet.independent_plane_reads = true;
        sheet.suspend = Some(profile::Suspend { after_us: 20.0, least_run_us: 100.0 });
    });
    // Planes are drawn: now and then two reads in a row are on different ones.
    for begin in (0..20).map(|round| round * 10_000_000) {
        nand.program(begin, 1, page(0, 1), 8192);
        while nand.next_event().is_some_and(|next| next < begin + 300_000) {
            nand.step();
        }
        nand.read(begin + 300_000, 2, page(0, 0), 512, HOST);
        nand.read(begin + 300_000, 3, page(0, 0), 512, HOST);
        let done = run(&mut nand);
        assert!(done.iter().all(|(_, at)| *at >= begin + 320_000 + 50_000), "{done:?}");
    }
    assert_eq!(nand.counts().suspended, 20);
}

/// Cells whose data are read at once for 10 days; steps of 60 us, two more for each doubling, seven at most.
fn forgetful(change: impl FnOnce(&mut Sheet)) -> Nand {
    changed(2, 2, |_, sheet| {
        sheet.retry = Some(profile::Retry { first_days: 10.0, steps_per_doubling: 2.0, most: 7, step_us: 60.0 });
        change(sheet);
    })
}

/// How many steps a read of a block takes at a moment.
fn steps(nand: &mut Nand, now: Nanos, block: u32) -> u64 {
    let before = nand.counts().retries;
    nand.read(now, 1, PageAddr { die: 0, block, page: 0 }, 4096, HOST);
    let fresh = 50_000 + 40_960;
    let took = run(nand)[0].1 - now;
    let steps = nand.counts().retries - before;
    assert_eq!(took, fresh + steps * 60_000);
    steps
}

#[test]
fn old_data_are_read_again_as_often_as_their_age_has_doubled() {
    let mut nand = forgetful(|_| ());
    assert_eq!(steps(&mut nand, 0, 0), 0, "nothing stands there");
    nand.program(1_000_000, 1, page(0, 0), 8192);
    run(&mut nand);
    assert_eq!([10, 20].map(|days| steps(&mut nand, days * DAY, 0)), [0, 2]);
    // Between two whole numbers of steps chance decides: 3.5 after 34 days.
    let some: Vec<u64> = (0..400).map(|at| steps(&mut nand, 34 * DAY + at * DAY / 10_000, 0)).collect();
    let counted = [3, 4].map(|steps| some.iter().filter(|some| **some == steps).count());
    assert!(counted[0] > 150 && counted[1] > 150 && counted[0] + counted[1] == 400, "{counted:?}");
    assert_eq!([40, 80, 1000].map(|days| steps(&mut nand, days * DAY, 0)), [4, 6, 7]);
}

#[test]
fn an_erase_makes_a_block_young_and_wear_makes_its_data_old_sooner() {
    let mut nand = forgetful(|sheet| sheet.endurance_cycles = 2);
    nand.program(0, 1, page(0, 0), 8192);
    run(&mut nand);
    assert_eq!(steps(&mut nand, 40 * DAY, 0), 4);
    for erased in 1..=2 {
        nand.erase(erased * 40 * DAY, 2, 0);
        run(&mut nand);
    }
    nand.program(100 * DAY, 1, page(0, 0), 8192);
    run(&mut nand);
    // At the rated cycles four days are as long as forty on new cells.
    assert_eq!([101, 104].map(|days| steps(&mut nand, days * DAY, 0)), [0, 4]);
}

#[test]
fn data_that_lay_without_power_are_older_than_the_clock_says() {
    let mut nand = forgetful(|_| ());
    nand.program(0, 1, page(0, 0), 8192);
    run(&mut nand);
    assert!(nand.grow_older(40 * DAY));
    assert_eq!(steps(&mut nand, 1_000_000_000, 0), 4);
    nand.program(1_000_000_000, 1, PageAddr { die: 0, block: 3, page: 0 }, 8192);
    run(&mut nand);
    assert_eq!(steps(&mut nand, 2_000_000_000, 3), 0, "what came later is young");
    // Taken back, everything has its own age again.
    nand.grow_younger(40 * DAY);
    let mut now = 3_000_000_000;
    let mut later = |block, by| {
        now += by;
        steps(&mut nand, now, block)
    };
    assert_eq!([later(0, 0), later(3, 1_000_000)], [0, 0]);
    // A whole number of steps but for the seconds since they were programmed.
    assert_eq!([later(0, 20 * DAY), later(3, 1_000_000)], [2, 2]);
    assert!(!changed(2, 2, |_, _| ()).grow_older(DAY), "nothing depends on it");
}

#[test]
fn a_cache_of_single_cells_needs_no_retries() {
    let mut nand = changed(1, 1, |shape, sheet| {
        shape.slc_pages = 2;
        sheet.slc_cache =
            Some(profile::SlcCache { quiet_ms: 40.0 * 86_400_000.0, ..single_cells(profile::WhenFull::Dense) });
        sheet.retry = Some(profile::Retry { first_days: 1.0, steps_per_doubling: 9.0, most: 9, step_us: 60.0 });
    });
    nand.program(0, 1, page(0, 0), 8192);
    while nand.done().is_none() {
        nand.step().expect("a program is under way");
    }
    nand.read(20 * DAY, 2, page(0, 0), 4096, HOST);
    run(&mut nand);
    assert_eq!((nand.counts().retries, nand.counts().folds), (0, 1), "it was folded later, in quiet times");
    nand.read(200 * DAY, 3, page(0, 0), 4096, HOST);
    run(&mut nand);
    assert_eq!(nand.counts().retries, 9, "what was folded stands in dense cells");
}
