//! `vsl backup --to`: keeps another device equal to a device's newest snapshot, here or on another host.
//!
//! Each pass makes a snapshot of the device, copies what changed since the last pass, and makes a snapshot of the replica. The
//! replica's snapshot names the device and the number of the snapshot that it equals, so a pass finds what to build on by
//! itself, also after a restart and from another machine.

use std::fs::File;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use daemon::api::{DeviceView, HostView, NvmeTarget, SnapshotPatch, SnapshotRequest, SnapshotView, Snapshots};
use daemon::{Failure, Paths, fields};
use hyper::{Method, Uri};
use openvsl::{Address, ConnectOptions, Device, HostSecret};
use openvsl_backup::{BackupError, Base, replicate as copy};
use serde_json::json;
use telemetry::Unit;

use super::access::secret;
use super::backup::Watch;
use crate::args::backup::Backup;
use crate::client::Client;
use crate::confirm;
use crate::output::Output;

/// How often somebody who waits for the next pass looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// A device of a service that is asked by ours.
struct Side {
    /// As the user names it.
    shown: String,
    /// Its snapshots in the API.
    snapshots: String,
    address: Address,
    options: ConnectOptions,
    view: DeviceView,
}

pub fn replicate(args: &Backup, device: &str, to: &str, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let source = near(client.attached(device)?)?;
    let mut target = find(&client, source.view.text("name"), to)?;
    target.options.host.clone_from(&args.host_nqn);
    if let Some(file) = &args.secret_file {
        let text = secret(Some(file), "secret")?;
        let parsed = text.parse::<HostSecret>();
        let parsed = parsed.map_err(|error| Failure::invalid(format!("{}: {error}", file.display())))?;
        target.options.secret = Some(parsed);
    }
    if source.is_encrypted() && !target.is_encrypted() && !args.plain {
        return Err(Failure::invalid(format!("{device} is encrypted, and its replica {to} is not"))
            .help("create that one with --encrypt, or add --plain to leave the replica open to everyone"));
    }
    let mut replica = Replica { client, source, target, keep: args.keep, yes: args.yes, output };
    let mut first = true;
    loop {
        let begun = Instant::now();
        let watch = Watch::new(output)?;
        let result = replica.pass(&watch);
        watch.bar.finish_and_clear();
        match result {
            Ok(()) => {}
            // What is wrong from the beginning is not tried again.
            Err(failure) if first || watch.interrupt.came() => return Err(failure),
            Err(failure) => output.note(&format!("{failure}; the next pass tries again")),
        }
        first = false;
        // Who let everything on the replica go once does not do so again unasked.
        replica.yes = false;
        let Some(every) = args.every.map(Duration::from_secs) else { return Ok(()) };
        while begun.elapsed() < every && !watch.interrupt.came() {
            sleep(LOOK.min(every));
        }
        if watch.interrupt.came() {
            return Ok(());
        }
    }
}

/// A device of this machine's service.
fn near(view: DeviceView) -> Result<Side, Failure> {
    let name = view.text("name").to_string();
    let address = view.text("nvme_uri");
    let address: Address = address.parse().map_err(|error| {
        Failure::failed(format!("{name}: the service has no NVMe socket to read and write it by ({error})"))
            .help("restart the service without --nvme-socket none")
    })?;
    let snapshots = format!("/devices/{name}/snapshots");
    Ok(Side { shown: name, snapshots, address, options: ConnectOptions::default(), view })
}

