//! The layer over a medium that does everything at once: nothing is timed, only counted.

use ftl::{Addressed, Admission, Anchor, AtOnce, Config, Ftl, Geometry, LebState, Policy, Recovery, Request, Stream};

/// Slots of a LEB: the peers' segments. One of them holds the LEB's header.
pub const SEGMENT: u32 = 256;
/// The largest request, sectors.
pub const LARGEST: u32 = 64;
/// LEBs that the layer keeps free beyond what the peers' simulators do: so many, and one in a hundred.
const KEPT_FREE: f64 = 2.0;
/// Segments that the peers' simulators keep free for each stream more.
const KEPT_PER_STREAM: f64 = 1.2;

/// The layer refused a request, or would not take it however often it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{sectors} sectors and what is beyond them are too few for the reserves of the layer ({request}: {answer}); expected more sectors, or more space beyond them"
)]
pub struct Stuck {
    sectors: u64,
    request: String,
    answer: String,
}

/// The shape of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Host sectors.
    pub sectors: u64,
    /// Space beyond them, as a share of theirs.
    pub over_provisioning: f64,
    /// Less space for policies of several streams, as the peers' simulators have it: a free segment for each stream.
    pub as_published: bool,
}

impl Shape {
    /// LEBs in the size of the peers' segments. Over-provisioning counts theirs; what the layer keeps free while it grooms comes on top.
    fn geometry(&self, policy: Policy) -> Geometry {
        let segments = self.sectors as f64 * (1.0 + self.over_provisioning) / f64::from(SEGMENT - 1);
        let streams = if self.as_published { f64::from(policy.streams()) - 1.0 } else { 0.0 };
        Geometry {
            dies: 1,
            parity: 0,
            blocks: ((segments + KEPT_FREE - streams * KEPT_PER_STREAM) / 0.99).round() as u32,
            pages_per_block: SEGMENT / 32,
            slots_per_page: 32,
            sector_bytes: 4096,
            trailer_bytes: ftl::TRAILER_BYTES,
            unit_bytes: 4128,
        }
    }
}

/// The layer on an instant medium.
pub struct Instant(Addressed<AtOnce>);

impl Instant {
    /// An empty module; where it must be erased, wear is levelled or not.
    ///
    /// # Errors
    /// The layer does not take the shape.
    pub fn new(shape: &Shape, policy: Policy, wear: Option<bool>) -> Result<Instant, Stuck> {
        let geometry = shape.geometry(policy);
        let mut config = Config {
            geometry,
            sectors: shape.sectors,
            max_request: LARGEST,
            buffers: 0,
            requests: 1,
            checkpoint_interval: 1 << 40,
            erase_before_program: wear.is_some(),
            power_protected: true,
            policy,
        };
        config.buffers = config.min_buffers() + 8;
        let recovered = Recovery::new(config, Anchor::default()).and_then(|recovery| recovery.finish(1));
        let mut ftl = recovered.map_err(|damage| Stuck {
            sectors: shape.sectors,
            request: "an empty module".into(),
            answer: damage.to_string(),
        })?;
        ftl.level_wear(wear == Some(true));
        Ok(Instant(Addressed::new(ftl, AtOnce)))
    }

    /// The layer.
    pub fn ftl(&self) -> &Ftl {
        &self.0.ftl
    }

    /// Carries a request out.
    ///
    /// # Errors
    /// The layer does not take it.
    pub fn submit(&mut self, request: Request) -> Result<(), Stuck> {
        let answer = self.0.submit(request);
        if matches!(answer, Admission::Done | Admission::Pending) {
            return Ok(());
        }
        let sectors = self.ftl().config().sectors;
        Err(Stuck { sectors, request: format!("{request:?}"), answer: format!("{answer:?}") })
    }

    /// Slots in LEBs that hold host sectors, open ones counted half.
    pub fn slots_in_use(&self) -> f64 {
        let lebs = self.ftl().lebs();
        let full = lebs.iter().filter(|(_, leb)| matches!(leb.state, LebState::Closed | LebState::Grooming)).count();
        let open = lebs.iter().filter(|(_, leb)| leb.state == LebState::Open).count();
        (full as f64 + open as f64 / 2.0) * f64::from(SEGMENT - 1)
    }

    /// The share of the LEBs in use that each stream wrote; of those that go by what a host says, the last ones together.
    pub fn streams(&self) -> [f64; ftl::DATA_STREAMS as usize] {
        let mut counts = [0.0; ftl::DATA_STREAMS as usize];
        for (_, leb) in self.ftl().lebs().iter() {
            if let (Stream::Data(stream), LebState::Open | LebState::Closed | LebState::Grooming) =
                (leb.stream, leb.state)
            {
                counts[usize::from(stream).min(counts.len() - 1)] += 1.0;
            }
        }
        let sum: f64 = counts.iter().sum();
        counts.map(|count| count / sum.max(1.0))
    }
}
