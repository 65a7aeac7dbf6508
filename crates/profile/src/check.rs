//! What must hold in every data sheet beyond its shape.

use crate::{Array, Bridge, Card, Device, Disk, Level, Module, Profile, Published};

/// Refuses a sheet that contradicts itself or physics.
pub fn check(profile: &Profile) -> Result<(), String> {
    let problem = match &profile.device {
        Device::Flash(flash) => modules(flash.modules)
            .and_then(|()| module(&flash.module))
            .and_then(|()| flash.card.as_ref().map_or(Ok(()), card)),
        Device::Bridged(bridged) => {
            modules(bridged.modules).and_then(|()| module(&bridged.module)).and_then(|()| bridge(&bridged.bridge))
        }
        Device::Disk(it) => disk(it),
        Device::Array(it) => array(it),
    };
    let problem =
        problem.and_then(|()| drivers(profile)).and_then(|()| profile.published.as_ref().map_or(Ok(()), published));
    problem.map_err(|problem| format!("'{}': {problem}", profile.name))
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// Every figure of a table must be finite and, by its name, positive or at least not negative.
fn positive(figures: &[(&str, f64)]) -> Result<(), String> {
    for (name, value) in figures {
        ensure(value.is_finite() && *value > 0.0, &format!("{name} is {value}, but must be above zero"))?;
    }
    Ok(())
}

fn not_negative(figures: &[(&str, f64)]) -> Result<(), String> {
    for (name, value) in figures {
        ensure(value.is_finite() && *value >= 0.0, &format!("{name} is {value}, but must not be negative"))?;
    }
    Ok(())
}

fn published(figures: &Published) -> Result<(), String> {
    positive(&[
        ("published.read_bandwidth_bytes_per_s", figures.read_bandwidth_bytes_per_s as f64),
        ("published.write_bandwidth_bytes_per_s", figures.write_bandwidth_bytes_per_s as f64),
        ("published.read_512_per_s", figures.read_512_per_s as f64),
        ("published.write_512_per_s", figures.write_512_per_s as f64),
        ("published.latency_seconds", figures.latency_seconds),
    ])
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn modules(count: u32) -> Result<(), String> {
    ensure((1..=64).contains(&count), &format!("modules is {count}, but must be 1 to 64"))
}

fn module(module: &Module) -> Result<(), String> {
    let (chips, nand, controller, energy) = (&module.chips, &module.nand, &module.controller, &module.energy);
    ensure(
        u64::from(chips.count).checked_mul(chips.bytes) == Some(module.raw_bytes),
        "chips.count x chips.bytes must be raw_bytes",
    )?;
    ensure(chips.parity < chips.count, "chips.parity must be below chips.count")?;
    ensure(
        chips.parity == 0 || greatest_common_divisor(chips.count, nand.dies_per_chip) == 1,
        "with parity, chips.count and nand.dies_per_chip must have no common divisor: a parity group takes one die of each chip",
    )?;
    ensure(module.advertised_bytes < module.raw_bytes, "advertised_bytes must be below raw_bytes")?;
    if let Some(bytes) = module.high_performance_bytes {
        ensure(bytes < module.advertised_bytes, "high_performance_bytes must be below advertised_bytes")?;
    }
    let limits = &module.format;
    ensure(!limits.sector_bytes.is_empty(), "format.sector_bytes must name at least one size")?;
    ensure(
        limits.sector_bytes.iter().all(|bytes| bytes.is_power_of_two() && (512..=4096).contains(bytes)),
        "format.sector_bytes must be powers of two from 512 to 4096",
    )?;
    if let Some(zones) = &module.zones {
        ensure((1..=14).contains(&zones.active), "zones.active must be 1 to 14")?;
        ensure(chips.parity == 0, "zones are on chips without parity only")?;
        not_negative(&[("zones.reset_us", zones.reset_us), ("zones.reset_us_per_gib", zones.reset_us_per_gib)])?;
    }
    if let Some(map) = &module.map_cache {
        positive(&[("map_cache.bytes", map.bytes as f64), ("map_cache.entry_bytes", map.entry_bytes.into())])?;
        ensure(map.page_bytes >= map.entry_bytes, "map_cache.page_bytes must be entry_bytes or more")?;
        ensure(controller.map_in_drive, "map_cache is for maps in the drive: controller.map_in_drive")?;
        ensure(chips.parity == 0, "a part of a map is in memory on chips without parity only")?;
    }
    positive(&[
        ("nand.dies_per_chip", nand.dies_per_chip.into()),
        ("nand.planes", nand.planes.into()),
        ("nand.page_bytes", nand.page_bytes.into()),
        ("nand.pages_per_block", nand.pages_per_block.into()),
        ("nand.read_us", nand.read_us),
        ("nand.erase_us", nand.erase_us),
        ("nand.endurance_cycles", nand.endurance_cycles.into()),
        ("nand.channels", nand.channels.into()),
        ("nand.channel_read_bytes_per_s", nand.channel_read_bytes_per_s as f64),
        ("nand.channel_write_bytes_per_s", nand.channel_write_bytes_per_s as f64),
        ("controller.read_bytes_per_s", controller.read_bytes_per_s as f64),
        ("controller.write_bytes_per_s", controller.write_bytes_per_s as f64),
        ("controller.link_bytes_per_s", controller.link_bytes_per_s as f64),
        ("controller.buffer_bytes", controller.buffer_bytes as f64),
    ])?;
    not_negative(&[
        ("nand.factory_bad_percent", nand.factory_bad_percent),
        ("nand.variation_percent", nand.variation_percent),
        ("controller.read_request_us", controller.read_request_us),
        ("controller.write_request_us", controller.write_request_us),
        ("controller.overwrite_us", controller.overwrite_us),
        ("controller.read_latency_us", controller.read_latency_us),
        ("controller.write_latency_us", controller.write_latency_us),
        ("controller.reserve_percent", controller.reserve_percent),
        ("energy.idle_watts", energy.idle_watts),
        ("energy.read_uj", energy.read_uj),
        ("energy.program_uj", energy.program_uj),
        ("energy.erase_uj", energy.erase_uj),
        ("energy.transfer_nj_per_byte", energy.transfer_nj_per_byte),
    ])?;
    if let Some(retry) = &nand.retry {
        positive(&[
            ("nand.retry.first_days", retry.first_days),
            ("nand.retry.steps_per_doubling", retry.steps_per_doubling),
            ("nand.retry.most", retry.most.into()),
            ("nand.retry.step_us", retry.step_us),
        ])?;
    }
    ensure(nand.variation_percent < 100.0, "nand.variation_percent must be below 100")?;
    ensure(!nand.program_us.is_empty(), "nand.program_us must name at least one time")?;
    for time in &nand.program_us {
        not_negative(&[("nand.program_us", *time)])?;
    }
    positive(&[("the sum of nand.program_us", nand.program_us.iter().sum())])?;
    if let Some(suspend) = &nand.suspend {
        positive(&[("nand.suspend.least_run_us", suspend.least_run_us)])?;
        not_negative(&[("nand.suspend.after_us", suspend.after_us)])?;
    }
    if let Some(cache) = &nand.slc_cache {
        positive(&[
            ("nand.slc_cache.bytes", cache.bytes as f64),
            ("nand.slc_cache.program_us", cache.program_us),
            ("nand.slc_cache.read_us", cache.read_us),
            ("nand.slc_cache.quiet_ms", cache.quiet_ms),
        ])?;
        ensure((2..=8).contains(&cache.bits_per_cell), "nand.slc_cache.bits_per_cell must be 2 to 8")?;
        ensure(
            cache.bytes.saturating_mul(cache.bits_per_cell.into()) <= module.raw_bytes,
            "nand.slc_cache.bytes takes bits_per_cell times as much flash, which must not exceed raw_bytes",
        )?;
    }
    let dies = u64::from(chips.count) * u64::from(nand.dies_per_chip);
    ensure(u64::from(nand.channels) <= dies, "nand.channels must not exceed the number of dies")?;
    ensure(
        ["fifo", "greedy", "cost-benefit", "placement-initial"].contains(&controller.groomer.as_str()),
        "controller.groomer must be fifo, greedy, cost-benefit or placement-initial",
    )
}

fn card(card: &Card) -> Result<(), String> {
    let thermal = &card.thermal;
    positive(&[
        ("card.power.slot_watts", card.power.slot_watts),
        ("card.thermal.airflow_lfm", thermal.airflow_lfm),
        ("card.thermal.thermal_resistance_c_per_w", thermal.thermal_resistance_c_per_w),
        ("card.thermal.time_constant_s", thermal.time_constant_s),
    ])?;
    ensure(
        card.power.throttle_watts <= card.power.slot_watts,
        "card.power.throttle_watts must not exceed card.power.slot_watts",
    )?;
    ensure(
        thermal.ambient_max_celsius < thermal.throttle_celsius && thermal.throttle_celsius < thermal.shutdown_celsius,
        "card.thermal must rise from ambient_max_celsius over throttle_celsius to shutdown_celsius",
    )
}

fn bridge(bridge: &Bridge) -> Result<(), String> {
    positive(&[
        ("bridge.link_bytes_per_s", bridge.link_bytes_per_s as f64),
        ("bridge.queue_depth", bridge.queue_depth.into()),
    ])?;
    not_negative(&[("bridge.request_us", bridge.request_us), ("bridge.latency_us", bridge.latency_us)])?;
    stripe("bridge.stripe_bytes", bridge.stripe_bytes)
}

/// A stripe takes whole sectors of every size.
fn stripe(name: &str, bytes: u64) -> Result<(), String> {
    ensure(bytes > 0 && bytes.is_multiple_of(4096), &format!("{name} is {bytes}, but must be a multiple of 4096"))
}

fn disk(disk: &Disk) -> Result<(), String> {
    positive(&[
        ("disk.bytes", disk.bytes as f64),
        ("disk.rpm", disk.rpm),
        ("disk.cylinders", disk.cylinders.into()),
        ("disk.track_to_track_ms", disk.track_to_track_ms),
        ("disk.inner_bytes_per_s", disk.inner_bytes_per_s as f64),
        ("disk.zones", disk.zones.into()),
        ("disk.link_bytes_per_s", disk.link_bytes_per_s as f64),
        ("disk.queue_depth", disk.queue_depth.into()),
    ])?;
    not_negative(&[("disk.request_us", disk.request_us), ("disk.write_settle_ms", disk.write_settle_ms)])?;
    ensure(
        disk.sector_bytes.is_power_of_two() && (512..=4096).contains(&disk.sector_bytes),
        "disk.sector_bytes must be a power of two from 512 to 4096",
    )?;
    ensure(
        disk.track_to_track_ms < disk.average_seek_ms && disk.average_seek_ms < disk.full_stroke_ms,
        "disk seeks must rise from track_to_track_ms over average_seek_ms to full_stroke_ms",
    )?;
    ensure(disk.cylinders >= 16, "disk.cylinders must be at least 16")?;
    ensure(
        disk.zones <= disk.cylinders && disk.inner_bytes_per_s <= disk.outer_bytes_per_s,
        "disk zones must be no more than the cylinders, and the inner rate no higher than the outer",
    )
}

fn array(array: &Array) -> Result<(), String> {
    let least = if array.level == Level::Raid5 { 3 } else { 2 };
    ensure((least..=64).contains(&array.count), &format!("array.count is {}, but must be {least} to 64", array.count))?;
    not_negative(&[("array.request_us", array.request_us)])?;
    stripe("array.stripe_bytes", array.stripe_bytes)
}

fn drivers(profile: &Profile) -> Result<(), String> {
    for (name, driver) in &profile.drivers {
        let figures = [
            driver.submit_us,
            driver.complete_us,
            driver.serial_us,
            driver.latency_us,
            driver.card_read_us,
            driver.raid_us,
        ];
        for figure in figures {
            not_negative(&[(&format!("a time of drivers.{name}"), figure)])?;
        }
        ensure(driver.queue_limit != Some(0), &format!("drivers.{name}.queue_limit must be above zero"))?;
        if let Some(interrupts) = &driver.interrupts {
            ensure(interrupts.answers > 0, &format!("drivers.{name}.interrupts.answers must be above zero"))?;
            not_negative(&[(&format!("drivers.{name}.interrupts.wait_us"), interrupts.wait_us)])?;
        }
    }
    Ok(())
}
