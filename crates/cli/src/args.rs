//! The command line: the one definition that help, completions and man pages come from.

pub mod array;
pub mod backup;
pub mod cache;
pub mod clone;
pub mod drill;
pub mod flash_cache;
pub mod kv;
pub mod lab;
pub mod manage;
pub mod migrate;
mod object_store;
pub mod published;
#[cfg(test)]
mod recommended;
pub mod sim;
pub mod snapshot;
pub mod trace;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use device::Capacity;
use serde::{Deserialize, Serialize};

/// A log-structured flash card in software.
///
/// `vsl` makes devices in files or on block devices, and attaches them to a service that serves them
/// over NBD. A DEVICE is the name of an attached device, or the path of its file.
#[derive(Debug, Parser)]
#[command(name = "vsl", version, max_term_width = 100)]
pub struct Cli {
    /// Print results as JSON on standard output, and errors as JSON on standard error.
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the service.
    Up(Up),
    /// Stop the service, after detaching every device.
    Down(Force),
    /// Make a new device.
    Create(Create),
    /// Low-level format of a detached device: everything on it is lost.
    Format(Format),
    /// Attach devices: the service serves them over NBD.
    Attach(Attach),
    /// Detach devices, once their outstanding requests are done.
    Detach(Detach),
    /// Make an attached device a block device of this machine's kernel, and print its path.
    Connect(Connect),
    /// Undo `vsl connect`.
    Disconnect(Disconnect),
    /// Show the state of devices.
    Status(Status),
    /// Look for devices in files and on disks, attached or not.
    Scan(Scan),
    /// Show what an object store holds of a device, and objects there that nothing names.
    Objects(Objects),
    /// Show or change the settings of an attached device.
    Config(Config),
    /// Erase a detached device, for good; an empty one with its settings is left.
    SureErase(SureErase),
    /// Read and check everything on an attached device, at an idle pace.
    Scrub(Scrub),
    /// Write what lies scattered on an attached device once more by address, so that it is read in order faster.
    Optimise(Optimise),
    /// Rebuild a lost file of an attached device with parity.
    Rebuild(Rebuild),
    /// Give an attached device another size while it is used.
    Resize(Resize),
    /// Put a fault on an attached device that is marked for drills, or undo it.
    Drill(drill::Drill),
    /// Make, read, compare and roll back to snapshots of an attached device.
    Snapshot(snapshot::Snapshot),
    /// Make, list, delete and promote clones: writable devices that begin as a snapshot.
    Clone(clone::Clone),
    /// Join attached devices to one: RAID 0, RAID 1, concatenation.
    Array(array::Array),
    /// Put an attached device in front of slower storage, as its cache.
    Cache(cache::Cache),
    /// Move an attached device to another file or disk while it is used.
    Migrate(migrate::Migrate),
    /// Look into a key-value store that a program keeps on a device.
    Kv(kv::Kv),
    /// Back up a device to a file or a pipe: compressed, sealed, and encrypted where the device is.
    Backup(backup::Backup),
    /// Restore a backup to a device.
    Restore(backup::Restore),
    /// Show what happened to an attached device.
    Events(Events),
    /// Change what opens an encrypted device.
    #[command(subcommand)]
    Key(Key),
    /// Light, darken or show the beacon of an attached device.
    Beacon(Beacon),
    /// Turn trim on or off for an attached device.
    Trim(Trim),
    /// Show what devices do, second by second.
    Top(manage::Top),
    /// Show alerts, acknowledge them, and change what raises them and who is told.
    Alerts(manage::Alerts),
    /// Show who changed what.
    Audit(manage::Audit),
    /// What was measured: list it, and print it for other programs.
    #[command(subcommand)]
    History(manage::History),
    /// Print the address of the web console, which signs in by itself.
    Console,
    /// Accounts of the web console and the API.
    #[command(subcommand)]
    Account(manage::Account),
    /// Other hosts' services under this one's console.
    Hosts(manage::Hosts),
    /// Check what this machine lets the service do, and say what to do about it.
    #[command(after_long_help = "\
Looks at the kernel, io_uring, limits, directories, disks, ports and the clock, for the user who runs
it, and changes nothing. It ends with 1 where something does not work.

Examples:
  vsl doctor
  vsl doctor --json
  sudo -u openvsl vsl doctor")]
    Doctor,
    /// Gather what a report of a bug needs, without anything secret.
    Bugreport(manage::BugReport),
    /// List the data sheets that `create --profile` takes.
    Profiles,
    /// Run a workload on a device in virtual time, and print what it comes to.
    Sim(Box<sim::Sim>),
    /// Run models of real devices like published measurements of them, and print both.
    Published(published::Published),
    /// Block traces: what somebody's disk was asked.
    #[command(subcommand)]
    Trace(Box<trace::Trace>),
    /// Run test protocols on devices, and see what comes of them.
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Serve one device over NBD in the foreground, without the service.
    Serve(Serve),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the man page, or write the man pages of all commands into a directory.
    Man {
        /// Where to write them.
        #[arg(value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
}

/// `vsl up`.
#[derive(Debug, Args)]
pub struct Up {
    /// Stay in the foreground and log to standard error.
    #[arg(long)]
    pub foreground: bool,
    /// Serve NBD on this TCP address too, such as 127.0.0.1:10809. May be given more than once.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub nbd_listen: Vec<SocketAddr>,
    #[command(flatten)]
    pub nbd: Nbd,
    /// Serve NVMe over TCP on this address too, such as 127.0.0.1:4420. May be given more than once.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub nvme_listen: Vec<SocketAddr>,
    #[command(flatten)]
    pub nvme: Nvme,
    /// Give each device a vhost-user socket too, on which it is the disk of a virtual machine: DEVICE.vhost, beside the NBD
    /// socket.
    #[arg(long)]
    pub vhost: bool,
    /// Serve the console and the API on this TCP address too, such as 127.0.0.1:7420. May be given more than once. What
    /// is not loopback needs --tls-certificates, and an account.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<SocketAddr>,
    /// A name under which the console is asked for, besides its addresses. May be given more than once.
    #[arg(long, value_name = "NAME")]
    pub host_name: Vec<String>,
    /// What to log: error, warn, info, debug or trace, for all or by part (RUST_LOG's words).
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Leave the terminal's session: what `vsl up` gives to the service it starts.
    #[arg(long, hide = true, requires = "foreground")]
    pub new_session: bool,
}

/// How the NBD server treats its clients.
#[derive(Debug, Args)]
pub struct Nbd {
    /// Whether NBD clients may or must use TLS.
    #[arg(long, value_enum, default_value_t = TlsMode::Off)]
    pub tls: TlsMode,
    /// Directory with server-cert.pem and server-key.pem. With ca-cert.pem in it too, clients must show
    /// a certificate that it signed.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub tls_certificates: Option<PathBuf>,
    /// Let strangers in: serve NBD beyond loopback without client certificates. Whoever reaches the address may
    /// then read and write every device.
    #[arg(long)]
    pub nbd_open: bool,
    /// Memory that all clients may share for answers that they have not read, beyond 1.25 MiB of its own for each. Reads
    /// above 1 MiB have as much again; where that is not enough they fail with ENOMEM. 256 MiB by default.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub client_memory: Option<u64>,
}

/// How the NVMe server treats hosts.
#[derive(Debug, Args)]
pub struct Nvme {
    /// File with a line for each NVMe host that may connect: its NQN, and behind it the secrets that it and we prove ourselves
    /// with, as `nvme gen-dhchap-key` prints them. Without it every host may connect.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub nvme_hosts: Option<PathBuf>,
    /// Let strangers in: serve NVMe beyond loopback to hosts that have no secret. Whoever reaches the address may then read and
    /// write every device.
    #[arg(long)]
    pub nvme_open: bool,
}

/// See [`Tls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsMode {
    /// Not offered.
    Off,
    /// Offered; clients may do without.
    On,
    /// Clients without it are refused.
    Require,
}

