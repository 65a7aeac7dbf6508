//! The one table of what can be told about a device. Text, JSON, `--field` and `--fields` all come
//! from it; a field's name is its key in the JSON of a [`DeviceView`].

use serde_json::{Map, Value};

use crate::api::DeviceView;
use crate::clock;

/// How a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Words.
    Text,
    /// Yes or no.
    Flag,
    /// A number of things.
    Count,
    /// A size.
    Bytes,
    /// Per cent.
    Percent,
    /// One quantity over another.
    Ratio,
    /// Degrees Celsius.
    Celsius,
    /// Power.
    Watts,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds for each byte.
    NanosecondsPerByte,
    /// A moment.
    Time,
    /// Several of something.
    List,
}

impl Unit {
    /// Its name in lists of fields.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Text => "text",
            Unit::Flag => "yes/no",
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::Percent => "%",
            Unit::Ratio => "ratio",
            Unit::Celsius => "celsius",
            Unit::Watts => "watts",
            Unit::Microseconds => "us",
            Unit::NanosecondsPerByte => "ns/byte",
            Unit::Time => "time",
            Unit::List => "list",
        }
    }
}

/// Something that can be told about a device.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// What stands in front of it in text.
    pub label: &'static str,
    /// How its value is read.
    pub unit: Unit,
    /// Whether text shows it without being asked for everything.
    pub brief: bool,
    /// What it means.
    pub meaning: &'static str,
}

const fn brief(name: &'static str, label: &'static str, unit: Unit, meaning: &'static str) -> Field {
    Field { name, label, unit, brief: true, meaning }
}

const fn full(name: &'static str, label: &'static str, unit: Unit, meaning: &'static str) -> Field {
    Field { name, label, unit, brief: false, meaning }
}

