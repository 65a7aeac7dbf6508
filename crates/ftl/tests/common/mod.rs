//! The layer over a medium that does everything at once and remembers whose sector each slot holds.

use ftl::{
    Admission, Anchor, Command, Config, Ftl, Geometry, Header, Kind, Policy, ReadFor, Recovery, Request, Source,
};

/// The layer over such a medium.
pub struct Instant {
    pub ftl: Ftl,
    owners: Vec<u64>,
}

const NOBODY: u64 = u64::MAX;

impl Instant {
    /// An empty module of so many LEBs, each with `block` slots for host sectors and one for its header.
    pub fn new(lebs: u32, block: u32, sectors: u64, policy: Policy) -> Instant {
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
        let mut ftl =
            Recovery::new(config, Anchor::default()).and_then(|recovery| recovery.finish(1)).expect("an empty layer");
        ftl.start();
        let mut this = Instant { ftl, owners: vec![NOBODY; geometry.slots() as usize] };
        this.carry_out();
        this
    }

    /// Does what the layer wants done.
    pub fn carry_out(&mut self) {
        while let Some(command) = self.ftl.poll() {
            match command {
                Command::Stage { header, source, .. } => {
                    let host = !matches!(source, Source::Meta(_));
                    self.owners[header.slot as usize] = if host { header.lba } else { NOBODY };
                }
                Command::Read { id, slot, count, purpose: ReadFor::Groom, .. } => {
                    let headers: Vec<Option<Header>> = (slot..slot + count)
                        .map(|slot| {
                            let lba = self.owners[slot as usize];
                            let header = Header { slot, seq: 0, kind: Kind::Data, lba, index: 0, remaining: 0, lag: 0 };
                            (lba != NOBODY).then_some(header)
                        })
                        .collect();
                    self.ftl.groomed(id, &headers);
                }
                Command::Program { id, .. }
                | Command::Read { id, .. }
                | Command::Allocate { id, .. }
                | Command::Erase { id, .. }
                | Command::Sync { id }
                | Command::Anchor { id, .. } => self.ftl.complete(id, Ok(())),
                Command::Take { .. }
                | Command::Record { .. }
                | Command::Release { .. }
                | Command::Blank { .. }
                | Command::Finish { .. }
                | Command::Forget { .. }
                | Command::Zero { .. }
                | Command::Copy { .. } => {}
            }
        }
    }

    /// A sector is written.
    pub fn write(&mut self, lba: u64) {
        for _ in 0..1000 {
            let admission = self.ftl.submit(0, Request::Write { lba, count: 1, fua: false });
            self.carry_out();
            match admission {
                Admission::Done => return,
                Admission::Busy => {}
                other => panic!("{other:?}"),
            }
        }
        panic!("a write was put off a thousand times");
    }
}