/// `--force`.
#[derive(Debug, Args)]
pub struct Force {
    /// Close the connections of clients, once what they asked for is done, instead of refusing.
    #[arg(long)]
    pub force: bool,
}

/// What opens an encrypted device.
#[derive(Debug, Default, Args)]
pub struct Opener {
    /// File whose one line is the passphrase. Without it, and without --key-file, a passphrase is asked for on the terminal.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "key_file")]
    pub passphrase_file: Option<PathBuf>,
    /// File of 32 random bytes or more that is the key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
}

/// What is to open an encrypted device besides, or instead.
#[derive(Debug, Args)]
pub struct NewOpener {
    /// File whose one line is the new passphrase. Without it, and without --new-key-file, it is asked for on the terminal.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "new_key_file")]
    pub new_passphrase_file: Option<PathBuf>,
    /// File of 32 random bytes or more that is the new key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub new_key_file: Option<PathBuf>,
}

/// `vsl key`.
#[derive(Debug, Subcommand)]
pub enum Key {
    /// Add a passphrase or key file that opens a device. There may be four in all.
    Add {
        /// An attached device, or the file of a detached one.
        #[arg(value_hint = ValueHint::FilePath)]
        device: String,
        #[command(flatten)]
        opener: Opener,
        #[command(flatten)]
        new: NewOpener,
    },
    /// Remove one; the last one stays.
    Remove {
        /// An attached device, or the file of a detached one.
        #[arg(value_hint = ValueHint::FilePath)]
        device: String,
        #[command(flatten)]
        opener: Opener,
        /// Which; `vsl status` lists them [default: the one that opens it now].
        #[arg(long, value_name = "N")]
        slot: Option<usize>,
    },
    /// Put another passphrase or key file in the place of one.
    Change {
        /// An attached device, or the file of a detached one.
        #[arg(value_hint = ValueHint::FilePath)]
        device: String,
        #[command(flatten)]
        opener: Opener,
        #[command(flatten)]
        new: NewOpener,
    },
}

