//! What `vsl config` can set: the names and values of settings as users write them.

use device::{Durability, Setting, Settings};
use media::object::Prices;

use crate::Failure;
use crate::api::Config;

/// A setting that the service keeps, not the device: whether it attaches the device when it starts.
pub const ATTACH_AT_START: &str = "attach-at-start";

/// A change that a user asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Of a setting on the device.
    Device(Setting),
    /// Of [`ATTACH_AT_START`].
    AttachAtStart(bool),
}

/// The names of all settings, with what each means.
pub const MEANINGS: &[(&str, &str)] = &[
    ("label", "a name for people"),
    ("trim", "whether trims are carried out: on or off"),
    ("beacon", "the location beacon: on or off"),
    ("drills", "whether faults may be put on the device by command: on or off; holds with the next attach"),
    (
        "durability",
        "when writes are durable: write-back (when flushed, or FUA), write-through (when answered), unsafe (flushes do not wait) or remote (when flushed, and the object store has it)",
    ),
    (
        "nvme-block",
        "bytes of a block over NVMe, from the sector size to 64 KiB: no write of a block is ever torn; holds with the next attach",
    ),
    (
        "queue-depth",
        "requests that all clients may have with the device at once, 1 to 255, as hypervisors limit them; or none",
    ),
    (
        "power-override",
        "of an emulated card: whether its slot may give any power, so that nothing is held back for it: on or off",
    ),
    (
        "page-file",
        "whether memory for the worst case is taken and locked, so that a swap file may lie on the device: on or off",
    ),
    (
        "groomer",
        "its policy: lifetime, or a published one such as greedy or cost-benefit; docs/groomer.md has them all",
    ),
    (
        "object-prices",
        "what the object store of a device on objects costs, by which the groomer collects: s3-standard, none, or put=USD,get=USD,month=USD,egress=USD (of 1,000 PUTs, of 1,000 GETs, of a GiB kept for a month, of a GiB read)",
    ),
    ("checkpoint-interval", "written between two checkpoints; bounds what an attach after a crash must read"),
    (ATTACH_AT_START, "whether the service attaches the device when it starts: on or off"),
];

/// Every setting that the device has, and its value.
pub fn show(settings: &Settings, attach_at_start: bool) -> Config {
    let switch = |on: bool| String::from(if on { "on" } else { "off" });
    // Taken apart whole, so that a new setting cannot be forgotten here.
    let Settings {
        label,
        trim,
        beacon,
        drills,
        durability,
        nvme_block_bytes,
        queue_depth,
        power_override,
        page_file,
        groomer,
        checkpoint_interval_bytes,
        object_prices,
    } = settings;
    let of_some = [
        ("durability", durability.map(|mode| mode.name().to_string())),
        ("power-override", power_override.map(switch)),
        ("object-prices", object_prices.clone()),
    ];
    [
        ("label", label.clone()),
        ("trim", switch(*trim)),
        ("beacon", switch(*beacon)),
        ("drills", switch(*drills)),
        ("page-file", switch(*page_file)),
        ("nvme-block", size::exact(u64::from(*nvme_block_bytes))),
        ("queue-depth", queue_depth.map_or("none".into(), |depth| depth.to_string())),
        ("groomer", groomer.clone()),
        ("checkpoint-interval", size::exact(*checkpoint_interval_bytes)),
        (ATTACH_AT_START, switch(attach_at_start)),
    ]
    .into_iter()
    .chain(of_some.into_iter().filter_map(|(name, value)| Some((name, value?))))
    .map(|(name, value)| (name.to_string(), value))
    .collect()
}

