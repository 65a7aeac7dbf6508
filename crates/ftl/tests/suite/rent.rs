//! Grooming by price: what is collected when, and that need goes first.

use ftl::{Addressed, AtOnce, Collected, Config, Fees, Ftl, Geometry, Policy, Recovery, Request, TRAILER_BYTES};

const SLOTS: u64 = 64;

/// A layer of 40 LEBs of 64 slots, for a host of 1,200 sectors, which collects by these fees.
fn layer(fees: Option<Fees>) -> Addressed<AtOnce> {
    let geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: 40,
        pages_per_block: 16,
        slots_per_page: 4,
        sector_bytes: 4096,
        trailer_bytes: TRAILER_BYTES,
        unit_bytes: 4096,
    };
    let mut config = Config {
        geometry,
        sectors: 1200,
        max_request: 8,
        buffers: 0,
        requests: 16,
        checkpoint_interval: 128,
        erase_before_program: true,
        power_protected: false,
        policy: Policy::Greedy,
    };
    config.buffers = config.min_buffers();
    let mut ftl: Ftl =
        Recovery::new(config, ftl::Anchor::default()).and_then(|recovery| recovery.finish(1)).expect("a new layer");
    ftl.set_fees(fees);
    Addressed::new(ftl, AtOnce)
}

fn write(layer: &mut Addressed<AtOnce>, sectors: impl Iterator<Item = u64>) {
    for lba in sectors {
        layer.submit(Request::Write { lba, count: 1, fua: false });
    }
    layer.submit(Request::Flush);
}

fn look(layer: &mut Addressed<AtOnce>, now_ms: u64, is_here: bool) -> Collected {
    layer.ftl.look_at_rent(now_ms, |_| is_here);
    carry_out(layer);
    layer.ftl.collected()
}

fn carry_out(layer: &mut Addressed<AtOnce>) {
    for _ in 0..1000 {
        ftl::Engine::carry_out(layer, ());
        layer.ftl.work();
    }
    layer.verify().expect("the books agree");
}

/// A slot kept for a second costs 1, and moving one costs 100.
const FEES: Fees =
    Fees { keep: 0.001, collect: 0.0, append: 100.0, fetch_page: 0.0, fetch_slot: 0.0, most_moved: u64::MAX };

/// Half of every LEB of the first 600 sectors is dead, and behind a checkpoint.
fn half_dead(fees: Option<Fees>) -> Addressed<AtOnce> {
    let mut layer = layer(fees);
    write(&mut layer, 0..600);
    write(&mut layer, (0..600).step_by(2));
    write(&mut layer, 600..900);
    carry_out(&mut layer);
    layer
}

#[test]
fn a_leb_is_collected_when_its_garbage_has_cost_as_much_as_its_collection() {
    let mut layer = half_dead(Some(FEES));
    assert_eq!(look(&mut layer, 0, true), Collected::default(), "nothing was kept for any time yet");
    let (free, half) = (layer.ftl.free_lebs(), SLOTS / 2);
    // About 32 dead slots a LEB: after 100 seconds they have cost about 3,200, as much as moving the 32 live ones does.
    assert_eq!(look(&mut layer, 80_000, true), Collected::default());
    let collected = look(&mut layer, 140_000, true);
    assert!(collected.lebs >= 7, "{collected:?}");
    assert!(collected.moved <= collected.lebs * (half + 2) && collected.moved > collected.lebs * (half - 4));
    assert!(layer.ftl.free_lebs() > free, "{} LEBs are free, and were {free}", layer.ftl.free_lebs());
    assert_eq!(layer.ftl.overdue(), []);
    // What stands in their place owes nothing.
    assert_eq!(look(&mut layer, 150_000, true), collected);
}

#[test]
fn without_fees_nothing_is_collected_by_price() {
    let mut layer = half_dead(None);
    look(&mut layer, 0, true);
    assert_eq!(look(&mut layer, u64::MAX / 2, true), Collected::default());
}

#[test]
fn an_empty_leb_goes_at_once_and_a_full_one_stays() {
    let mut layer = layer(Some(FEES));
    write(&mut layer, 0..600);
    write(&mut layer, 0..128);
    write(&mut layer, 600..900);
    carry_out(&mut layer);
    look(&mut layer, 0, true);
    let collected = look(&mut layer, 1, true);
    assert!(collected.lebs >= 1 && collected.moved == 0, "{collected:?}");
    // Within an hour those follow that are dead in part, and none that is full, though every LEB has a header that is never live.
    let later = look(&mut layer, 3_600_000, true);
    assert!(later.lebs <= collected.lebs + 2 && later.moved < 3 * SLOTS, "{later:?}");
}

#[test]
fn what_must_be_fetched_waits_longer() {
    let fees = Fees { fetch_page: 500.0, fetch_slot: 100.0, ..FEES };
    let (mut here, mut there) = (half_dead(Some(fees)), half_dead(Some(fees)));
    look(&mut here, 0, true);
    look(&mut there, 0, false);
    assert!(look(&mut here, 140_000, true).lebs > 0);
    assert_eq!(look(&mut there, 140_000, false), Collected::default());
    assert!(look(&mut there, 700_000, false).lebs > 0);
}

#[test]
fn no_more_is_moved_between_two_looks_than_clients_may_notice() {
    let mut layer = half_dead(Some(Fees { most_moved: 40, ..FEES }));
    look(&mut layer, 0, true);
    let first = look(&mut layer, 300_000, true);
    assert!((1..=2).contains(&first.lebs), "{first:?}");
    let second = look(&mut layer, 300_001, true);
    assert!(second.lebs > first.lebs && second.lebs <= 4, "{second:?}");
    for now in 0..40 {
        look(&mut layer, 300_002 + now, true);
    }
    assert_eq!(layer.ftl.overdue(), []);
}

/// However dear moving is, a device that is written to goes on, with no more moves than one without prices.
#[test]
fn need_goes_before_price() {
    let dear = Fees { append: 1e12, collect: 1e12, ..FEES };
    let (mut with, mut without) = (layer(Some(dear)), layer(None));
    for layer in [&mut with, &mut without] {
        write(layer, 0..1200);
        for round in 0..30u64 {
            write(layer, (0..1200).map(|at| (at * 7919 + round * 104_729) % 1200));
            look(layer, round * 60_000, true);
        }
    }
    assert_eq!(with.ftl.stats().host_written_sectors, 31 * 1200);
    assert_eq!(with.ftl.collected(), Collected { lebs: with.ftl.collected().lebs, moved: 0 }, "only empty ones");
    let moved = |layer: &Addressed<AtOnce>| layer.ftl.stats().groomed_sectors as f64;
    let (with, without) = (moved(&with), moved(&without));
    assert!(without > 1000.0 && with < without * 1.05, "{with} moves, and {without} without prices");
}

#[test]
fn what_stands_in_a_lebs_place_owes_nothing() {
    // Long enough for a debt that would pay for a hundred more collections.
    let mut layer = half_dead(Some(Fees { collect: 20_000.0, ..FEES }));
    look(&mut layer, 0, true);
    let collected = look(&mut layer, 10_000_000, true);
    assert!(collected.lebs >= 7, "{collected:?}");
    // All LEBs are used once more, and a little of each dies.
    write(&mut layer, 0..1200);
    write(&mut layer, (0..1200).step_by(8));
    write(&mut layer, 1000..1200);
    carry_out(&mut layer);
    let before = look(&mut layer, 10_000_001, true);
    let after = look(&mut layer, 10_000_010, true);
    assert_eq!((before.moved, after.moved), (collected.moved, collected.moved));
}
