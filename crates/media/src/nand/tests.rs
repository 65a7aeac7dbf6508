//! The model against times worked out by hand.

use super::*;

fn nand(dies: u32, channels: u32) -> Nand {
    let sheet = Sheet {
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
    };
    let controller = Controller {
        read_request_us: 10.0,
        write_request_us: 0.0,
        read_latency_us: 0.0,
        write_latency_us: 0.0,
        read_bytes_per_s: 1_000_000_000,
        write_bytes_per_s: 500_000_000,
        link_bytes_per_s: 1_000_000_000,
        buffer_bytes: 1 << 20,
        reserve_percent: 4.0,
        groomer: "fifo".into(),
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
        unit_bytes: 8256,
    };
    let shape = Shape { geometry, dies_per_chip: 1, spares: 2, erase_divisor: 1 };
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
    // 50 us for the cells; the channel takes 40.96 us, the path 10 + 4.096.
    assert_eq!(run(&mut nand), [(1, 1000 + 50_000 + 40_960)]);
    nand.read(1_000_000, 2, page(0, 0), 512, HOST);
    assert_eq!(run(&mut nand), [(2, 1_000_000 + 50_000 + 10_512)], "a small one waits for the request's cost");
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