/// `vsl create`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how large").required(true).args(["size", "profile", "emulate"]))]
#[command(after_long_help = "\
Sizes are numbers with a unit: KiB, MiB, GiB, TiB (1024), kB, MB, GB, TB (1000), or plain bytes; K, M, G \
and T count in 1024. The file is sparse: it takes space only for what is written.

A profile with several modules makes one device for each, as the card did: `vsl create DIR/fct --profile \
iodrive-duo-640-mlc` makes DIR/fct0.vsl and DIR/fct1.vsl; a directory as PATH makes fct0.vsl, fct1.vsl in it. \
With --module only that module is made, in a file called exactly PATH.

An emulated device has the size of the card's module, divided by --scale, and keeps its bytes in the page cache and \
the sparse file. Put the file into /dev/shm to keep them in memory.

With --objects the file is the journal of a device whose erase blocks lie in an object store: flushes wait for the file only, \
and the store follows. Credentials come from the environment, as the store's own tools take them.

On several files, best on a disk each, data is striped with rotating parity: with --parity 1 any of the files may fail or be \
lost without losing anything, with --parity 2 any two. The size is that of the data; parity comes on top.

Examples:
  vsl create scratch.vsl --size 64GiB
  vsl create /a/d0.vsl /b/d1.vsl /c/d2.vsl /d/d3.vsl --size 1TB --parity 1
  vsl create db.vsl --size 100GB --over-provisioning 40 --sector 512 --label db
  vsl create ./cards/fct --profile iodrive-duo-640-mlc --capacity improved-write
  vsl create safe.vsl --size 64GiB --encrypt --passphrase-file pass
  vsl create journal.vsl --size 10TiB --objects s3://bucket/prefix
  vsl create slow.vsl --emulate iodrive-320-mlc --scale 32
  vsl create try.vsl --size 1GiB --drills")]