/// Every field, in the order in which text shows them.
pub const FIELDS: &[Field] = &[
    brief("name", "Name", Unit::Text, "name in the service and of the NBD export"),
    brief("label", "Label", Unit::Text, "set by the format, for people"),
    brief(
        "state",
        "State",
        Unit::Text,
        "detached, attached, attached-read-only, detaching, scanning, formatting, powered-off or error",
    ),
    brief("health", "Health", Unit::Text, "healthy, or what is wrong, in words"),
    brief("path", "Device file", Unit::Text, "where the device lives"),
    brief("uri", "NBD address", Unit::Text, "where clients on this machine reach it"),
    brief("tcp_uri", "NBD over TCP", Unit::Text, "where clients reach it over TCP"),
    full("nvme", "NVMe target", Unit::Text, "where it is to be had over NVMe over TCP: address, port, subsystem"),
    brief("nvme_command", "NVMe", Unit::Text, "how a kernel connects to it over NVMe over TCP"),
    full("nvme_uri", "NVMe address", Unit::Text, "where programs on this machine reach it with the SDK"),
    brief("vhost_socket", "vhost-user socket", Unit::Text, "where a virtual machine finds it as its disk"),
    brief("clients", "Clients", Unit::List, "connected clients, of every protocol"),
    brief("read_only", "Read-only", Unit::Flag, "attached to take no writes"),
    brief("beacon", "Beacon", Unit::Flag, "lit to find it among others"),
    full("drill_device", "Drill device", Unit::Flag, "faults may be put on it by command"),
    brief("drills", "Drills", Unit::List, "faults that are on by command; only on drill devices"),
    full("uuid", "UUID", Unit::Text, "made anew by each format, and for a copy by `vsl attach --new-identity`"),
    full("profile", "Profile", Unit::Text, "data sheet it was created from"),
    full("emulation", "Emulated", Unit::List, "it behaves as the card of its profile; how much smaller, and its seed"),
    brief("encryption", "Encryption", Unit::Text, "the cipher that sectors on the store are sealed with"),
    full("key_slots", "Key slots", Unit::List, "those in use, and what each takes"),
    full("erasing", "Being erased", Unit::Text, "an erase of this level was begun and must be finished"),
    brief(
        "durability",
        "Durability",
        Unit::Text,
        "when what was answered survives a power cut: write-back (flushed or FUA), write-through (at once) or unsafe (some time)",
    ),
    full(
        "page_file",
        "Page-file support",
        Unit::Flag,
        "memory for the worst case is taken and locked, so that swap may lie on the device",
    ),
    brief("without_io_uring", "Without io_uring", Unit::Text, "why the device runs on threads, which is slower"),
    full("celsius", "Temperature", Unit::Celsius, "inside an emulated card"),
    full("watts", "Power", Unit::Watts, "what an emulated card takes"),
    full("power_limit_watts", "Power limit", Unit::Watts, "above it an emulated card holds writes back"),
    full(
        "power_override",
        "Power override",
        Unit::Flag,
        "an emulated card's slot may give any power: nothing is held back for it",
    ),
    full("reserve_percent", "Reserve", Unit::Percent, "spare blocks of an emulated card, of those when it was new"),
    full(
        "write_reduced",
        "Writes reduced",
        Unit::Flag,
        "an emulated card's reserve is used up, and it holds writes back",
    ),
    full("worn_out", "Worn out", Unit::Flag, "an emulated card takes no more writes"),
    full(
        "hold_ns_per_byte",
        "Writes held back",
        Unit::NanosecondsPerByte,
        "by how much an emulated card holds writes back, for heat, power or the end of its life",
    ),
    brief("pacing", "Pacing", Unit::Text, "whether an emulated device answers when the card would have"),
    full("pacing_p50_us", "Pacing error, median", Unit::Microseconds, "by how much answers are later than the card's"),
    full("pacing_p99_us", "Pacing error, p99", Unit::Microseconds, "all but one in a hundred are less late"),
    full("pacing_max_us", "Pacing error, most", Unit::Microseconds, "the latest answer"),
    full(
        "pacing_p99_percent",
        "Pacing error, share",
        Unit::Percent,
        "99th percentile of the error over the request's time",
    ),
    full("pacing_late_percent", "Late answers", Unit::Percent, "more than 20 us late, since the attach"),
    full("pacing_late_minute_percent", "Late in a minute", Unit::Percent, "more than 20 us late, in the last minute"),
    full("format_version", "Format version", Unit::Count, "version of the layout on media"),
    full("paths", "Backing files", Unit::List, "one a die"),
    brief("files", "Files", Unit::Count, "backing files, each of them a die"),
    brief("parity_files", "Parity", Unit::Count, "files of every stripe that hold parity: as many may be lost"),
    brief(
        "parity_chips",
        "Flashback",
        Unit::Text,
        "chips of data and of parity in each stripe of an emulated card: as many as the second number may be lost",
    ),
    full("file_number", "File number", Unit::Count, "which of them was looked at; of an attached device the first"),
    full("dies", "Dies", Unit::Count, "its files, or those of the card that it emulates"),
    full("lost_dies", "Lost dies", Unit::List, "dies, by number, that are out of service"),
    full("set_aside", "Not used", Unit::List, "files that were there at the attach and are not used, and why"),
    full("vanished", "Vanished", Unit::List, "files in use that were deleted, moved or replaced since the attach"),
    full("rebuilding_die", "Rebuilding die", Unit::Count, "the file, by number, that is being rebuilt"),
    brief("rebuild_percent", "Rebuilt", Unit::Percent, "of the file that is being rebuilt"),
    brief("scrub_percent", "Scrubbed", Unit::Percent, "of the scrub that is under way"),
    full("scrubbed_sectors", "Scrubbed sectors", Unit::Count, "read and checked by scrubs, since the attach"),
    full("scrub_errors", "Scrub errors", Unit::Count, "sectors and stripes that scrubs found wrong, since the attach"),
    full("scrubs", "Scrubs", Unit::Count, "that came to their end, since the attach"),
    full("healed_sectors", "Healed sectors", Unit::Count, "failed their check and were rebuilt, since the attach"),
    full("degraded_reads", "Degraded reads", Unit::Count, "sectors read without their die, since the attach"),
    full(
        "unreadable",
        "Unreadable sectors",
        Unit::List,
        "asked for or scrubbed, and cannot be read; the first thousand",
    ),
    full("formatted", "Formatted", Unit::Time, "when the format was made; seconds since 1970 in JSON"),
    full("attaches", "Attaches", Unit::Count, "since the format"),
    full("unsafe_shutdowns", "Unsafe shutdowns", Unit::Count, "attaches that found it not detached, since the format"),
    full("clean", "Clean", Unit::Flag, "detached cleanly; while it is attached: no"),
    brief("bytes", "Capacity", Unit::Bytes, "what the host sees"),
    brief("sector_bytes", "Sector size", Unit::Bytes, "smallest unit of a request"),
    full("sectors", "Sectors", Unit::Count, "sectors that the host sees"),
    full("advertised_bytes", "Advertised capacity", Unit::Bytes, "capacity of the stock format"),
    full("raw_bytes", "Raw capacity", Unit::Bytes, "media in all, the reserve included"),
    full(
        "over_provisioning_percent",
        "Over-provisioning",
        Unit::Percent,
        "raw capacity beyond the host's, parity and reserve left out, per cent of the host's",
    ),
    full("max_request_bytes", "Largest request", Unit::Bytes, "a write up to it is never torn"),
    brief("mapped_bytes", "Data held", Unit::Bytes, "sectors that hold data, in bytes"),
    full("mapped_sectors", "Sectors mapped", Unit::Count, "sectors that hold data"),
    full("allocated_bytes", "Space on the store", Unit::Bytes, "what the backing store uses now"),
    full(
        "store_free_bytes",
        "Free on the store",
        Unit::Bytes,
        "left on the file system under the device, the least of its files; not known for block devices",
    ),
    full("store_full", "Store full", Unit::Flag, "the store gave no space when it was asked last"),
    full("lebs", "Erase blocks", Unit::Count, "logical erase blocks in all"),
    full("leb_bytes", "Erase block size", Unit::Bytes, "one logical erase block"),
    full("free_lebs", "Erase blocks free", Unit::Count, "logical erase blocks that hold nothing"),
    brief("host_read_bytes", "Read by hosts", Unit::Bytes, "since the format"),
    brief("host_written_bytes", "Written by hosts", Unit::Bytes, "since the format"),
    brief("media_written_bytes", "Written to media", Unit::Bytes, "since the format, everything included"),
    brief(
        "write_amplification",
        "Write amplification",
        Unit::Ratio,
        "everything appended for each byte written by hosts",
    ),
    full("host_trimmed_bytes", "Trimmed by hosts", Unit::Bytes, "since the format"),
    full("groomed_bytes", "Moved by the groomer", Unit::Bytes, "since the format"),
    full("padding_bytes", "Padding", Unit::Bytes, "left empty so that flushes could be programmed, since the format"),
    full("metadata_bytes", "Metadata", Unit::Bytes, "headers, trim records and checkpoints, since the format"),
    full("erased_lebs", "Erases", Unit::Count, "logical erase blocks erased or given up for reuse"),
    full("groomer", "Groomer", Unit::Text, "its policy"),
    full("grooming", "Grooming", Unit::Flag, "free space is short: the groomer works and writes are paced"),
    full("read_errors", "Read errors", Unit::Count, "reads that failed, since the format"),
    full("damaged_sectors", "Damaged sectors", Unit::Count, "found unreadable by the groomer, since the format"),
    full("reads", "Reads", Unit::Count, "requests answered since the attach"),
    full("writes", "Writes", Unit::Count, "requests answered since the attach"),
    full("flushes", "Flushes", Unit::Count, "requests answered since the attach"),
    full("trims", "Trims", Unit::Count, "trims and zeroings answered since the attach"),
    full("batches", "Batches", Unit::Count, "batches of writes and trims answered since the attach"),
    full("map_memory_bytes", "Memory of the map", Unit::Bytes, "memory of the forward map"),
    full(
        "worst_memory_bytes",
        "Page-file memory",
        Unit::Bytes,
        "memory that page-file support locks: what the layer takes at most",
    ),
    full("map_memory_per_sector", "Map per sector", Unit::Ratio, "bytes of map memory for each sector mapped"),
    brief("memory_bytes", "Memory", Unit::Bytes, "memory of the whole layer, and of what clients have under way"),
    full("config", "Settings", Unit::List, "what `vsl config` sets"),
];

