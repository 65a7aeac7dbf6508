//! The rows, by what they are about. A group's fields follow each other in text.

use device::{Durability, State};

use super::OverTime::{Amplification, Last, Max, Mean};
use super::Unit::{
    Bytes, BytesPerSecond, Celsius, Count, Flag, Hours, List, Microseconds, NanosecondsPerByte, PerSecond, Percent,
    Ratio, Seconds, Text, Time, Watts,
};
use super::{Chart, Row, Unit, field, latency, metric, service, set};

/// How far a latency reaches.
pub(super) const REACH: &str = "from the request's arrival in the service to the sending of its answer";

const fn chart(title: &'static str, unit: Unit) -> Chart {
    Chart { title, unit, logarithmic: false, at_least: 0 }
}

const fn at_least(title: &'static str, unit: Unit, at_least: u32) -> Chart {
    Chart { at_least, ..chart(title, unit) }
}

/// The charts, in the order in which they are shown.
pub const CHARTS: &[Chart] = &[
    chart("Bandwidth", BytesPerSecond),
    chart("IOPS", PerSecond),
    Chart { logarithmic: true, ..chart("Read latency", Microseconds) },
    Chart { logarithmic: true, ..chart("Write latency", Microseconds) },
    chart("Queue depth", Count),
    at_least("Write amplification", Ratio, 2),
    chart("Groomer and media", BytesPerSecond),
    at_least("Free blocks and reserve", Percent, 100),
    at_least("Cache hits", Percent, 100),
    chart("Behind the cache", BytesPerSecond),
    at_least("Temperature", Celsius, 80),
    chart("Power", Watts),
    at_least("Processor", Percent, 10),
    chart("Memory", Bytes),
    chart("Store", Bytes),
    chart("Data held", Bytes),
    at_least("The service's processor", Percent, 10),
    chart("The service's memory", Bytes),
];