pub struct Create {
    /// The new device file; several for a device that lies on all of them.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub paths: Vec<PathBuf>,
    /// How many of several files hold parity, so that as many may fail: 0, 1 or 2 [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=2), conflicts_with_all = ["profile", "emulate"])]
    pub parity: Option<u32>,
    /// Advertised capacity.
    #[arg(long, value_parser = values::size)]
    pub size: Option<u64>,
    /// Raw capacity beyond the advertised, in per cent of it [default: 28, and 64 MiB at least].
    #[arg(long, value_name = "PCT", allow_negative_numbers = true, value_parser = values::percent, conflicts_with_all = ["raw", "profile", "emulate"])]
    pub over_provisioning: Option<f64>,
    /// Raw capacity.
    #[arg(long, value_name = "SIZE", visible_alias = "raw-size", value_parser = values::size, conflicts_with_all = ["profile", "emulate"])]
    pub raw: Option<u64>,
    /// Make it as this data sheet says; see `vsl profiles`.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Make it behave as the flash card of this data sheet did: it answers when the card would have.
    #[arg(long, value_name = "NAME")]
    pub emulate: Option<String>,
    /// Emulate a card that is about so many times smaller, and as fast.
    #[arg(long, value_name = "N", requires = "emulate", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub scale: u32,
    /// Seed of what varies in an emulated card, such as the times of its flash and which blocks wear out first.
    #[arg(long, value_name = "N", requires = "emulate", default_value_t = 1)]
    pub seed: u64,
    /// Make only this module of the profile; the first is 0.
    #[arg(long, value_name = "N", conflicts_with = "size")]
    pub module: Option<u32>,
    /// Bytes in a sector: 512, 1024, 2048 or 4096.
    #[arg(long, value_name = "BYTES", visible_alias = "sector-size", value_parser = values::sector, default_value = "4096")]
    pub sector: u32,
    /// Host capacity: advertised, maximum (110 %), high-performance (80 %), improved-write (70 %),
    /// maximum-write (50 %), a percentage of the advertised such as 90%, or a size.
    #[arg(long, value_parser = values::capacity, default_value = "advertised")]
    pub capacity: Capacity,
    /// Bytes that the host can address, above the raw capacity: such as 1PiB. How much of it may hold data follows from the raw capacity.
    #[arg(long, value_name = "SIZE", value_parser = values::address_space, conflicts_with_all = ["capacity", "emulate"])]
    pub address_space: Option<Capacity>,
    /// Zones of this size, which are written in order and reset as a whole: such as 64MiB. Hosts see them over NVMe.
    #[arg(long, value_name = "SIZE", value_parser = values::zones, conflicts_with_all = ["capacity", "emulate", "address_space"])]
    pub zones: Option<Capacity>,
    /// A name for people [default: the file's name].
    #[arg(long)]
    pub label: Option<String>,
    /// Mark it for drills: faults may be put on it by command, see `vsl drill`.
    #[arg(long)]
    pub drills: bool,
    /// Encrypt what is stored. Whoever is to use it needs the passphrase or key file: without, the data is lost.
    #[arg(long, conflicts_with = "emulate")]
    pub encrypt: bool,
    #[command(flatten)]
    pub opener: Opener,
    /// Put the device into this object store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY.
    #[arg(long, value_name = "ADDRESS", value_parser = values::store, conflicts_with_all = ["profile", "emulate", "parity", "drills"])]
    pub objects: Option<bucket::Address>,
    /// The store's endpoint, where it is not the one that the address implies, such as http://127.0.0.1:9000.
    #[arg(long, value_name = "URL", requires = "objects")]
    pub endpoint: Option<String>,
    /// Hold writes when so much is in the journal and not yet in the store; they slow down from half of it on.
    #[arg(long, value_name = "SIZE", requires = "objects", value_parser = values::size, default_value = "1GiB")]
    pub max_behind: u64,
    /// Hold writes while something has waited for the store for longer than so many seconds; 0 for no such limit.
    #[arg(long, value_name = "SECONDS", requires = "objects", default_value_t = 0)]
    pub max_behind_seconds: u32,
    /// Let the journal hold about so much of what is in the store already, to read it from there; 0 for everything.
    #[arg(long, value_name = "SIZE", requires = "objects", value_parser = values::size, default_value = "0")]
    pub max_local: u64,
    /// Answer clients only while the store was written to in the last so many seconds, from 2 to 3600, so that a host that stands by may
    /// take the device over by itself; 0 for no such lease.
    #[arg(long, value_name = "SECONDS", requires = "objects", default_value_t = 0, value_parser = values::lease)]
    pub lease: u64,
    /// Ask nothing. Making a device destroys nothing and asks nothing anyway; for scripts that always say it.
    #[arg(short, long)]
    pub yes: bool,
}