/// What fields are about: each group begins with the field that is named.
const GROUPS: &[(&str, &str)] = &[
    ("name", "Device"),
    ("uuid", "Identity and keys"),
    ("durability", "Durability"),
    ("celsius", "Emulated card"),
    ("format_version", "Files and redundancy"),
    ("formatted", "Format"),
    ("bytes", "Capacity"),
    ("host_read_bytes", "Read and written"),
    ("groomer", "Groomer and errors"),
    ("reads", "Requests"),
    ("map_memory_bytes", "Memory"),
    ("config", "Settings"),
];

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Counted, timed or read here.
    Measured,
    /// Said by the model of an emulated card.
    Modelled,
    /// Somebody said so: when it was made, attached or configured.
    Set,
}

impl Source {
    /// Its name in lists of fields.
    pub fn name(self) -> &'static str {
        match self {
            Source::Measured => "measured",
            Source::Modelled => "modelled",
            Source::Set => "set",
        }
    }
}

/// Fields that the model of an emulated card says.
const MODELLED: &[&str] =
    &["celsius", "watts", "power_limit_watts", "reserve_percent", "write_reduced", "worn_out", "hold_ns_per_byte"];

/// Fields that say what somebody chose.
const SET: &[&str] = &[
    "name",
    "label",
    "path",
    "uri",
    "tcp_uri",
    "nvme",
    "nvme_command",
    "nvme_uri",
    "vhost_socket",
    "read_only",
    "beacon",
    "drill_device",
    "drills",
    "uuid",
    "profile",
    "emulation",
    "encryption",
    "key_slots",
    "format_version",
    "paths",
    "files",
    "parity_files",
    "parity_chips",
    "file_number",
    "dies",
    "formatted",
    "bytes",
    "sector_bytes",
    "sectors",
    "advertised_bytes",
    "raw_bytes",
    "over_provisioning_percent",
    "max_request_bytes",
    "lebs",
    "leb_bytes",
    "groomer",
    "power_override",
    "durability",
    "page_file",
    "config",
];

