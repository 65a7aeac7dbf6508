//! What a device says of itself over NVMe.

use device::{Condition, Durability, Info, Settings};
use nvme::identify::WARM_KELVIN;
use nvme::namespace::warning;
use nvme::zoned::Zones;
use nvme::{Health, Namespace, Subject, Wear};

use crate::served::Served;

/// Below it the spare of a card is critical, per cent: where it begins to hold writes back.
const SPARE_THRESHOLD: u8 = 10;

/// An attached device, with what does not change of it.
pub struct Attached<'a> {
    device: &'a Served,
    fixed: &'a Namespace,
}

impl<'a> Attached<'a> {
    /// Of a device as [`describe`] describes it.
    pub fn new(device: &'a Served, fixed: &'a Namespace) -> Attached<'a> {
        Attached { device, fixed }
    }
}

/// A device as a namespace.
pub fn describe(info: &Info, settings: &Settings, read_only: bool, used_bytes: u64) -> Namespace {
    // A card's capacitors keep what it took; a device that writes through has nothing to lose.
    let volatile_cache = !matches!(settings.durability, None | Some(Durability::WriteThrough));
    Namespace {
        uuid: *info.uuid.as_bytes(),
        serial: info.uuid.simple().to_string()[..20].to_owned(),
        model: format!("OpenVSL {}", info.profile.as_deref().unwrap_or("flash")),
        firmware: env!("CARGO_PKG_VERSION").into(),
        block_shift: settings.nvme_block_bytes.trailing_zeros() as u8,
        sector_shift: info.sector_bytes.trailing_zeros() as u8,
        bytes: info.bytes(),
        used_bytes,
        max_request_bytes: info.max_request_bytes,
        read_only,
        snapshot: None,
        volatile_cache,
        placements: 1,
        reclaim_unit_bytes: 0,
        zones: info.zones.map(|zones| Zones {
            size_bytes: zones.size_bytes,
            capacity_bytes: zones.capacity_bytes,
            most_active: zones.most_active.into(),
        }),
    }
}

impl Subject for Attached<'_> {
    fn namespace(&self) -> Namespace {
        if self.fixed.snapshot.is_some() {
            return self.fixed.clone();
        }
        let figures = self.device.figures();
        let used_bytes = figures.mapped_sectors << self.fixed.sector_shift;
        Namespace { used_bytes, ..self.fixed.clone() }
    }

    fn health(&self) -> Health {
        let (figures, condition, info) = (self.device.figures(), self.device.condition(), self.device.info());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let worn = self.device.wear().map_or(0.0, |(erases, rated)| {
            let mean = erases.iter().copied().map(f64::from).sum::<f64>() / erases.len().max(1) as f64;
            100.0 * mean / f64::from(rated.max(1))
        });
        Health {
            warnings: warnings(&condition),
            kelvin: condition.celsius.map_or(0, kelvin),
            spare_percent: condition.reserve_percent.map_or(100, |percent| percent.clamp(0.0, 100.0) as u8),
            spare_threshold: SPARE_THRESHOLD,
            used_percent: worn.min(255.0) as u8,
            read_bytes: figures.bytes(figures.layer.host_read_sectors),
            written_bytes: figures.bytes(figures.layer.host_written_sectors),
            media_written_bytes: figures.layer.programmed_bytes,
            reads: figures.requests.reads,
            writes: figures.requests.writes,
            power_cycles: u64::from(info.attaches),
            power_on_hours: now.as_secs().saturating_sub(info.formatted) / 3600,
            unsafe_shutdowns: info.unsafe_shutdowns.into(),
            media_errors: figures.layer.read_errors,
        }
    }

    fn wear(&self) -> Wear {
        let figures = self.device.figures();
        Wear {
            write_amplification: figures.layer.write_amplification().unwrap_or(0.0),
            groomed_bytes: figures.bytes(figures.layer.groomed_sectors),
            padding_bytes: figures.bytes(figures.layer.padding_slots),
            metadata_bytes: figures.bytes(figures.layer.metadata_slots),
            erased_blocks: figures.layer.erased_lebs,
            free_blocks: u64::from(figures.free_lebs),
            blocks: u64::from(figures.lebs),
            healed_sectors: figures.healed_sectors,
        }
    }
}

fn kelvin(celsius: f64) -> u16 {
    (celsius + 273.15).clamp(1.0, f64::from(u16::MAX)) as u16
}

/// The critical warnings that a device in this condition gives.
pub fn warnings(condition: &Condition) -> u8 {
    let found = [
        (warning::SPARE, condition.reserve_percent.is_some_and(|percent| percent < f64::from(SPARE_THRESHOLD))),
        (warning::TEMPERATURE, condition.celsius.is_some_and(|celsius| kelvin(celsius) >= WARM_KELVIN[0])),
        (warning::DEGRADED, condition.degraded),
        (warning::READ_ONLY, condition.read_only),
    ];
    found.into_iter().filter(|(_, holds)| *holds).map(|(bit, _)| bit).sum()
}