/// `vsl format`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Says what will be destroyed and asks. Without a terminal it needs --yes.

With --predict it changes nothing: the service runs a workload on a model of an attached device in each capacity. Of a \
device on files or disks the result is its write amplification, since its store decides how fast it is.

Examples:
  vsl format fct0 --predict
  vsl format fct0.vsl --capacity maximum-write
  vsl format fct0.vsl --sector 512 --capacity 80% --yes")]
pub struct Format {
    /// The file of a detached device; several with commas in between. With --predict an attached device.
    #[arg(value_hint = ValueHint::FilePath)]
    pub device: String,
    /// Say what each capacity would do to a workload, and format nothing.
    #[arg(long, conflicts_with_all = ["sector", "label", "encrypt", "plain"])]
    pub predict: bool,
    /// The workload of --predict, by its name in `vsl sim --list`, or `recorded`: what was recorded of the device last.
    #[arg(long, value_name = "NAME", default_value = "recorded", requires = "predict")]
    pub workload: String,
    /// Bytes in a sector: 512, 1024, 2048 or 4096 [default: as it is].
    #[arg(long, value_name = "BYTES", visible_alias = "sector-size", value_parser = values::sector)]
    pub sector: Option<u32>,
    /// Host capacity: advertised, maximum (110 %), high-performance (80 %), improved-write (70 %),
    /// maximum-write (50 %), a percentage of the advertised such as 90%, or a size.
    #[arg(long, visible_alias = "size", value_parser = values::capacity, default_value = "advertised")]
    pub capacity: Capacity,
    /// Bytes that the host can address, above the raw capacity: such as 1PiB. How much of it may hold data follows from the raw capacity.
    #[arg(long, value_name = "SIZE", value_parser = values::address_space, conflicts_with_all = ["capacity", "predict"])]
    pub address_space: Option<Capacity>,
    /// Zones of this size, which are written in order and reset as a whole: such as 64MiB. Hosts see them over NVMe.
    #[arg(long, value_name = "SIZE", value_parser = values::zones, conflicts_with_all = ["capacity", "predict", "address_space"])]
    pub zones: Option<Capacity>,
    /// A name for people [default: as it is].
    #[arg(long)]
    pub label: Option<String>,
    /// Encrypt what is stored, under a new key.
    #[arg(long)]
    pub encrypt: bool,
    /// Store an encrypted device's data as it is from now on.
    #[arg(long, conflicts_with_all = ["encrypt", "passphrase_file", "key_file"])]
    pub plain: bool,
    #[command(flatten)]
    pub opener: Opener,
    /// Do not ask.
    #[arg(short, long)]
    pub yes: bool,
}