impl Field {
    /// What it is about.
    pub fn group(&self) -> &'static str {
        let before = FIELDS.iter().take_while(|field| field.name != self.name).chain([self]);
        let begun = before.filter_map(|field| GROUPS.iter().find(|(first, _)| *first == field.name));
        begun.last().map_or("", |(_, group)| *group)
    }

    /// Where its value comes from.
    pub fn source(&self) -> Source {
        match self.name {
            name if MODELLED.contains(&name) => Source::Modelled,
            name if SET.contains(&name) => Source::Set,
            _ => Source::Measured,
        }
    }
}

/// The field of a name.
pub fn find(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// Every field that the device has a value for.
pub fn values(view: &DeviceView) -> Map<String, Value> {
    match serde_json::to_value(view) {
        Ok(Value::Object(mut map)) => {
            map.retain(|_, value| !value.is_null());
            map
        }
        // A view is a struct of plain values, which serde_json always makes an object of.
        _ => Map::new(),
    }
}

/// A value as text shows it.
pub fn show(unit: Unit, value: &Value) -> String {
    match (unit, value) {
        (_, Value::Bool(flag)) => if *flag { "yes" } else { "no" }.into(),
        (Unit::Bytes, Value::Number(number)) => number.as_u64().map_or_else(|| number.to_string(), size::show),
        (Unit::Percent, Value::Number(number)) => format!("{:.1} %", number.as_f64().unwrap_or_default()),
        (Unit::Ratio, Value::Number(number)) => format!("{:.2}", number.as_f64().unwrap_or_default()),
        (Unit::Celsius, Value::Number(number)) => format!("{:.1} °C", number.as_f64().unwrap_or_default()),
        (Unit::Watts, Value::Number(number)) => format!("{:.2} W", number.as_f64().unwrap_or_default()),
        (Unit::Microseconds, Value::Number(number)) => format!("{:.1} µs", number.as_f64().unwrap_or_default()),
        (Unit::NanosecondsPerByte, Value::Number(number)) => format!("{:.2} ns/B", number.as_f64().unwrap_or_default()),
        (Unit::Time, Value::Number(number)) => {
            number.as_u64().and_then(clock::show).unwrap_or_else(|| number.to_string())
        }
        (_, Value::Array(items)) if items.is_empty() => "none".into(),
        (_, value) => plain(value),
    }
}

/// A value as scripts read it: numbers and words bare, lists joined by commas.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        // A client is shown by who it is; settings by name and value.
        Value::Object(map) if map.contains_key("peer") => plain(&map["peer"]),
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Client, Condition, Derived, NvmeTarget};
    use device::{Info, State, Status};
    use uuid::Uuid;

    fn client() -> Client {
        Client {
            id: 0,
            protocol: "nbd".into(),
            peer: "process 7".into(),
            tls: false,
            since: 0,
            requests: 0,
            read_bytes: 0,
            written_bytes: 0,
            in_flight: 0,
            nvme: None,
            last_error: None,
            memory_bytes: 0,
        }
    }

    fn view() -> DeviceView {
        let info = Info {
            paths: vec!["/d/fct0.vsl".into()],
            files: 1,
            parity_files: 0,
            parity_chips: Some("24 + 1".into()),
            file_number: 0,
            uuid: Uuid::nil(),
            next_uuid: None,
            label: "scratch".into(),
            format_version: 1,
            profile: Some("iodrive-duo-640-mlc".into()),
            sector_bytes: 4096,
            sectors: 1000,
            advertised_bytes: 4_096_000,
            raw_bytes: 5_120_000,
            max_request_bytes: 1 << 20,
            formatted: 1_000_000_000,
            attaches: 3,
            unsafe_shutdowns: 1,
            clean: true,
            emulation: Some(device::Emulation { scale: 8, seed: 1 }),
            encryption: Some("aes-256-gcm".into()),
            key_slots: Some(vec!["0: passphrase".into()]),
            drill_device: true,
            erasing: Some(device::EraseLevel::Clear),
        };
        let status = Status {
            state: State::Attached,
            health: "healthy".into(),
            reads: 1,
            writes: 2,
            flushes: 3,
            trims: 4,
            batches: 41,
            host_read_bytes: 5,
            host_written_bytes: 6,
            host_trimmed_bytes: 7,
            groomed_bytes: 8,
            padding_bytes: 9,
            metadata_bytes: 10,
            media_written_bytes: 11,
            write_amplification: Some(1.25),
            read_errors: 12,
            damaged_sectors: 13,
            dies: 4,
            lost_dies: vec![1],
            set_aside: vec!["die 1: d1: cut".into()],
            vanished: vec!["/d2".into()],
            healed_sectors: 20,
            degraded_reads: 21,
            unreadable: vec![22],
            rebuilding_die: Some(1),
            rebuild_percent: Some(2.5),
            scrub_percent: Some(3.5),
            scrubbed_sectors: 23,
            scrub_errors: 24,
            scrubs: 25,
            celsius: Some(40.5),
            hold_ns_per_byte: Some(0.5),
            write_reduced: Some(false),
            worn_out: Some(false),
            watts: Some(11.5),
            power_limit_watts: Some(24.75),
            power_override: Some(false),
            durability: Some("write-back".into()),
            page_file: false,
            without_io_uring: Some("OPENVSL_IO=threads".into()),
            reserve_percent: Some(98.5),
            drills: Some(vec!["kill-die 1".into()]),
            mapped_sectors: 10,
            sectors: 1000,
            map_memory_bytes: 45,
            worst_memory_bytes: 48,
            map_memory_per_sector: Some(4.5),
            memory_bytes: 14,
            free_lebs: 15,
            lebs: 16,
            leb_bytes: 17,
            erased_lebs: 18,
            groomer: "greedy".into(),
            grooming: false,
            over_provisioning_percent: 25.0,
            allocated_bytes: Some(19),
            store_free_bytes: Some(26),
            store_full: false,
            pacing: Some(device::Pacing {
                pacing: "keeps up with the card".into(),
                pacing_p50_us: 0.5,
                pacing_p99_us: 1.5,
                pacing_max_us: 2.5,
                pacing_p99_percent: 0.75,
                pacing_late_percent: 0.0,
                pacing_late_minute_percent: 0.0,
            }),
        };
        let condition = Condition::Attached(Box::new(status));
        DeviceView {
            name: "fct0".into(),
            path: "/d/fct0.vsl".into(),
            uri: Some("nbd+unix:///fct0?socket=/r".into()),
            tcp_uri: Some("nbd://127.0.0.1/fct0".into()),
            nvme: Some(NvmeTarget { address: [127, 0, 0, 1].into(), port: 4420, subsystem: "nqn.x".into() }),
            nvme_command: Some("nvme connect -t tcp -a 127.0.0.1 -s 4420 -n nqn.x".into()),
            nvme_uri: Some("nvme+unix:///nqn.x?socket=/r".into()),
            vhost_socket: Some("/run/openvsl/fct0.vhost".into()),
            read_only: Some(false),
            beacon: Some(true),
            clients: Some(vec![client()]),
            config: Some([("trim".to_string(), "on".to_string())].into()),
            derived: Derived::new(Some(&info), &condition),
            condition,
            info: Some(info),
        }
    }

    #[test]
    fn the_table_names_exactly_what_a_view_holds() {
        let mut held: Vec<String> = values(&view()).keys().cloned().collect();
        let mut named: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        held.sort();
        named.sort_unstable();
        assert_eq!(held, named);
    }

    #[test]
    fn every_group_begins_with_a_field() {
        for (first, group) in GROUPS {
            assert_eq!(find(first).map(|field| field.group()), Some(*group), "{first}");
        }
        assert_eq!(find("writes").map(|field| field.group()), Some("Requests"));
    }

    #[test]
    fn sources_name_fields() {
        for name in MODELLED.iter().chain(SET) {
            assert!(find(name).is_some(), "{name}");
        }
        assert_eq!(find("celsius").map(|field| field.source()), Some(Source::Modelled));
        assert_eq!(find("host_written_bytes").map(|field| field.source()), Some(Source::Measured));
    }

    #[test]
    fn a_view_survives_its_json() {
        let text = serde_json::to_string(&values(&view())).expect("json");
        assert_eq!(serde_json::from_str::<DeviceView>(&text).expect("parsed"), view());
        let detached = DeviceView {
            condition: Condition::Other { state: State::Detached, health: "unknown".into() },
            info: None,
            derived: Derived::default(),
            ..view()
        };
        let text = serde_json::to_string(&values(&detached)).expect("json");
        assert_eq!(serde_json::from_str::<DeviceView>(&text).expect("parsed"), detached);
    }

    #[test]
    fn an_nvme_target_reads_as_the_command_that_connects_to_it() {
        let target = NvmeTarget { address: "::1".parse().expect("an address"), port: 4420, subsystem: "nqn.x".into() };
        assert_eq!(target.to_string(), "nvme connect -t tcp -a ::1 -s 4420 -n nqn.x");
    }

    #[test]
    fn derived_figures_are_right() {
        let derived = view().derived;
        assert_eq!(derived.bytes, Some(4_096_000));
        assert_eq!(derived.mapped_bytes, Some(40_960));
    }

    #[test]
    fn values_are_shown_by_unit() {
        let map = values(&view());
        let shown = |name: &str| show(find(name).expect(name).unit, &map[name]);
        assert_eq!(shown("raw_bytes"), "5.12 MB (4.88 MiB)");
        assert_eq!(shown("beacon"), "yes");
        assert_eq!(shown("clients"), "process 7");
        assert_eq!(shown("nvme"), "address=127.0.0.1, port=4420, subsystem=nqn.x");
        assert_eq!(shown("config"), "trim=on");
        assert_eq!(shown("formatted"), "2001-09-09T01:46:40Z");
        assert_eq!(show(Unit::Time, &Value::from(u64::MAX)), u64::MAX.to_string(), "a forged format says so");
        assert_eq!(shown("over_provisioning_percent"), "25.0 %");
        let modelled = |name: &str, value: f64| show(find(name).expect(name).unit, &Value::from(value));
        assert_eq!((modelled("celsius", 32.55).as_str(), modelled("watts", 5.0).as_str()), ("32.5 °C", "5.00 W"));
        assert_eq!(modelled("pacing_p50_us", 12.34), "12.3 µs");
        assert_eq!(modelled("hold_ns_per_byte", 0.5), "0.50 ns/B");
        assert_eq!(plain(&map["raw_bytes"]), "5120000");
    }
}
