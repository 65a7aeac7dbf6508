//! Zones of a device: what a host may write where, kept beside the layer, which knows nothing of it but streams.
//!
//! How zones stand is not on media but for what the map says, see [`ftl::Zones`]: the attach looks. Where a power cut left holes in what
//! was not flushed, everything behind the first one is forgotten, so that a zone is what was written in order and nothing else.

use ftl::{Geometry, Policy, ZoneAction, ZoneError, ZoneShape, Zones};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::core::{Core, To};
use crate::refusal::Refusal;
use crate::superblock::Superblock;
use crate::{Device, FormatError, Io, IoError, Submitted};

/// Zones that may be active at once: as many as have a stream beside that of trims and that of the groomer, without parity and with. The drives
/// that can be bought have fourteen.
const ACTIVE: [u8; 2] = [ftl::ZONE_STREAMS - 2, ftl::DATA_STREAMS - 2];
/// The largest zone, bytes: what Linux's file systems take.
const LARGEST: u64 = 8 << 30;

/// The zones of a device, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneInfo {
    /// How many there are.
    #[serde(rename = "zones")]
    pub count: u32,
    /// From the first byte of a zone to that of the next.
    #[serde(rename = "zone_bytes")]
    pub size_bytes: u64,
    /// How many of them can be written.
    #[serde(rename = "zone_capacity_bytes")]
    pub capacity_bytes: u64,
    /// How many may be active at once.
    #[serde(rename = "most_active_zones")]
    pub most_active: u8,
}

impl ZoneInfo {
    pub(crate) fn of(shape: &ZoneShape, sector_bytes: u32) -> ZoneInfo {
        let bytes = |sectors: u64| sectors * u64::from(sector_bytes);
        ZoneInfo {
            count: shape.count,
            size_bytes: bytes(shape.size),
            capacity_bytes: bytes(shape.capacity),
            most_active: shape.active,
        }
    }
}

/// Sectors that a LEB has for data.
fn leb_sectors(geometry: &Geometry) -> u64 {
    u64::from(geometry.slots_per_leb() - 1)
}

/// So many zones as there is room for beside a LEB for each that is active, and as hold no more than `sectors`.
fn as_many(size: u64, capacity: u64, sectors: u64, active: u8, geometry: &Geometry) -> ZoneShape {
    let room = ftl::room(geometry, u64::MAX).saturating_sub(u64::from(active) * leb_sectors(geometry));
    let count = u32::try_from((sectors / capacity).min(room / (capacity + 1))).unwrap_or(u32::MAX);
    ZoneShape { size, capacity, count, active }
}

/// Zones of `bytes` that hold `advertised` bytes together. Each can be written as far as it fills whole LEBs: the next one begins another.
pub(crate) fn shape(bytes: u64, advertised: u64, geometry: &Geometry) -> Result<ZoneShape, FormatError> {
    let sector = u64::from(geometry.sector_bytes);
    let (size, leb) = (bytes / sector, leb_sectors(geometry));
    let active = ACTIVE[usize::from(geometry.parity > 0)];
    let invalid = |expected: String| {
        Err(FormatError::Invalid { name: "size of zones", value: format!("{bytes} bytes"), expected })
    };
    let least = (leb + 1).next_power_of_two() * sector;
    if !bytes.is_power_of_two() || !(least..=LARGEST).contains(&bytes) {
        return invalid(format!("a power of two from {least} bytes, which fills an erase block, to {LARGEST}"));
    }
    let shape = as_many(size, (size - 1) / leb * leb, advertised / sector, active, geometry);
    if shape.count < 2 {
        return invalid(format!("a size of which the device's {advertised} bytes hold two at least"));
    }
    Ok(shape)
}

/// Zones of an emulated drive: each is an erase block of all its dies.
pub(crate) fn of_drive(sectors: u64, active: u8, geometry: &Geometry) -> ZoneShape {
    let capacity = leb_sectors(geometry);
    as_many((capacity + 1).next_power_of_two(), capacity, sectors, active, geometry)
}

