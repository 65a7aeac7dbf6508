//! A load made ready for one device.

use card::VirtualDevice;

use super::choice::Choice;
use super::feed::{Share, TracePlan};
use super::place::Places;
use crate::workload::{Access, Choose, Load, Placement, Streams, Weighted};

/// What a load needs to know of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Capacity, bytes.
    pub bytes: u64,
    /// Smallest unit of address and length, bytes.
    pub sector_bytes: u32,
    /// Placements that it tells apart; 1: none.
    pub placements: u8,
}

impl Shape {
    /// That of a device in virtual time.
    pub fn of(device: &dyn VirtualDevice) -> Shape {
        Shape { bytes: device.bytes(), sector_bytes: device.sector_bytes(), placements: device.placements() }
    }
}

/// A load made ready for one device: everything that its threads share and that does not change.
#[derive(Clone, Debug)]
pub struct Plan {
    /// First byte of the region.
    pub start: u64,
    /// Bytes of the region.
    pub bytes: u64,
    /// Reads are what falls below this, of 2^32.
    pub reads_below: u64,
    /// Trims are what falls below this and is no read.
    pub trims_below: u64,
    /// Sizes of reads.
    pub reads: Choice<Sized>,
    /// Sizes of writes and trims.
    pub writes: Choice<Sized>,
    /// Objects that are asked for as a whole, whose pieces the sizes above are.
    pub objects: Option<Objects>,
    /// Placements that writes name; none where nothing is said.
    pub placements: Vec<u8>,
    /// Which of them comes next.
    pub choose: Choose,
    /// Share of requests that go to a random place, of 2^32.
    pub random_below: u64,
    /// How threads share a sequence.
    pub streams: Streams,
    /// The trace that requests come from, in place of all that stands above.
    pub trace: Option<TracePlan>,
}

/// Objects of one size, and where one may begin.
#[derive(Clone, Debug)]
pub struct Objects {
    /// Bytes of each.
    pub bytes: u64,
    /// Their places.
    pub places: Places,
}

/// A request's size, and where one of that size may go.
#[derive(Clone, Debug)]
pub struct Sized {
    /// Bytes.
    pub bytes: u32,
    /// Its places.
    pub places: Places,
}

impl Plan {
    /// A load on a device.
    ///
    /// # Errors
    /// The load does not fit the device: says how, and what would.
    pub fn new(load: &Load, shape: Shape) -> Result<Plan, String> {
        Plan::dealt(load, shape, Share::ALL)
    }

    /// A load on one of several devices, which deal a trace out among them. What does not come from a trace is the same on all.
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn dealt(load: &Load, shape: Shape, share: Share) -> Result<Plan, String> {
        let sector = u64::from(shape.sector_bytes);
        let start =
            multiple("region.offset", load.region.offset.of(shape.bytes), sector, load.region.offset.is_share())?;
        let room = shape.bytes.checked_sub(start).filter(|room| *room > 0).ok_or_else(|| {
            format!("region.offset {} lies beyond the device of {}", load.region.offset, size::show(shape.bytes))
        })?;
        let bytes = match load.region.size {
            None => room,
            Some(extent) => multiple("region.size", extent.of(shape.bytes), sector, extent.is_share())?,
        };
        if bytes > room {
            return Err(format!(
                "the region of {} from {} does not fit a device of {}",
                size::show(bytes),
                size::show(start),
                size::show(shape.bytes)
            ));
        }
        let (reads, writes) = load.sizes();
        let (reads, writes) = (sized(&reads, load, bytes, sector)?, sized(&writes, load, bytes, sector)?);
        if let Some(align) = load.align
            && !align.0.is_multiple_of(sector)
        {
            return Err(format!(
                "align {}: the device has sectors of {sector} B, so offsets are multiples of that; choose another alignment, or a format with smaller sectors (--sector 512)",
                size::exact(align.0)
            ));
        }
        let placements = load.placement.as_ref().map(|placement| placement.on(shape.placements)).transpose()?;
        let of = |percent: f64| (percent / 100.0 * 4_294_967_296.0).round() as u64;
        Ok(Plan {
            start,
            bytes,
            reads_below: of(load.read_percent),
            trims_below: of(load.read_percent + load.trim_percent),
            reads,
            writes,
            random_below: match load.access {
                Access::Sequential => 0,
                Access::Mixed(percent) => of(percent),
                _ => 1 << 32,
            },
            streams: load.streams,
            objects: load.object.map(|object| objects(object.0, load, bytes, sector)).transpose()?,
            placements: placements.unwrap_or_default(),
            choose: load.placement.as_ref().map(Placement::choose).unwrap_or_default(),
            trace: load.trace.as_ref().map(|trace| TracePlan::new(trace, shape, share)).transpose()?,
        })
    }
}