/// The device that is to be a replica: HOST/DEVICE; or of this service, DEVICE; or HOST, for the device of the same name there.
fn find(client: &Client, source: &str, to: &str) -> Result<Side, Failure> {
    let hosts: Vec<HostView> = client.get("/hosts")?;
    let host_named = |name: &str| hosts.iter().find(|host| host.name == name);
    let (host, device) = match to.split_once('/') {
        Some((host, device)) if host_named(host).is_some() => (host_named(host), device),
        _ => match client.find(to)? {
            Some(view) => return near(view),
            None => (host_named(to), source),
        },
    };
    let Some(host) = host else {
        return Err(Failure::not_found(format!("{to} is neither an attached device nor a host"))
            .help("`vsl status` lists devices, `vsl hosts` hosts; a device of a host is HOST/DEVICE"));
    };
    let path = format!("/hosts/{}/devices/{device}", host.name);
    let view: DeviceView = client.get(&path)?;
    let shown = format!("{}/{device}", host.name);
    let listens: NvmeTarget = view.field("nvme").ok_or_else(|| {
        Failure::invalid(format!("{shown}: the service there listens to no NVMe over TCP"))
            .help("start it with --nvme-listen ADDRESS, and --nvme-hosts where others can reach that address")
    })?;
    // An address that means the machine itself, or all of its own, is where its service was found.
    let address = if listens.address.is_loopback() || listens.address.is_unspecified() {
        host.address.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_string)).unwrap_or_default()
    } else if listens.address.is_ipv6() {
        format!("[{}]", listens.address)
    } else {
        listens.address.to_string()
    };
    let address = format!("nvme+tcp://{address}:{}/{}", listens.port, listens.subsystem);
    let address = address.parse().map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    Ok(Side { shown, snapshots: format!("{path}/snapshots"), address, options: ConnectOptions::default(), view })
}

impl Side {
    fn is_encrypted(&self) -> bool {
        !self.view.text("encryption").is_empty()
    }

    /// The device, or a snapshot of it.
    fn open(&self, snapshot: Option<&str>) -> Result<Device, Failure> {
        let address = snapshot.map_or(self.address.clone(), |name| self.address.clone().at_snapshot(name));
        Device::connect_with(&address, &self.options)
            .map_err(|error| Failure::failed(format!("{}: {error}", self.shown)))
    }

    /// The number of a snapshot, which no other one of the device ever has.
    fn number(&self, snapshot: &str) -> Result<u64, Failure> {
        let number = self.open(Some(snapshot))?.capabilities().snapshot;
        number.ok_or_else(|| Failure::failed(format!("{}: the service shows no snapshots; update it", self.shown)))
    }
}

/// A device and its replica.
struct Replica {
    client: Client,
    source: Side,
    target: Side,
    /// How many moments the replica keeps.
    keep: usize,
    yes: bool,
    output: Output,
}