/// `vsl attach`.
#[derive(Debug, Args)]
pub struct Attach {
    /// Device files, or memory:SIZE for a throw-away device. Files of one device are attached as one, with those that lie
    /// beside them.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub paths: Vec<String>,
    /// What to call it, in `vsl` and as an NBD export [default: the file's name without its ending].
    #[arg(long)]
    pub name: Option<String>,
    /// Take no writes.
    #[arg(long)]
    pub read_only: bool,
    /// Do not attach it again when the service starts again. One that a passphrase opens is never attached by itself.
    #[arg(long)]
    pub once: bool,
    /// Go on without files that nothing says are lost, also where what is left may have fallen behind them.
    #[arg(long)]
    pub degraded: bool,
    /// Keep in this file how far the device has come, and refuse it if it is older than that. The file is made where there is none;
    /// put it on another disk. Each flush waits for it, too.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub witness: Option<PathBuf>,
    /// Make a copy a device of its own first, with a UUID of its own, so that it can be attached beside its original.
    #[arg(long, conflicts_with_all = ["read_only", "degraded"])]
    pub new_identity: bool,
    /// Take the device from this object store, and make its journal anew, in a new file: one that its owner detached.
    #[arg(long, value_name = "ADDRESS", value_parser = values::store, conflicts_with_all = ["read_only", "degraded", "new_identity", "witness"])]
    pub objects: Option<bucket::Address>,
    /// The store's endpoint, where it is not the one that the address implies.
    #[arg(long, value_name = "URL", requires = "objects")]
    pub endpoint: Option<String>,
    /// Take it also from a host that has it. What only that host's journal has is given up, and the host is fenced for good.
    #[arg(long, requires = "objects")]
    pub take_over: bool,
    /// Do not take it now: stand by, and take it over when the lease of the host that has it was not renewed for its whole time.
    #[arg(long, requires = "objects", conflicts_with_all = ["take_over", "once"])]
    pub stand_by: bool,
    /// Give a device on objects another lease, from 2 to 3600 seconds, or 0 for none; see `vsl create --lease`.
    #[arg(long, value_name = "SECONDS", value_parser = values::lease, conflicts_with = "stand_by")]
    pub lease: Option<u64>,
    #[command(flatten)]
    pub opener: Opener,
}

/// `vsl objects`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
It reads the store and changes nothing. Orphans are objects below the device's prefix that its anchor does not name: uploads of a \
process that died, or files of somebody else. They are listed and never deleted.

Examples:
  vsl objects s3://bucket/prefix
  vsl objects file:///srv/objects/db --json")]
pub struct Objects {
    /// The address that the device was made with.
    #[arg(value_parser = values::store)]
    pub address: bucket::Address,
    /// The store's endpoint, where it is not the one that the address implies.
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
}

/// `vsl detach`.
#[derive(Debug, Args)]
pub struct Detach {
    /// Attached devices.
    #[arg(required = true)]
    pub devices: Vec<String>,
    #[command(flatten)]
    pub force: Force,
}

/// `vsl connect`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without --by it takes what the kernel has: nvme-tcp (a restart of the service then costs no error), nbd, or \
a file in user space with a loop device on it. It needs root.

Examples:
  vsl connect db
  mkfs.ext4 $(vsl connect db)
  vsl disconnect db")]
pub struct Connect {
    /// An attached device.
    pub device: String,
    /// By this means only.
    #[arg(long, value_enum)]
    pub by: Option<Means>,
}

/// `vsl disconnect`.
#[derive(Debug, Args)]
pub struct Disconnect {
    /// A device that `vsl connect` connected.
    pub device: String,
}

/// How a kernel reaches a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// The kernel's NVMe over TCP.
    Nvme,
    /// The kernel's NBD, by nbd-client.
    Nbd,
    /// nbdfuse, and a loop device on its file.
    Fuse,
}

impl std::fmt::Display for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Means::Nvme => "nvme-tcp",
            Means::Nbd => "nbd",
            Means::Fuse => "nbdfuse and loop",
        })
    }
}

/// `vsl scan`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
It reads the beginning of each file and changes nothing. The files of one device are shown together.

Examples:
  vsl scan
  vsl scan /srv/flash /dev")]
pub struct Scan {
    /// Where to look [default: this directory and all block devices].
    #[arg(value_hint = ValueHint::DirPath)]
    pub directories: Vec<PathBuf>,
}

