//! The layer over a medium that does everything at once and remembers whose sector each slot holds.

use ftl::{Addressed, Admission, Anchor, AtOnce, Config, Geometry, Policy, Recovery, Request};

/// An empty module of so many LEBs, each with `block` slots for host sectors and one for its header.
pub fn instant(lebs: u32, block: u32, sectors: u64, policy: Policy) -> Addressed<AtOnce> {
    let geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: lebs,
        pages_per_block: block + 1,
        slots_per_page: 1,
        sector_bytes: 4096,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4128,
    };
    let mut config = Config {
        geometry,
        sectors,
        max_request: 1,
        buffers: 0,
        requests: 1,
        checkpoint_interval: 1 << 30,
        erase_before_program: true,
        power_protected: true,
        policy,
    };
    config.buffers = config.min_buffers();
    let recovered = Recovery::new(config, Anchor::default()).and_then(|recovery| recovery.finish(1));
    Addressed::new(recovered.expect("an empty layer"), AtOnce)
}

/// A sector is written.
pub fn write(device: &mut Addressed<AtOnce>, lba: u64) {
    assert_eq!(device.submit(Request::Write { lba, count: 1, fua: false }), Admission::Done);
}