/// What a name and a value ask for.
///
/// # Errors
/// There is no such setting, or it does not take this value. What only the device can judge is left to it.
pub fn parse(name: &str, value: &str) -> Result<Change, Failure> {
    let switch = || match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Failure::invalid(format!("{name}: '{value}' is not a value")).help("choose on or off")),
    };
    Ok(match name {
        "label" => Change::Device(Setting::Label(value.into())),
        "trim" => Change::Device(Setting::Trim(switch()?)),
        "beacon" => Change::Device(Setting::Beacon(switch()?)),
        "drills" => Change::Device(Setting::Drills(switch()?)),
        "durability" => Change::Device(Setting::Durability(Durability::from_name(value).ok_or_else(|| {
            let names = Durability::ALL.map(Durability::name).join(", ");
            Failure::invalid(format!("{name}: '{value}' is not a value")).help(format!("choose one of {names}"))
        })?)),
        "nvme-block" => {
            let bytes = size::parse(value).map_err(|error| {
                Failure::invalid(format!("{name}: {error}"))
                    .help("choose a power of two from the sector size to 64 KiB")
            })?;
            Change::Device(Setting::NvmeBlock(u32::try_from(bytes).unwrap_or(u32::MAX)))
        }
        "queue-depth" => Change::Device(Setting::QueueDepth(match value {
            "none" => None,
            depth => Some(depth.parse().ok().filter(|depth| *depth > 0).ok_or_else(|| {
                Failure::invalid(format!("{name}: '{value}' is not a value"))
                    .help("choose a number from 1 to 255, or none")
            })?),
        })),
        "power-override" => Change::Device(Setting::PowerOverride(switch()?)),
        "page-file" => Change::Device(Setting::PageFile(switch()?)),
        "groomer" => Change::Device(Setting::Groomer(value.into())),
        "checkpoint-interval" => {
            let bytes = size::parse(value).map_err(|error| Failure::invalid(format!("{name}: {error}")))?;
            Change::Device(Setting::CheckpointInterval(bytes))
        }
        "object-prices" => {
            Prices::stated(value).map_err(|error| {
                Failure::invalid(format!("{name}: {error}"))
                    .help("or none, which has the groomer collect by need alone; docs/objects.md says what prices do")
            })?;
            Change::Device(Setting::ObjectPrices(value.into()))
        }
        ATTACH_AT_START => Change::AttachAtStart(switch()?),
        _ => return Err(unknown(name)),
    })
}

/// The failure of naming a setting that does not exist.
pub fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = MEANINGS.iter().map(|(name, _)| *name).collect();
    Failure::invalid(format!("no setting is called '{name}'")).help(format!("there are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            label: "db".into(),
            trim: true,
            beacon: false,
            drills: false,
            durability: Some(Durability::WriteThrough),
            nvme_block_bytes: 16 << 10,
            queue_depth: Some(32),
            power_override: Some(true),
            page_file: true,
            groomer: "greedy".into(),
            checkpoint_interval_bytes: 512 << 20,
            object_prices: Some("s3-standard".into()),
        }
    }

    #[test]
    fn what_is_shown_can_be_set() {
        let shown = show(&settings(), true);
        let mut names: Vec<&str> = MEANINGS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert_eq!(shown.keys().collect::<Vec<_>>(), names);
        for (name, value) in &shown {
            parse(name, value).expect(name);
        }
        assert_eq!(shown["checkpoint-interval"], "512MiB");
        let other = show(&Settings { durability: None, power_override: None, ..settings() }, true);
        assert!(
            !other.contains_key("durability") && !other.contains_key("power-override"),
            "what it has not is not shown"
        );
        let change = parse("checkpoint-interval", "512MiB").expect("a size");
        assert_eq!(change, Change::Device(Setting::CheckpointInterval(512 << 20)));
    }

    #[test]
    fn wrong_names_and_values_are_told() {
        let failure = parse("turbo", "on").expect_err("unknown");
        assert_eq!(failure.error, "no setting is called 'turbo'");
        assert!(failure.help.contains("checkpoint-interval"), "{}", failure.help);
        assert_eq!(parse("trim", "maybe").expect_err("neither").error, "trim: 'maybe' is not a value");
        let failure = parse("checkpoint-interval", "often").expect_err("no size");
        assert!(failure.error.starts_with("checkpoint-interval: 'often' is not a size"), "{}", failure.error);
    }
}