impl Replica {
    /// Brings the replica up to now.
    fn pass(&self, watch: &Watch) -> Result<(), Failure> {
        let begun = Instant::now();
        let replica = self.target.open(None)?;
        let (source_id, target_id) = (self.source.view.text("uuid"), replica.capabilities().uuid.clone());
        if source_id == target_id {
            return Err(Failure::invalid(format!("{} has the UUID of {}", self.target.shown, self.source.shown))
                .help("a copy gets its own by `vsl attach FILE --new-identity`"));
        }
        let (ours, theirs) = (format!("replica-{target_id}-"), format!("replica-{source_id}-"));
        let _locked = lock(&target_id, &self.target.shown)?;
        let base = self.base(&ours, &theirs)?;
        if base.is_none() {
            self.confirm(&replica)?;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (now, name) = (since.as_secs(), format!("{ours}{}", since.as_millis()));
        let shown = fields::show(Unit::Time, &json!(now));
        let request = SnapshotRequest { name: name.clone() };
        self.client.send::<SnapshotView>(Method::POST, &self.source.snapshots, &request)?;
        let copied = self.copy(&replica, &name, &theirs, base, watch);
        if copied.is_err() {
            self.forget(&self.source, &name);
        }
        let (copied, made) = copied?;
        self.tidy(&ours, &name, &theirs, &made)?;
        let value = json!({ "device": self.source.shown, "to": self.target.shown, "as_of": now, "data_bytes": copied,
            "whole": base.is_none(), "seconds": begun.elapsed().as_secs_f64() });
        self.output.result(&value, || {
            let what = if base.is_none() { "all of it" } else { "what changed" };
            let (data, took) = (size::show(copied), begun.elapsed().as_secs_f64());
            format!(
                "{} is {} as of {shown}: {what}, {data} of data in {took:.1} s\n",
                self.target.shown, self.source.shown
            )
        })
    }

    /// What the last pass made: a snapshot of the source, and the one of the replica that equals it.
    fn base(&self, ours: &str, theirs: &str) -> Result<Option<Base>, Failure> {
        let [mine, other]: [Snapshots; 2] =
            [self.client.get(&self.source.snapshots)?, self.client.get(&self.target.snapshots)?];
        for candidate in mine.snapshots.iter().rev().filter(|one| one.name.starts_with(ours)) {
            let source = self.source.number(&candidate.name)?;
            let name = format!("{theirs}{source:x}");
            if other.snapshots.iter().any(|one| one.name == name) {
                return Ok(Some(Base { source, target: self.target.number(&name)? }));
            }
        }
        if other.snapshots.iter().any(|one| one.name.starts_with(theirs)) {
            let (source, target) = (&self.source.shown, &self.target.shown);
            self.output
                .note(&format!("{source} has no snapshot any more that {target} equals, so all of it is copied"));
        }
        Ok(None)
    }

    fn confirm(&self, replica: &Device) -> Result<(), Failure> {
        let holds = replica.ranges(..).next().transpose();
        let holds = holds.map_err(|error| Failure::failed(format!("{}: {error}", self.target.shown)))?.is_some();
        if self.yes || !holds {
            return Ok(());
        }
        let lost = format!("everything on {} ({})", self.target.shown, size::show(self.bytes(replica)));
        let question = format!("{} takes its place. Type {} to go on:", self.source.shown, self.target.shown);
        confirm::ask(&lost, &question, &self.target.shown)
    }

    fn bytes(&self, device: &Device) -> u64 {
        device.capabilities().sectors * u64::from(device.capabilities().sector_bytes)
    }

    /// Copies, and notes on the replica which moment it is. Returns the bytes copied, and that snapshot.
    fn copy(
        &self,
        replica: &Device,
        name: &str,
        theirs: &str,
        base: Option<Base>,
        watch: &Watch,
    ) -> Result<(u64, String), Failure> {
        let source = self.source.open(Some(name))?;
        let number = source.capabilities().snapshot.unwrap_or_default();
        let copied = copy(&source, replica, base, |progress| watch.at(progress)).map_err(|error| match error {
            BackupError::Stopped => Failure::failed("interrupted"),
            error => Failure::failed(format!("{} to {}: {error}", self.source.shown, self.target.shown)),
        })?;
        let made = format!("{theirs}{number:x}");
        let request = SnapshotRequest { name: made.clone() };
        self.client.send::<SnapshotView>(Method::POST, &self.target.snapshots, &request)?;
        Ok((copied, made))
    }

    /// Keeps what the next pass builds on from being deleted, and deletes what it does not need.
    fn tidy(&self, ours: &str, name: &str, theirs: &str, made: &str) -> Result<(), Failure> {
        for (side, prefix, newest, keep) in
            [(&self.source, ours, name, 1), (&self.target, theirs, made, self.keep.max(1))]
        {
            let held = SnapshotPatch { name: None, held: Some(true) };
            let path = format!("{}/{newest}", side.snapshots);
            let listed: Snapshots = self.client.send(Method::PATCH, &path, &held)?;
            let own: Vec<&SnapshotView> = listed.snapshots.iter().filter(|one| one.name.starts_with(prefix)).collect();
            for old in own.iter().rev().skip(keep) {
                self.forget(side, &old.name);
            }
        }
        Ok(())
    }

    /// Deletes a snapshot that a pass made. Where that fails, a later pass tries again.
    fn forget(&self, side: &Side, name: &str) {
        let path = format!("{}/{name}", side.snapshots);
        let free = SnapshotPatch { name: None, held: Some(false) };
        let deleted = self
            .client
            .send::<Snapshots>(Method::PATCH, &path, &free)
            .and_then(|_| self.client.send::<Snapshots>(Method::DELETE, &path, &()));
        if let Err(failure) = deleted {
            self.output.note(&format!("{}: the snapshot {name} stays for now: {failure}", side.shown));
        }
    }
}

/// Two passes onto one replica at a time would mix two moments.
fn lock(id: &str, shown: &str) -> Result<File, Failure> {
    let paths = Paths::from_environment();
    let path = paths.api_socket().with_file_name(format!("replica-{id}.lock"));
    let file = File::create(&path).map_err(|error| Failure::io(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(Failure::conflict(format!("{shown} is being brought up to a moment already"))
                .help("wait until the other `vsl backup --to` is done"))
        }
        Err(std::fs::TryLockError::Error(error)) => Err(Failure::io(&path, &error)),
    }
}
