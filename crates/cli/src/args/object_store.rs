//! Arguments of a virtual device on objects.

use card::{Format, ObjectsConfig, Store};
use clap::{Args, ValueEnum};
use daemon::Failure;
use lab::workload::Time;
use media::object::{Limits, Prices};

/// A device on objects in the place of one from a data sheet.
#[derive(Debug, Args)]
#[command(next_help_heading = "Device on objects")]
pub struct ObjectStore {
    /// Simulate a device on objects, whose store has these prices: s3-standard, or put=USD,get=USD,month=USD,egress=USD (of 1,000 PUTs, of
    /// 1,000 GETs, of a GiB kept for a month, of a GiB read). --format says how large it is, such as 64GiB. See docs/scale.md.
    #[arg(long, value_name = "PRICES", conflicts_with_all = ["device", "cache", "snapshot_every", "kill_chip", "array", "scale"])]
    pub objects: Option<Prices>,
    /// What the groomer collects by: price, or need alone.
    #[arg(long, value_name = "HOW", requires = "objects", value_enum, default_value_t = Collect::Price)]
    pub collect: Collect,
    /// Spare space on top of the size, per cent.
    #[arg(long, value_name = "PERCENT", requires = "objects", default_value_t = 28.0)]
    pub over_provisioning: f64,
    /// The least time between two anchors.
    #[arg(long, value_name = "TIME", requires = "objects", default_value = "1s")]
    pub commit: Time,
    /// Let the journal hold about so much of what is in the store already; 0 for everything.
    #[arg(long, value_name = "SIZE", requires = "objects", value_parser = super::values::size, default_value = "0")]
    pub max_local: u64,
    /// What each request to the store takes beside its bytes.
    #[arg(long, value_name = "TIME", requires = "objects", default_value = "100ms")]
    pub store_latency: Time,
    /// Bytes that one request to the store gets through in a second.
    #[arg(long, value_name = "SIZE", requires = "objects", value_parser = super::values::size, default_value = "80MiB")]
    pub store_rate: u64,
}

/// What the groomer collects by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Collect {
    /// A LEB is collected when its garbage has cost as much as its collection does, or when space is short.
    Price,
    /// When space is short.
    Need,
}

impl ObjectStore {
    /// The device that is asked for.
    ///
    /// # Errors
    /// Nobody says how large it is, or what is said makes no sense.
    pub fn config(&self, prices: Prices, machine: &super::sim::Machine, seed: u64) -> Result<ObjectsConfig, Failure> {
        let Format::Bytes(bytes) = machine.format else {
            return Err(Failure::invalid("--format: nothing says how large the device on objects is")
                .help("give a size, such as --format 64GiB"));
        };
        let commit_ms = self.commit.nanos() / 1_000_000;
        let limits = [
            ("--commit", (1..=86_400_000).contains(&commit_ms), "a millisecond to a day"),
            ("--store-latency", self.store_latency.nanos() <= 60_000_000_000, "at most a minute"),
            ("--store-rate", self.store_rate >= 1 << 10, "1 KiB or more"),
            ("--over-provisioning", (0.0..=10_000.0).contains(&self.over_provisioning), "0 to 10000 per cent"),
        ];
        if let Some((name, _, expected)) = limits.iter().find(|(_, sound, _)| !sound) {
            return Err(Failure::invalid(format!("{name}: expected {expected}")));
        }
        Ok(ObjectsConfig {
            bytes,
            spare_percent: self.over_provisioning,
            prices,
            by_price: self.collect == Collect::Price,
            limits: Limits { commit_ms, local_bytes: self.max_local, ..Limits::default() },
            store: Store { latency: self.store_latency.nanos(), bytes_per_s: self.store_rate },
            policy: machine.groomer.unwrap_or_default(),
            grooms_ahead: machine.idle_grooming == super::Switch::On,
            seed,
        })
    }
}
