//! A layout that shrinks while the layer is in use.

use std::cell::RefCell;
use std::rc::Rc;

use ftl::{Addressed, Admission, Anchor, Config, Geometry, LebId, Medium, PageAddr, Policy, Recovery, Request};
use random::SplitMix64;

const SECTORS: u64 = 1900;
const GEOMETRY: Geometry = Geometry {
    dies: 6,
    parity: 1,
    blocks: 60,
    pages_per_block: 4,
    slots_per_page: 4,
    sector_bytes: 4096,
    trailer_bytes: ftl::TRAILER_BYTES,
    unit_bytes: 4128,
};

/// The lanes that were programmed.
#[derive(Clone, Default)]
struct Lanes(Rc<RefCell<Vec<u32>>>);

impl Medium for Lanes {
    fn program(&mut self, _: u64, page: PageAddr, _: u32) -> bool {
        self.0.borrow_mut().push(GEOMETRY.lane_of(page.page, page.die));
        true
    }

    fn erase(&mut self, _: u64, _: LebId) -> bool {
        true
    }
}

/// An empty layer on such a medium.
fn layer(policy: Policy) -> (Addressed<Lanes>, Lanes) {
    let mut config = Config {
        geometry: GEOMETRY,
        sectors: SECTORS,
        max_request: 4,
        buffers: 0,
        requests: 8,
        checkpoint_interval: 1 << 30,
        erase_before_program: true,
        power_protected: true,
        policy,
    };
    config.buffers = config.min_buffers();
    let lanes = Lanes::default();
    let ftl = Recovery::new(config, Anchor::default()).and_then(|recovery| recovery.finish(1)).expect("an empty layer");
    (Addressed::new(ftl, lanes.clone()), lanes)
}

fn submit(device: &mut Addressed<Lanes>, request: Request) {
    let taken = (0..100_000).any(|_| {
        let admission = device.ftl.submit(0, request);
        ftl::Engine::carry_out(device, ());
        admission != Admission::Busy
    });
    assert!(taken, "{request:?} is never taken");
}

fn narrow(device: &mut Addressed<Lanes>, lanes: u32) {
    assert!(device.ftl.can_narrow(lanes));
    device.ftl.close_open_lebs();
    ftl::Engine::carry_out(device, ());
    let since = device.ftl.next_seq();
    device.ftl.narrow(lanes, since);
    device.ftl.work();
    ftl::Engine::carry_out(device, ());
}

#[test]
fn everything_moves_out_of_wider_stripes_and_nothing_goes_there_again() {
    for (seed, policy) in (0..).zip([Policy::Fifo, Policy::Greedy, Policy::CostBenefit, Policy::default()]) {
        let (mut device, lanes) = layer(policy);
        let mut random = SplitMix64::new(seed);
        let mut write = |device: &mut Addressed<Lanes>, times: u64| {
            for _ in 0..times {
                let lba = random.below(SECTORS - 4);
                submit(device, Request::Write { lba, count: 1 + random.below(4) as u32, fua: false });
            }
        };
        (0..SECTORS).for_each(|lba| submit(&mut device, Request::Write { lba, count: 1, fua: false }));
        write(&mut device, 3000);
        for left_out in 1..=2 {
            narrow(&mut device, left_out);
            lanes.0.borrow_mut().clear();
            let wide = |device: &Addressed<Lanes>| device.ftl.narrowing().map_or(0, |(left, _)| left);
            let mut before = wide(&device);
            for _ in 0..200 {
                write(&mut device, 20);
                assert!(wide(&device) <= before, "LEBs of the wider layout only become fewer");
                before = wide(&device);
            }
            assert_eq!(device.ftl.narrowing(), None, "{policy:?} without {left_out}");
            device.verify().expect("the books agree");
            let most = lanes.0.borrow().iter().max().copied();
            assert_eq!(most, Some(4 - left_out), "the last lanes stay empty");
            assert_eq!(device.ftl.map().mapped(), SECTORS);
        }
        assert!(!device.ftl.can_narrow(4), "there is no room for everything");
    }
}