/// An empty format with these zones.
pub(crate) fn formatted(geometry: Geometry, zones: ZoneShape) -> Superblock {
    // Wider than the flash, so that what counts is how much of it is mapped.
    let sectors = zones.sectors().max(geometry.slots() + 1);
    let empty = Superblock::empty(Uuid::new_v4(), geometry, sectors);
    Superblock { zones: Some(zones), policy: Policy::Zones.code(), ..empty }
}

/// The zones of an attached device.
pub(crate) struct Zoned {
    pub zones: Zones,
    /// Zones that are being reset or finished, each with the tag of the request: they take nothing meanwhile.
    changing: Vec<(u64, u32)>,
    /// Resets since the attach.
    pub resets: u64,
}

impl Zoned {
    /// Looks how the zones of a device stand; nothing where it has none. Behind a hole nothing counts, and is forgotten but on a device that
    /// is read only.
    pub fn find(core: &mut Core, read_only: bool) -> Result<Option<Box<Zoned>>, Refusal> {
        let Some(mut shape) = core.superblock.zones else { return Ok(None) };
        // One stream is that of trims.
        shape.active = shape.active.min(core.ftl.placements().saturating_sub(1)).max(1);
        let mut zones = Zones::new(shape);
        for zone in 0..shape.count {
            let (start, capacity) = (shape.start(zone), shape.capacity);
            let (run, mapped) = core.ftl.map().run(start, capacity);
            let written = if mapped { run } else { 0 };
            let (marked, finished) = core.ftl.map().run(shape.mark(zone), 1);
            debug_assert_eq!(marked, 1);
            let rest = start + written..start + capacity;
            if !rest.is_empty() && !finished && !read_only {
                let (hole, mapped) = core.ftl.map().run(rest.start, rest.end - rest.start);
                if mapped || hole < rest.end - rest.start {
                    tracing::warn!(zone, written, "what was written behind a hole before a power cut is forgotten");
                    forget(core, rest.start, rest.end - rest.start)?;
                }
            }
            zones.found(zone, written, finished);
        }
        Ok(Some(Box::new(Zoned { zones, changing: Vec::new(), resets: 0 })))
    }

    fn is_changing(&self, lba: u64) -> bool {
        let zone = self.zones.shape().zone_of(lba);
        self.changing.iter().any(|(_, changing)| Some(*changing) == zone)
    }

    /// Whether a request is to be carried out, and the stream that what it writes goes to; nothing while its zone changes.
    fn admit(&mut self, io: &Io, sector_bytes: u32) -> Result<Option<u8>, ZoneError> {
        let (lba, count) = match (io, written(io, sector_bytes)) {
            (_, Some(place)) => place,
            (Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush, None) => return Ok(Some(0)),
            _ => return Err(ZoneError::Piecemeal),
        };
        if self.is_changing(lba) {
            return Ok(None);
        }
        self.zones.begin_write(lba, count).map(Some)
    }

    /// A request of this tag is answered.
    pub fn answered(&mut self, tag: u64) {
        self.changing.retain(|(changing, _)| *changing != tag);
    }
}

/// Forgets sectors, durably.
fn forget(core: &mut Core, lba: u64, count: u64) -> Result<(), Refusal> {
    while let Submitted::Busy(_) = core.submit(To::default(), 0, Io::Trim { lba, count, fua: false }) {
        core.run_until(|core| core.in_flight == 0)?;
    }
    let seq = core.ftl.next_seq();
    core.ftl.make_durable();
    core.run_until(|core| core.ftl.durable() >= seq)
}

/// What a write or zeros write: first sector, and how many.
fn written(io: &Io, sector_bytes: u32) -> Option<(u64, u64)> {
    match io {
        Io::Write { lba, data, .. } => Some((*lba, (data.len() / sector_bytes as usize) as u64)),
        Io::WriteZeroes { lba, count, allocate: true, .. } => Some((*lba, *count)),
        _ => None,
    }
}