/// `vsl status`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without a DEVICE it shows every device that the service knows, a line each. A path shows a detached device too.

Examples:
  vsl status
  vsl status fct0
  vsl status -a
  vsl status fct0 --field write_amplification
  vsl status --json | jq '.devices[].uri'")]
pub struct Status {
    /// Devices.
    #[arg(value_hint = ValueHint::FilePath)]
    pub devices: Vec<String>,
    /// Show the main figures of every device, as for one that is named.
    #[arg(short, long)]
    pub long: bool,
    /// Show every figure.
    #[arg(short, long)]
    pub all: bool,
    /// Show one field only, bare; --fields lists their names.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["all", "long", "fields"])]
    pub field: Option<String>,
    /// List the names of all fields, their units and meanings.
    #[arg(long, conflicts_with = "all")]
    pub fields: bool,
    /// Show only devices with something wrong; fails when there are any.
    #[arg(short, long)]
    pub errors: bool,
}

/// `vsl config`.
#[derive(Debug, Args)]
pub struct Config {
    /// An attached device.
    pub device: String,
    /// A setting, by name. Without one, all are shown with their values.
    pub setting: Option<String>,
    /// Its new value.
    pub value: Option<String>,
    /// Do not ask before memory is locked for page-file support.
    #[arg(short, long, requires = "value")]
    pub yes: bool,
}

/// `vsl scrub`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every live sector is read and checked, and with parity every stripe: what is wrong is rebuilt and written elsewhere. It goes on \
where it stopped, also after a detach. While clients ask for something it pauses after each stripe.

Examples:
  vsl scrub fct0 --wait
  vsl status fct0 --field scrub_percent")]
pub struct Scrub {
    /// An attached device.
    pub device: String,
    /// End it instead.
    #[arg(long, conflicts_with = "wait")]
    pub stop: bool,
    /// Wait until it is done; fails when something cannot be read.
    #[arg(long)]
    pub wait: bool,
}

/// `vsl optimise`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
What was written at random lies scattered, and reading it in order takes many small reads of the store. This moves it: everything \
that does not lie in order is read and written once, beside what clients do, and not while free space is short. It ends with a \
detach; begun again it passes by what is in order.

Examples:
  vsl optimise fct0 --wait
  vsl optimise fct0 --rate 200
  vsl status fct0 --field pieces_per_mib")]
pub struct Optimise {
    /// An attached device.
    pub device: String,
    /// The most that is moved, MiB/s [default: 50].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    /// End it instead.
    #[arg(long, conflicts_with_all = ["wait", "rate"])]
    pub stop: bool,
    /// Wait until it is done.
    #[arg(long)]
    pub wait: bool,
}

/// `vsl resize`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Clients are served meanwhile. NVMe hosts and virtual machines learn of it at once; NBD cannot say so, a client sees the new size when it \
connects again. A device shrinks only where nothing holds data beyond its new end, nor any snapshot: shrink the file system first.

Raw capacity grows with the host's, files so that over-provisioning stays what it is, block devices to all that they have become. It \
never shrinks, and that of a device with parity stays. Emulated cards keep their size.

Examples:
  vsl resize db 200GiB
  vsl resize db 200GiB --raw 300GiB
  vsl resize db --raw 300GiB")]
pub struct Resize {
    /// An attached device.
    pub device: String,
    /// Host capacity.
    #[arg(value_parser = values::size, required_unless_present = "raw")]
    pub size: Option<u64>,
    /// Raw capacity.
    #[arg(long, value_name = "SIZE", visible_alias = "raw-size", value_parser = values::size)]
    pub raw: Option<u64>,
}

/// `vsl rebuild`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
`vsl status` says which dies, that is files, are out of service. The device goes on serving meanwhile.

Examples:
  vsl rebuild d0 2 --onto /new/d2.vsl --wait
  vsl rebuild d0 2")]