/// Every row, by group; a row in one line or two, as tables are read.
#[rustfmt::skip]
pub const TABLE: &[(&str, &[Row])] = &[
    ("Each second", &[
        metric("read_iops", "Reads", PerSecond, "read requests answered", |m| m.each_second(m.observed.reads.count()))
            .line("IOPS", "read", 0).column("READ/S", 8, 0),
        metric("write_iops", "Writes", PerSecond, "write requests answered", |m| m.each_second(m.observed.writes.count()))
            .line("IOPS", "write", 1).column("WRITE/S", 8, 0),
        metric("flush_iops", "Flushes", PerSecond, "flush requests answered", |m| m.each_second(m.observed.flushes.count()))
            .line("IOPS", "flush", 2),
        metric("trim_iops", "Trims", PerSecond, "trims and zeroings answered", |m| m.each_second(m.observed.trims.count())).line("IOPS", "trim", 3),
        metric("long_waits", "Long waits", PerSecond, "requests that waited longer than 50 ms; the log says what for", |m| m.each_second(m.observed.long_waits)),
        metric("failed_iops", "Failures", PerSecond, "requests answered with an error", |m| m.each_second(m.observed.failed)),
        metric("read_bytes_per_s", "Read bandwidth", BytesPerSecond, "bytes read by hosts", |m| m.each_second(m.observed.reads.bytes))
            .line("Bandwidth", "read", 0).column("READ MB/S", 9, 1),
        metric("write_bytes_per_s", "Write bandwidth", BytesPerSecond, "bytes written by hosts", |m| m.each_second(m.observed.writes.bytes))
            .line("Bandwidth", "write", 1).column("WRITE MB/S", 10, 1),
        metric("trim_bytes_per_s", "Trim bandwidth", BytesPerSecond, "bytes trimmed or zeroed by hosts", |m| m.each_second(m.observed.trims.bytes))
            .line("Bandwidth", "trim", 3),
        latency("read_p50_us", "Read latency, median", 0, 0.5).line("Read latency", "p50", 0).column("R P50", 8, 0),
        latency("read_p99_us", "Read latency, p99", 0, 0.99).line("Read latency", "p99", 1).column("R P99", 8, 0),
        latency("read_p999_us", "Read latency, p99.9", 0, 0.999).line("Read latency", "p99.9", 2),
        metric("read_max_us", "Read latency, most", Microseconds, REACH, |m| m.longest(&m.observed.reads)).over(Max).line("Read latency", "most", 6),
        latency("write_p50_us", "Write latency, median", 1, 0.5).line("Write latency", "p50", 0).column("W P50", 8, 0),
        latency("write_p99_us", "Write latency, p99", 1, 0.99).line("Write latency", "p99", 1).column("W P99", 8, 0),
        latency("write_p999_us", "Write latency, p99.9", 1, 0.999).line("Write latency", "p99.9", 2),
        metric("write_max_us", "Write latency, most", Microseconds, REACH, |m| m.longest(&m.observed.writes))
            .over(Max).line("Write latency", "most", 6),
        latency("flush_p50_us", "Flush latency, median", 2, 0.5),
        latency("flush_p99_us", "Flush latency, p99", 2, 0.99),
        latency("flush_p999_us", "Flush latency, p99.9", 2, 0.999),
        metric("flush_max_us", "Flush latency, most", Microseconds, REACH, |m| m.longest(&m.observed.flushes)).over(Max),
        metric("queue_depth", "Queue depth", Ratio, "requests in the service at a time, by Little's law: their latencies together over the time", |m| Some(m.depth()))
            .line("Queue depth", "mean", 0).column("DEPTH", 6, 1),
        metric("queue_depth_max", "Queue depth, most", Count, "the most requests that were in the service at once", |m| Some(m.observed.depth_max.into()))
            .over(Max).line("Queue depth", "most", 1),
        metric("clients", "Clients", Count, "connected clients, of every protocol", |m| Some(m.observed.clients.into()))
            .over(Last).line("Queue depth", "clients", 6),
        metric("write_amplification", "Write amplification", Ratio, "everything appended for each byte that hosts wrote in this time", |m| m.amplification())
            .over(Amplification).line("Write amplification", "media over host", 1).column("WAF", 5, 2),
        metric("free_percent", "Free erase blocks", Percent, "logical erase blocks that hold nothing, of all", |m| Some(100.0 * f64::from(m.now.free_lebs) / f64::from(m.now.lebs)))
            .line("Free blocks and reserve", "free blocks", 2).column("FREE%", 5, 0),
        metric("groomed_bytes_per_s", "Groomer", BytesPerSecond, "moved by the groomer", |m| m.rate(|f| f.bytes(f.layer.groomed_sectors)))
            .line("Groomer and media", "moved by the groomer", 3).column("GROOM", 6, 1),
        metric("media_written_bytes_per_s", "Written to media", BytesPerSecond, "everything programmed", |m| m.rate(|f| f.layer.programmed_bytes))
            .line("Groomer and media", "written to media", 0),
        metric("cpu_percent", "Processor time of the layer", Percent, "of the device's thread; 100 is one processor", |m| Some(m.each_second(m.cpu_ns?)? / 1e7))
            .line("Processor", "the layer's thread", 0).column("CPU%", 5, 0),
        metric("power_limited", "Limited by power", Flag, "an emulated card holds writes back at its power limit", |m| m.power_limited().map(|limited| f64::from(u8::from(limited))))
            .modelled().over(Max),
        metric("throttle_ns_per_byte", "Writes held back", NanosecondsPerByte, "for heat, power or the end of its life; emulated cards", |m| m.now.hold_ns_per_byte)
            .modelled(),
        metric("pacing_late_percent", "Late answers", Percent, "answers of an emulated card more than 20 us later than the model's, in the last minute", |m| m.now.pacing.map(|pacing| pacing.late_minute_percent))
            .over(Last),
        metric("failed", "Failed", Flag, "it could not be attached, or its writes fail", |m| Some(f64::from(u8::from(m.now.state == State::Error))))
            .over(Max),
        metric("unclean_attach", "Unclean attach", Flag, "it was not detached cleanly before it was attached", |m| Some(f64::from(u8::from(m.unclean))))
            .over(Last),
        metric("store_left_hours", "Store full in", Hours, "at the rate at which its file system filled in the last hour; a year where it does not fill", |m| m.filling.map(|filling| filling.hours()))
            .over(Last),
        metric("room_left_hours", "Room used up in", Hours, "at the rate at which data and snapshots grew in the last hour; a year where they do not grow", |m| m.growing.map(|growing| growing.hours()))
            .over(Last),
        metric("unreadable_sectors", "Unreadable sectors", Count, "asked for or scrubbed, and cannot be read", |m| Some(m.now.unreadable_sectors.into()))
            .over(Last),
        metric("lost_dies", "Lost dies", Count, "files out of service or being rebuilt", |m| Some(m.now.lost.into())).over(Last),
        metric("objects_behind_bytes", "Behind in the object store", Bytes, "in the journal and not in the object store: what the loss of the machine would cost", |m| m.now.objects.map(|objects| objects.ahead_bytes as f64))
            .over(Max),
        metric("objects_behind_s", "Object store behind", Seconds, "for how long the oldest change has waited for the object store", |m| m.now.objects.map(|objects| objects.behind_ms as f64 / 1000.0))
            .over(Max),
        metric("objects_uploaded_bytes_per_s", "Uploaded", BytesPerSecond, "to the object store", |m| m.now.objects.and_then(|_| m.rate(|f| f.objects.map_or(0, |objects| objects.uploaded_bytes)))),
        metric("objects_errors_per_s", "Object store errors", PerSecond, "requests to the object store that failed, each attempt counted", |m| m.now.objects.and_then(|_| m.rate(|f| f.objects.map_or(0, |objects| objects.errors)))),
        metric("objects_fenced", "Fenced", Flag, "another host has taken the device over", |m| m.now.objects.map(|objects| f64::from(u8::from(objects.fenced))))
            .over(Max),
        metric("cache_hit_percent", "Cache hits", Percent, "of what was read of a cached volume, what its cache had", |m| m.cache_hits())
            .line("Cache hits", "read from the cache", 0),
        metric("cache_missed_bytes_per_s", "Read from behind", BytesPerSecond, "by a cached volume, from the store behind its cache", |m| m.now.cache.and_then(|_| m.rate(|f| f.bytes(f.cached().missed))))
            .line("Behind the cache", "read from behind", 0),
        metric("cache_written_back_bytes_per_s", "Written back", BytesPerSecond, "from a cache to the store behind it", |m| m.now.cache.and_then(|_| m.rate(|f| f.bytes(f.cached().written_back))))
            .line("Behind the cache", "written back", 1),
        metric("vanished_files", "Vanished files", Count, "in use, and deleted, moved or replaced", |m| Some(m.now.vanished_files.into()))
            .over(Last),
    ]),
    ("Device", &[
        set("name", "Name", Text, "name in the service and of the NBD export").brief(),
        set("label", "Label", Text, "set by the format, for people").brief(),
        field("state", "State", Text, "detached, attached, attached-read-only, detaching, scanning, formatting, powered-off, stand-by or error")
            .brief().read(|f| f.state.name().into()),
        field("health", "Health", Text, "healthy, or what is wrong, in words").brief().words(|s| s.health.clone().into()),
        set("path", "Device file", Text, "where the device lives").brief(),
        set("uri", "NBD address", Text, "where clients on this machine reach it").brief(),
        set("tcp_uri", "NBD over TCP", Text, "where clients reach it over TCP").brief(),
        set("nvme", "NVMe target", Text, "where it is to be had over NVMe over TCP: address, port, subsystem"),
        set("nvme_command", "NVMe", Text, "how a kernel connects to it over NVMe over TCP").brief(),
        set("nvme_uri", "NVMe address", Text, "where programs on this machine reach it with the SDK"),
        set("vhost_socket", "vhost-user socket", Text, "where a virtual machine finds it as its disk").brief(),
        field("clients", "Clients", List, "connected clients, of every protocol").brief(),
        set("read_only", "Read-only", Flag, "attached to take no writes").brief(),
        set("beacon", "Beacon", Flag, "lit to find it among others").brief(),
        set("drill_device", "Drill device", Flag, "faults may be put on it by command"),
        set("drills", "Drills", List, "faults that are on by command; only on drill devices").brief().words(|s| s.drills.clone().into()),
    ]),
    ("Identity and keys", &[
        set("uuid", "UUID", Text, "made anew by each format, and for a copy by `vsl attach --new-identity`"),
        set("profile", "Profile", Text, "data sheet it was created from"),
        set("product", "Product", Text, "vendor and product of the card that is emulated"),
        set("part_number", "Part number", Text, "of an emulated card: its data sheet's name stands for the vendor's number"),
        set("serial_number", "Serial number", Text, "as hosts see it over NVMe and vhost-user; made anew by each format"),
        set("firmware", "Firmware", Text, "the version of the program, which is what runs in a controller's place"),
        set("link", "Link", Text, "PCI Express link of an emulated card, by its data sheet"),
        set("link_lanes", "Link width", Count, "lanes of the link of an emulated card"),
        set("slot_volts", "Slot voltage", Ratio, "volts that a slot gives an emulated card: nominal, the model has no ripple"),
        set("leds", "Lights", List, "what the lights of a card would show"),
        set("not_there", "Not there", List, "fields that a card has and this device has nothing for, as it emulates none"),
        set("emulation", "Emulated", List, "it behaves as the card of its profile; how much smaller, and its seed"),
        set("encryption", "Encryption", Text, "the cipher that sectors on the store are sealed with").brief(),
        set("key_slots", "Key slots", List, "those in use, and what each takes"),
        field("erasing", "Being erased", Text, "an erase of this level was begun and must be finished"),
    ]),
    ("Durability", &[
        set("durability", "Durability", Text, "when what was answered survives a power cut: write-back (flushed or FUA), write-through (at once) or unsafe (some time)")
            .brief().read(|f| f.durability.map(Durability::name).into()),
        set("page_file", "Page-file support", Flag, "memory for the worst case is taken and locked, so that swap may lie on the device")
            .read(|f| f.page_file.into()),
        field("without_io_uring", "Without io_uring", Text, "why the device runs on threads, which is slower")
            .brief().read(|f| f.without_io_uring.into()),
    ]),
    ("Emulated card", &[
        field("celsius", "Temperature", Celsius, "inside an emulated card")
            .modelled().read(|f| f.celsius.into()).kept(Max).line("Temperature", "inside", 1),
        field("peak_celsius", "Peak temperature", Celsius, "the warmest inside an emulated card since the attach")
            .modelled().read(|f| f.peak_celsius.into()),
        field("watts", "Power", Watts, "what an emulated card takes").modelled().read(|f| f.watts.into()).kept(Mean).line("Power", "used", 0),
        field("power_limit_watts", "Power limit", Watts, "above it an emulated card holds writes back")
            .modelled().read(|f| f.power_limit_watts.into()).kept(Last).limit("Power", "slot budget", 6),
        set("power_override", "Power override", Flag, "an emulated card's slot may give any power: nothing is held back for it")
            .read(|f| f.power_override.into()),
        field("reserve_percent", "Reserve", Percent, "spare blocks of an emulated card, of those when it was new")
            .modelled().read(|f| f.reserve_percent.into()).kept(Last).line("Free blocks and reserve", "reserve", 4),
        field("rated_written_bytes", "Rated writes", Bytes, "what an emulated card's flash may be written in its life, as its data sheet rates its blocks")
            .modelled().read(|f| f.rated_written_bytes.into()),
        field("rated_left_percent", "Rated writes left", Percent, "of an emulated card's rated writes")
            .modelled().read(|f| f.rated_left_percent().into()),
        field("write_reduced", "Writes reduced", Flag, "an emulated card's reserve is used up, and it holds writes back")
            .modelled().read(|f| f.write_reduced.into()).kept(Max),
        field("worn_out", "Worn out", Flag, "an emulated card takes no more writes").modelled().read(|f| f.worn_out.into()).kept(Max),
        field("hold_ns_per_byte", "Writes held back", NanosecondsPerByte, "by how much an emulated card holds writes back, for heat, power or the end of its life")
            .modelled().read(|f| f.hold_ns_per_byte.into()),
        field("pacing", "Pacing", Text, "whether an emulated device answers when the card would have")
            .brief().read(|f| f.pacing.map(|pacing| pacing.keeping.to_string()).into()),
        field("pacing_p50_us", "Pacing error, median", Microseconds, "by how much answers are later than the card's")
            .read(|f| f.pacing.map(|pacing| pacing.p50_us).into()),
        field("pacing_p99_us", "Pacing error, p99", Microseconds, "all but one in a hundred are less late")
            .read(|f| f.pacing.map(|pacing| pacing.p99_us).into()),
        field("pacing_max_us", "Pacing error, most", Microseconds, "the latest answer").read(|f| f.pacing.map(|pacing| pacing.max_us).into()),
        field("pacing_p99_percent", "Pacing error, share", Percent, "99th percentile of the error over the request's time")
            .read(|f| f.pacing.map(|pacing| pacing.p99_percent).into()),
        field("pacing_late_percent", "Late answers", Percent, "more than 20 us late, since the attach")
            .read(|f| f.pacing.map(|pacing| pacing.late_percent).into()),
        field("pacing_late_minute_percent", "Late in a minute", Percent, "more than 20 us late, in the last minute")
            .read(|f| f.pacing.map(|pacing| pacing.late_minute_percent).into()),
    ]),
    ("Files and redundancy", &[
        set("format_version", "Format version", Count, "version of the layout on media"),
        set("paths", "Backing files", List, "one a die"),
        set("files", "Files", Count, "backing files, each of them a die").brief(),
        set("parity_files", "Parity", Count, "files of every stripe that hold parity: as many may be lost").brief().unless("parity_chips"),
        set("parity_chips", "Flashback", Text, "chips of data and of parity in each stripe of an emulated card: as many as the second number may be lost")
            .brief(),
        set("file_number", "File number", Count, "which of them was looked at; of an attached device the first"),
        set("dies", "Dies", Count, "its files, or those of the card that it emulates").read(|f| f.dies.into()),
        field("given_up_chips", "Chips given up", List, "chips, by number, that an emulated card with adaptive Flashback lost and goes on without")
            .words(|s| s.given_up_chips.clone().into()),
        field("lost_dies", "Lost dies", List, "dies, by number, that are out of service").words(|s| s.lost_dies.clone().into()),
        field("set_aside", "Not used", List, "files that were there at the attach and are not used, and why").words(|s| s.set_aside.clone().into()),
        field("vanished", "Vanished", List, "files in use that were deleted, moved or replaced since the attach")
            .words(|s| s.vanished.iter().map(|path| path.to_string_lossy()).collect()),
        field("rebuilding_die", "Rebuilding die", Count, "the file, by number, that is being rebuilt")
            .read(|f| f.rebuilding.map(|(die, _)| die).into()),
        field("rebuild_percent", "Rebuilt", Percent, "of the file that is being rebuilt, or of what stood on the chip that a card gave up")
            .brief().read(|f| f.rebuilding.map(|(_, percent)| percent).or_else(|| f.chips.and_then(|chips| chips.rebuilt_percent)).into()),
        set("objects_address", "Object store", Text, "where the objects of a device on objects lie").brief(),
        set("objects_endpoint", "Endpoint", Text, "of its object store, where it is not the one that the address implies"),
        field("objects_lease_s", "Lease", Seconds, "for how long it is this host's after each time that it wrote to the object store; 0 without a lease").read(|f| f.objects.map(|objects| objects.lease_ms as f64 / 1000.0).into()),
        field("objects_lapsed", "Lease over", Flag, "nothing is answered until the object store takes a new lease").read(|f| f.objects.map(|objects| objects.lapsed).into()),
        field("objects_durable", "Durable here", Count, "everything in the log below this number is durable in the journal").read(|f| f.objects.map(|objects| objects.durable).into()),
        field("objects_remote", "Durable there", Count, "everything in the log below this number is in the object store").read(|f| f.objects.map(|objects| objects.remote).into()),
        field("objects_local_bytes", "In the journal", Bytes, "of erase blocks that the journal holds").read(|f| f.objects.map(|objects| objects.local_bytes).into()),
        field("objects_owner", "Owner", Count, "owner epoch of this attach: who claims the device next has a higher one").read(|f| f.objects.map(|objects| u64::from(objects.owner)).into()),
        field("objects_commits", "Anchors written", Count, "in the object store since the attach").read(|f| f.objects.map(|objects| objects.commits).into()),
        field("objects_stored_bytes", "In the object store", Bytes, "of objects there; those that wait for their deletion are not counted").read(|f| f.objects.map(|objects| objects.stored_bytes).into()),
        field("objects_puts", "PUT requests", Count, "objects and anchors that were written to the object store, since the attach").read(|f| f.objects.map(|objects| objects.uploads + objects.commits).into()).counter("objects_puts_total"),
        field("objects_gets", "GET requests", Count, "for parts of objects, since the attach").read(|f| f.objects.map(|objects| objects.gets).into()).counter("objects_gets_total"),
        field("objects_collected", "Collected by price", Count, "erase blocks whose garbage had cost as much as their collection, since the attach").read(|f| f.objects.map(|objects| objects.collected).into()).counter("objects_collected_total"),
        field("objects_collected_bytes", "Moved for price", Bytes, "that were live in those erase blocks").read(|f| f.objects.map(|objects| objects.collected_bytes).into()),
        field("objects_held", "Writes wait", Flag, "for the object store, which is too far behind").read(|f| f.objects.map(|objects| objects.holding).into()),
        field("scrub_percent", "Scrubbed", Percent, "of the scrub that is under way").brief().read(|f| f.scrub_percent.into()),
        field("scrubbed_sectors", "Scrubbed sectors", Count, "read and checked by scrubs, since the attach").read(|f| f.scrubbed_sectors.into()),
        field("scrub_errors", "Scrub errors", Count, "sectors and stripes that scrubs found wrong, since the attach")
            .read(|f| f.scrub_errors.into()).counter("scrub_errors_total"),
        field("scrubs", "Scrubs", Count, "that came to their end, since the attach").read(|f| f.scrubs.into()),
        field("optimise_percent", "Optimised", Percent, "of the device, while it is brought into order")
            .brief().read(|f| f.optimise_percent.into()),
        field("optimised_sectors", "Optimised sectors", Count, "written once more by address to bring the device into order, since the attach")
            .read(|f| f.optimised_sectors.into()),
        field("optimises", "Optimise runs", Count, "that came to their end, since the attach").read(|f| f.optimises.into()),
        field("healed_sectors", "Healed sectors", Count, "failed their check and were rebuilt, since the attach")
            .read(|f| f.healed_sectors.into()).counter("healed_sectors_total"),
        field("degraded_reads", "Degraded reads", Count, "sectors read without their die, since the attach").read(|f| f.degraded_reads.into()),
        field("read_retries", "Read retries", Count, "pages of an emulated card that were read again because their data are old, since the attach")
            .read(|f| f.read_retries.into()),
        field("unreadable", "Unreadable sectors", List, "asked for or scrubbed, and cannot be read; the first thousand")
            .words(|s| s.unreadable.clone().into()),
    ]),
    ("Format", &[
        set("formatted", "Formatted", Time, "when the format was made; seconds since 1970 in JSON"),
        field("attaches", "Attaches", Count, "since the format"),
        field("unsafe_shutdowns", "Unsafe shutdowns", Count, "attaches that found it not detached, since the format"),
        field("clean", "Clean", Flag, "detached cleanly; while it is attached: no"),
    ]),
    ("Capacity", &[
        set("bytes", "Capacity", Bytes, "what the host sees").brief(),
        set("sector_bytes", "Sector size", Bytes, "smallest unit of a request").brief(),
        set("sectors", "Sectors", Count, "sectors that the host sees").read(|f| f.sectors.into()),
        set("advertised_bytes", "Advertised capacity", Bytes, "capacity of the stock format"),
        set("raw_bytes", "Raw capacity", Bytes, "media in all, the reserve included"),
        set("over_provisioning_percent", "Over-provisioning", Percent, "raw capacity beyond the host's, parity and reserve left out, per cent of the host's")
            .read(|f| f.over_provisioning_percent.into()),
        set("max_request_bytes", "Largest request", Bytes, "a write up to it is never torn"),
        field("mapped_bytes", "Data held", Bytes, "sectors that hold data, in bytes")
            .brief().read(|f| f.mapped_sectors.saturating_mul(f.sector_bytes.into()).into()).kept(Last).line("Data held", "mapped", 2),
        field("snapshots", "Snapshots", Count, "snapshots of the device").read(|f| f.snapshots.into()).kept(Last),
        field("snapshot_bytes", "Held by snapshots", Bytes, "what snapshots hold and the device itself does not any more")
            .read(|f| f.bytes(f.kept_sectors - f.cloned_sectors).into()).kept(Last).line("Data held", "held by snapshots only", 3),
        field("clones", "Clones", Count, "clones of the device's snapshots").read(|f| f.clones.into()).kept(Last),
        field("clone_bytes", "Held by clones", Bytes, "what clones wrote, and nobody else holds").read(|f| f.bytes(f.cloned_sectors).into()).kept(Last),
        field("room_bytes", "Room for data", Bytes, "what may hold data at once, of a sparse address space or beside snapshots")
            .read(|f| f.room_sectors.map(|room| f.bytes(room)).into()),
        field("room_used_percent", "Room used", Percent, "of the room for data, by data and snapshots: at 100 writes are refused")
            .read(|f| f.room_sectors.map(|room| 100.0 * (f.mapped_sectors + f.kept_sectors) as f64 / room.max(1) as f64).into()).kept(Last),
        field("mapped_sectors", "Sectors mapped", Count, "sectors that hold data").read(|f| f.mapped_sectors.into()),
        field("allocated_bytes", "Space on the store", Bytes, "what the backing store uses now")
            .read(|f| f.allocated_bytes.into()).kept(Last).line("Store", "taken by the device", 0),
        field("store_free_bytes", "Free on the store", Bytes, "left on the file system under the device, the least of its files; not known for block devices")
            .read(|f| f.store_free_bytes.into()).kept(Last).line("Store", "free on the file system", 2),
        field("store_full", "Store full", Flag, "the store gave no space when it was asked last").read(|f| f.store_full.into()).kept(Max),
        set("zones", "Zones", Count, "zones of a device that is written zone by zone").brief(),
        set("zone_bytes", "Zone size", Bytes, "from the first byte of a zone to that of the next"),
        set("zone_capacity_bytes", "Zone capacity", Bytes, "how much of a zone can be written"),
        set("most_active_zones", "Active zones at most", Count, "open, or closed and written in part"),
        field("zones_open", "Zones open", Count, "zones that are open").read(|f| f.zones.map(|(zones, _)| zones.open).into()).kept(Last),
        field("zones_closed", "Zones closed", Count, "zones that are written in part and not open").read(|f| f.zones.map(|(zones, _)| zones.closed).into()).kept(Last),
        field("zones_full", "Zones full", Count, "zones that take no more").read(|f| f.zones.map(|(zones, _)| zones.full).into()).kept(Last),
        field("zone_resets", "Zone resets", Count, "since the attach").read(|f| f.zones.map(|(_, resets)| resets).into()).counter("zone_resets_total"),
        set("lebs", "Erase blocks", Count, "logical erase blocks in all").read(|f| f.lebs.into()),
        set("leb_bytes", "Erase block size", Bytes, "one logical erase block").read(|f| f.leb_bytes.into()),
        field("free_lebs", "Erase blocks free", Count, "logical erase blocks that hold nothing").read(|f| f.free_lebs.into()),
    ]),
    ("Read and written", &[
        field("host_read_bytes", "Read by hosts", Bytes, "since the format")
            .brief().read(|f| f.bytes(f.layer.host_read_sectors).into()).counter("host_read_bytes_total"),
        field("host_written_bytes", "Written by hosts", Bytes, "since the format")
            .brief().read(|f| f.bytes(f.layer.host_written_sectors).into()).counter("host_written_bytes_total"),
        field("media_written_bytes", "Written to media", Bytes, "since the format, everything included")
            .brief().read(|f| f.layer.programmed_bytes.into()).counter("media_written_bytes_total"),
        field("write_amplification", "Write amplification", Ratio, "everything appended for each byte written by hosts")
            .brief().read(|f| f.layer.write_amplification().into()),
        field("pieces_per_mib", "Pieces a MiB", Ratio, "in so many pieces a MiB of data lies on media, from a sample: at best 4; `vsl optimise` brings it there")
            .brief().read(|f| f.pieces_per_mib.into()).kept(Last),
        field("read_ahead_bytes", "Read ahead", Bytes, "for clients that read in order, since the attach")
            .read(|f| f.bytes(f.read_ahead_sectors).into()).counter("read_ahead_bytes_total"),
        field("read_ahead_used_bytes", "Read ahead and used", Bytes, "of those what clients then read, since the attach")
            .read(|f| f.bytes(f.read_ahead_used_sectors).into()).counter("read_ahead_used_bytes_total"),
        field("host_trimmed_bytes", "Trimmed by hosts", Bytes, "since the format")
            .read(|f| f.bytes(f.layer.host_trimmed_sectors).into()).counter("host_trimmed_bytes_total"),
        field("groomed_bytes", "Moved by the groomer", Bytes, "since the format")
            .read(|f| f.bytes(f.layer.groomed_sectors).into()).counter("groomed_bytes_total"),
        field("padding_bytes", "Padding", Bytes, "left empty so that flushes could be programmed, since the format")
            .read(|f| f.bytes(f.layer.padding_slots).into()).counter("padding_bytes_total"),
        field("metadata_bytes", "Metadata", Bytes, "headers, trim records and checkpoints, since the format")
            .read(|f| f.bytes(f.layer.metadata_slots).into()).counter("metadata_bytes_total"),
        field("erased_lebs", "Erases", Count, "logical erase blocks erased or given up for reuse")
            .read(|f| f.layer.erased_lebs.into()).counter("erased_blocks_total"),
    ]),
    ("Cache", &[
        field("cache_hit_bytes", "Read from the cache", Bytes, "of a cached volume, since it was opened")
            .read(|f| f.cache.map(|cache| f.bytes(cache.hit)).into()).counter("cache_hit_bytes_total"),
        field("cache_missed_bytes", "Read from behind", Bytes, "of a cached volume, since it was opened")
            .read(|f| f.cache.map(|cache| f.bytes(cache.missed)).into()).counter("cache_missed_bytes_total"),
        field("cache_written_back_bytes", "Written back", Bytes, "from the cache to the store behind it, since the volume was opened")
            .read(|f| f.cache.map(|cache| f.bytes(cache.written_back)).into()).counter("cache_written_back_bytes_total"),
        field("cache_dirty_bytes", "Dirty", Bytes, "in the cache of a volume, and not behind yet")
            .read(|f| f.cache.map(|cache| f.bytes(cache.dirty)).into()).kept(Last).line("Data held", "dirty in the cache", 6),
    ]),
    ("Groomer and errors", &[
        set("groomer", "Groomer", Text, "its policy").read(|f| f.groomer.into()),
        field("grooming", "Grooming", Flag, "free space is short: the groomer works and writes are paced").read(|f| f.grooming.into()).kept(Mean),
        field("read_errors", "Read errors", Count, "reads that failed, since the format")
            .read(|f| f.layer.read_errors.into()).kept(Last).counter("read_errors_total"),
        field("damaged_sectors", "Damaged sectors", Count, "found unreadable by the groomer, since the format")
            .read(|f| f.layer.damaged_sectors.into()).kept(Last),
    ]),
    ("Requests", &[
        field("reads", "Reads", Count, "requests answered since the attach").read(|f| f.requests.reads.into()).counter("reads_total"),
        field("writes", "Writes", Count, "requests answered since the attach").read(|f| f.requests.writes.into()).counter("writes_total"),
        field("flushes", "Flushes", Count, "requests answered since the attach").read(|f| f.requests.flushes.into()).counter("flushes_total"),
        field("trims", "Trims", Count, "trims and zeroings answered since the attach").read(|f| f.requests.trims.into()).counter("trims_total"),
        field("batches", "Batches", Count, "batches of writes and trims answered since the attach").read(|f| f.requests.batches.into()),
    ]),
    ("Memory", &[
        field("map_memory_bytes", "Memory of the map", Bytes, "memory of the forward map")
            .read(|f| f.map_memory_bytes.into()).kept(Last).line("Memory", "forward map", 1),
        field("worst_memory_bytes", "Page-file memory", Bytes, "memory that page-file support locks: what the layer takes at most")
            .read(|f| f.worst_memory_bytes.into()),
        field("map_memory_per_sector", "Map per sector", Ratio, "bytes of map memory for each sector mapped")
            .read(|f| f.map_memory_per_sector().into()),
        field("memory_bytes", "Memory", Bytes, "memory of the whole layer, and of what clients have under way")
            .brief().read(|f| f.memory_bytes.into()).kept(Last).line("Memory", "the layer", 0),
    ]),
    ("Settings", &[
        set("config", "Settings", List, "what `vsl config` sets"),
    ]),
    ("The service", &[
        service("cpu_percent", "Processor time", Percent, Mean, "of the whole service, devices included; 100 is one processor")
            .line("The service's processor", "whole service", 7),
        service("memory_bytes", "Memory", Bytes, Last, "of the whole service, devices included: what is resident")
            .line("The service's memory", "whole service", 7),
        service("streams", "Streams", Count, Last, "connected readers of the live stream"),
        service("requests", "API requests", PerSecond, Mean, "requests to the API"),
        service("refused", "Refused", PerSecond, Mean, "requests to the API that would have changed something, of nobody who has signed in"),
    ]),
];