impl Device {
    /// Its zones, if it has some.
    pub fn zones(&self) -> Option<&Zones> {
        self.zoned.as_ref().map(|zoned| &zoned.zones)
    }

    /// Raw capacity beyond what zones can hold, per cent of that, where it has some.
    pub(crate) fn over_provisioning_of_zones(&self) -> Option<f64> {
        let shape = self.zones()?.shape();
        let held = shape.capacity as f64 * f64::from(shape.count);
        Some(100.0 * (self.core.ftl.config().geometry.slots() as f64 / held - 1.0))
    }

    /// Zones that were reset since the attach.
    pub fn zone_resets(&self) -> u64 {
        self.zoned.as_ref().map_or(0, |zoned| zoned.resets)
    }

    /// Takes a request that was checked, as far as its zone does.
    pub(crate) fn submit_zoned<'a>(&mut self, tag: u64, io: Io<'a>) -> Submitted<'a> {
        let sector_bytes = self.info().sector_bytes;
        let admitted = self.zoned.as_mut().map_or(Ok(Some(0)), |zoned| zoned.admit(&io, sector_bytes));
        let stream = match admitted {
            Ok(Some(stream)) => stream,
            Ok(None) => return Submitted::Busy(io),
            Err(error) => return Submitted::Done(Err(IoError::Zone(error))),
        };
        let writes = written(&io, sector_bytes);
        let submitted = self.hand_over(None, (stream, 0), tag, io);
        if let (Some((lba, count)), Submitted::Pending | Submitted::Done(Ok(_))) = (writes, &submitted)
            && let Some(zoned) = &mut self.zoned
            && let Some(stream) = zoned.zones.written(lba, count)
        {
            self.renew_placement(stream);
        }
        submitted
    }

    /// Does something with a zone, under a tag of the caller's choice, as [`Device::submit`] does with a request. A reset and a finish are
    /// durable when they are answered; which zones are open is forgotten with the next attach.
    pub fn submit_zone(&mut self, tag: u64, zone: u32, action: ZoneAction) -> Submitted<'static> {
        let refused = |error: ZoneError| Submitted::Done(Err(IoError::Zone(error)));
        if self.is_read_only() {
            return Submitted::Done(Err(IoError::ReadOnly));
        }
        let Some(zoned) = &mut self.zoned else { return refused(ZoneError::Piecemeal) };
        let shape = *zoned.zones.shape();
        if zone >= shape.count {
            return refused(ZoneError::Boundary);
        }
        let start = shape.start(zone);
        if zoned.is_changing(start) {
            return Submitted::Busy(Io::Flush);
        }
        if let Err(error) = zoned.zones.admits(zone, action) {
            return refused(error);
        }
        let before = zoned.zones.view(zone);
        let partly = before.pointer < start + shape.capacity;
        let io = match action {
            ZoneAction::Finish if partly => {
                Io::WriteZeroes { lba: shape.mark(zone), count: 1, fua: true, allocate: true }
            }
            ZoneAction::Reset if before.state != ftl::ZoneState::Empty => {
                Io::Trim { lba: start, count: shape.size, fua: true }
            }
            _ => {
                if let Some(stream) = zoned.zones.act(zone, action) {
                    self.renew_placement(stream);
                }
                return Submitted::Done(Ok(None));
            }
        };
        let written = before.written.min(shape.capacity);
        let times = self.card.as_ref().and_then(|card| card.zones);
        let later = times.map_or(0, |times| times.of(action, written, shape.capacity));
        let submitted = self.hand_over(None, (0, later), tag, io);
        let Some(zoned) = &mut self.zoned else { return submitted };
        match &submitted {
            Submitted::Busy(_) | Submitted::Done(Err(_)) => return submitted,
            Submitted::Pending => zoned.changing.push((tag, zone)),
            Submitted::Done(Ok(_)) => {}
        }
        zoned.resets += u64::from(action == ZoneAction::Reset);
        if let Some(stream) = zoned.zones.act(zone, action) {
            self.renew_placement(stream);
        }
        submitted
    }
}