pub struct Rebuild {
    /// An attached device.
    pub device: String,
    /// Which die, from 0 in the order of `vsl status --field paths`.
    pub die: u32,
    /// What takes its place: a new file, or a blank block device [default: what it had before].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub onto: Option<PathBuf>,
    /// Wait until it is done.
    #[arg(long)]
    pub wait: bool,
}

/// `vsl events`.
#[derive(Debug, Args)]
pub struct Events {
    /// An attached device.
    pub device: String,
}

/// `vsl sure-erase`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The levels are those of NIST SP 800-88. An erase that was cut leaves something that nobody can attach: run it again, and it goes on \
where it was. At the end everything is read back, and a certificate says what was done.

Examples:
  vsl sure-erase fct0.vsl
  vsl sure-erase safe.vsl --crypto --yes --json > certificate.json")]
pub struct SureErase {
    /// The file of a detached device, or all files of one that lies on several.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub paths: Vec<String>,
    /// Overwrite every byte that was ever written. This is the default.
    #[arg(long, group = "level")]
    pub clear: bool,
    /// Destroy the key of an encrypted device, overwrite every byte, and give the space back.
    #[arg(long, group = "level")]
    pub purge: bool,
    /// Only destroy the key of an encrypted device: at once, whatever its size.
    #[arg(long, group = "level")]
    pub crypto: bool,
    /// Encrypt the empty device that is left, under a new key.
    #[arg(long)]
    pub encrypt: bool,
    #[command(flatten)]
    pub opener: Opener,
    /// Do not ask.
    #[arg(short, long)]
    pub yes: bool,
}

/// `vsl beacon`.
#[derive(Debug, Args)]
pub struct Beacon {
    /// An attached device.
    pub device: String,
    /// Without it, whether it is lit is shown.
    pub switch: Option<Switch>,
}

/// `vsl trim`.
#[derive(Debug, Args)]
pub struct Trim {
    /// An attached device.
    pub device: String,
    /// Without it, whether trim is on is shown.
    pub switch: Option<Switch>,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// `vsl serve`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
One of --stdio, --socket and --listen says where; without any, sockets that a supervisor passes (LISTEN_FDS) \
are used. It ends on SIGTERM or SIGINT, with --stdio when the client goes, and detaches the device cleanly.

Examples:
  vsl serve scratch.vsl --socket /tmp/s.sock
  nbdinfo -- [ vsl serve scratch.vsl ]
  vsl serve memory:1GiB --listen 127.0.0.1:10809
  vsl serve scratch.vsl --vhost-socket /tmp/disk.vhost")]
pub struct Serve {
    /// A device file, all files of a device that lies on several, or memory:SIZE for a throw-away device.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub paths: Vec<String>,
    /// Serve one client on standard input and output.
    #[arg(long, conflicts_with_all = ["socket", "listen", "nvme_listen", "nvme_socket", "vhost_socket"])]
    pub stdio: bool,
    /// Make this Unix socket.
    #[arg(long, short = 'U', value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub socket: Option<PathBuf>,
    /// Serve on this TCP address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<SocketAddr>,
    /// Serve NVMe over TCP on this address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub nvme_listen: Vec<SocketAddr>,
    /// Serve NVMe on this Unix socket, in the framing of TCP.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub nvme_socket: Option<PathBuf>,
    /// Make this Unix socket, on which the device is the disk of a virtual machine (vhost-user-blk).
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub vhost_socket: Option<PathBuf>,
    /// The export's name [default: the empty one, which clients ask for when they ask for none].
    #[arg(long, short = 'e', default_value = "", hide_default_value = true)]
    pub name: String,
    /// Take no writes.
    #[arg(long, short)]
    pub read_only: bool,
    #[command(flatten)]
    pub opener: Opener,
    #[command(flatten)]
    pub nbd: Nbd,
    #[command(flatten)]
    pub nvme: Nvme,
    /// What to log: error, warn, info, debug or trace (RUST_LOG's words) [default: warn].
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