fn objects(object: u64, load: &Load, region: u64, sector: u64) -> Result<Objects, String> {
    if !object.is_multiple_of(sector) {
        return Err(format!(
            "object {}: the device has sectors of {sector} B, so choose a multiple of that",
            size::exact(object)
        ));
    }
    let places = Places::new(object, object, region, &load.access)
        .ok_or_else(|| format!("objects of {} do not fit a region of {}", size::exact(object), size::show(region)))?;
    Ok(Objects { bytes: object, places })
}

fn sized(list: &[Weighted], load: &Load, region: u64, sector: u64) -> Result<Choice<Sized>, String> {
    let one = |entry: &Weighted| {
        let bytes = entry.size.0;
        if !bytes.is_multiple_of(sector) {
            return Err(format!(
                "requests of {}: the device has sectors of {sector} B; choose other sizes, or a format with smaller sectors (--sector 512)",
                size::exact(bytes)
            ));
        }
        // Pieces of an object go where it does, and the last is what is left of it.
        let bytes = load.object.map_or(bytes, |object| bytes.min(object.0));
        let align = load.align.map_or(bytes, |align| align.0);
        let places = Places::new(bytes, align, region, &load.access).ok_or_else(|| {
            format!("requests of {} do not fit a region of {}", size::exact(bytes), size::show(region))
        })?;
        let bytes = u32::try_from(bytes).map_err(|_| format!("requests of {}: at most 1 GiB", size::exact(bytes)))?;
        Ok((entry.weight, Sized { bytes, places }))
    };
    Ok(Choice::new(list.iter().map(one).collect::<Result<_, _>>()?))
}

/// A share of the device is rounded down to sectors; a number of bytes has to be right.
fn multiple(what: &str, bytes: u64, sector: u64, share: bool) -> Result<u64, String> {
    // Four kilobytes, so that requests on a share of the device are aligned as those on all of it.
    let unit = if share { sector.max(4096) } else { sector };
    let rounded = bytes - bytes % unit;
    if share || rounded == bytes {
        return Ok(rounded);
    }
    Err(format!("{what} {} is no multiple of the device's sectors of {sector} B", size::exact(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::from_toml;

    fn plan(lines: &str) -> Result<Plan, String> {
        let text = format!(
            "name = \"w\"\n[[phase]]\nname = \"p\"\nstop = {{ duration = 1 }}\n[[phase.load]]\nread_percent = 50\n{lines}"
        );
        let workload = from_toml(&text).expect("a workload");
        Plan::new(&workload.phases[0].loads[0], Shape { bytes: 1 << 30, sector_bytes: 4096, placements: 6 })
    }

    #[test]
    fn regions_are_cut_from_the_device() {
        let plan = plan("size = \"4KiB\"\nregion = { offset = \"33.333%\", size = \"25%\" }").expect("fits");
        assert_eq!(plan.start % 4096, 0);
        assert!(plan.start > 357_000_000 && plan.start < 358_000_000);
        assert_eq!(plan.bytes, 1 << 28);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (lines, expected) in [
            (
                "size = 512",
                "requests of 512: the device has sectors of 4096 B; choose other sizes, or a format with smaller sectors",
            ),
            ("size = \"4KiB\"\nregion = { size = \"2GiB\" }", "does not fit a device of 1.07 GB"),
            ("size = \"4KiB\"\nregion = { offset = \"1GiB\" }", "region.offset 1GiB lies beyond the device"),
            ("size = \"4KiB\"\nregion = { offset = 100 }", "region.offset 100 is no multiple"),
            ("size = \"4KiB\"\nalign = 512", "align 512: the device has sectors of 4096 B"),
            ("size = \"4KiB\"\nplacement = 6", "placement 6: the device has placements 0 to 5"),
            ("size = \"64KiB\"\nregion = { size = \"32KiB\" }", "requests of 64KiB do not fit a region of 32 KiB"),
        ] {
            let message = plan(lines).expect_err(lines);
            assert!(message.contains(expected), "{lines}: {message}");
        }
    }
}
