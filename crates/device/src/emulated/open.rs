//! From a file to an attached emulated device.

use std::path::Path;

use card::{Controller, LayoutError, Surroundings, buffer_pages, shape};
use ftl::Pacing;
use media::nand::{Nand, Nanos, Paced, Shape, inner_geometry, micros};
use media::ring::SharedRing;
use media::{Backing, Base, CachedFile, FileMedia, FileOptions, Geometry, Media, Stack};
use profile::{Module, Profile};

use super::Clock;
use super::card::Card;
use super::chips::check_given_up;
use super::format::flash_card;
use super::path_time::path_time;
use super::zone_times::ZoneTimes;
use crate::attach::{attach, layer_config};
use crate::core::Core;
use crate::drill::with_drills;
use crate::refusal::refused;
use crate::staging::Staging;
use crate::superblock::Superblock;
use crate::{AttachError, CarriedDrills};

/// Whose time on the host the client of an emulated device sees.
const DRIVER: &str = "linux";

/// Opens an emulated device on its file, through the page cache: its pace is the model's, not the disk's.
pub(crate) fn open(
    backing: Backing,
    superblock: Superblock,
    path: &Path,
    (read_only, staging): (bool, Option<Staging>),
    ring: &SharedRing,
    clock: Box<dyn Clock>,
) -> Result<(Core, Card), AttachError> {
    let options = FileOptions { read_only, page_cache: true };
    let file = FileMedia::new(vec![Some(backing)], inner_geometry(&superblock.geometry), ring.clone(), options)?;
    let inner = Box::new(CachedFile::new(file, read_only));
    open_media(inner, superblock, path, (read_only, staging), clock, path_time)
}

/// Opens an emulated device on a medium that keeps its bytes.
pub(crate) fn open_media(
    inner: Box<dyn Media>,
    superblock: Superblock,
    path: &Path,
    (read_only, staging): (bool, Option<Staging>),
    clock: Box<dyn Clock>,
    path_time: fn(Nanos) -> Nanos,
) -> Result<(Core, Card), AttachError> {
    let unknown = |what: String| AttachError::Media {
        path: path.into(),
        what: format!("it emulates '{}', which this program cannot: {what}", superblock.profile),
    };
    let Some(emulation) = superblock.emulation else { return Err(unknown("it is not emulated".into())) };
    let (profile, flash) = flash_card(&superblock.profile).map_err(unknown)?;
    let sheet = &flash.module;
    check_given_up(&superblock, sheet).map_err(unknown)?;
    let shape = shape_of(sheet, superblock.geometry, emulation.scale).map_err(|error| unknown(error.to_string()))?;
    let nand = Nand::new(&shape, &sheet.nand, &sheet.controller, &sheet.energy, emulation.seed);
    let mut config = layer_config(&superblock, true);
    let geometry = config.geometry;
    config.buffers = config.min_buffers().max(buffer_pages(sheet, &geometry));
    let media = Base::Paced(Box::new(Paced::new(nand, inner)));
    let media = with_drills(media, &superblock, &CarriedDrills::default());
    let core = attach(Stack::Plain(media), superblock, config, read_only, staging);
    let mut core = core.map_err(|refusal| refused(refusal, path))?;
    core.open_pages = Some(Vec::new());
    core.ftl.set_pacing(Pacing::Rounds(sheet.controller.groom_round_bytes));
    let mut now = 0;
    if let Some(paced) = core.media.paced() {
        paced.be_lazy(true);
        now = paced.now();
    }
    let lead = leads(&profile, sheet, geometry.sector_bytes, path_time);
    tracing::info!(
        read_ns = lead[0],
        write_ns = lead[1],
        "answers go out earlier to make up for the path to the client"
    );
    let around = Surroundings { power_unlimited: core.superblock.power_override, ..Surroundings::default() };
    let card = flash.card.as_ref().map(|card| (card, flash.modules));
    let controller = Controller::new(sheet, card, &around, &core.ftl, Some(lead));
    let zones = sheet.zones.as_ref().map(|zones| ZoneTimes::new(zones, &sheet.nand, &geometry));
    Ok((core, Card::new(controller, clock, now, zones)))
}

/// By how much earlier reads and writes are answered: what the path to the client takes, less what the driver of a real card takes.
fn leads(profile: &Profile, sheet: &Module, sector_bytes: u32, path_time: fn(Nanos) -> Nanos) -> [Nanos; 2] {
    let driver = profile
        .drivers
        .get(DRIVER)
        .map_or(0.0, |driver| driver.submit_us + driver.complete_us + driver.serial_us + driver.latency_us);
    let controller = &sheet.controller;
    let register_us = f64::from(sector_bytes) * 1e6 / sheet.nand.channel_read_bytes_per_s.max(1) as f64;
    // It is set up while its cells are read.
    let read = sheet.nand.read_us.max(controller.read_request_us) + register_us + controller.read_latency_us;
    let write = controller.write_request_us + controller.write_latency_us;
    [read, write].map(|device| path_time(micros(device)).saturating_sub(micros(driver)))
}

/// The shape of the flash: what stands on media counts, and where the sheet was changed since, the sheet only for the rest.
fn shape_of(sheet: &Module, geometry: Geometry, scale: u32) -> Result<Shape, LayoutError> {
    Ok(Shape { geometry, ..shape(sheet, geometry.sector_bytes, scale)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_on_media_counts_and_the_sheet_gives_the_rest() {
        let (_, flash) = flash_card("iodrive-320-mlc").expect("a flash card");
        let laid_out = card::layout(&flash.module, flash.module.advertised_bytes, 4096, 64).expect("it fits");
        let older = Geometry { blocks: laid_out.geometry.blocks - 1, ..laid_out.geometry };
        let shape = shape_of(&flash.module, older, 64).expect("the sheet knows these sectors");
        assert_eq!(shape.geometry, older);
        assert!(shape.spares > 0 && shape.erase_divisor > 1, "{shape:?}");
        assert_eq!((shape.spares, shape.erase_divisor), (laid_out.shape.spares, laid_out.shape.erase_divisor));
    }

    #[test]
    fn flash_that_its_sheet_does_not_know_is_refused() {
        let (_, flash) = flash_card("iodrive-320-mlc").expect("a flash card");
        let laid_out = card::layout(&flash.module, flash.module.advertised_bytes, 4096, 64).expect("it fits");
        let strange = Geometry { sector_bytes: 8192, ..laid_out.geometry };
        let message = shape_of(&flash.module, strange, 64).expect_err("no such sectors").to_string();
        assert!(
            message.starts_with("sectors of 8192 bytes: a page of this device takes sectors of 512, "),
            "{message}"
        );
    }
}
