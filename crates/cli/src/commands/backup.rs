//! `vsl backup` and `vsl restore`: what a device holds as a stream, and back.

use std::io::Read;
use std::path::Path;

use daemon::api::Snapshots;
use daemon::{Failure, Target, fields};
use device::Secret;
use indicatif::ProgressBar;
use openvsl::{Address, ConnectOptions, Device, OpenError};
use openvsl_backup::{
    BackupError, Header, Moment, Progress, Reader, Source, StreamError, check_chain, restore as apply,
};
use serde_json::json;

use super::opener;
use super::replicate::replicate;
use super::streams::{Place, Unwritten};
use crate::args::Opener;
use crate::args::backup::{Backup, BackupCommand, Restore};
use crate::confirm;
use crate::output::Output;
use crate::progress::{Interrupt, bar};

pub fn backup(args: &Backup, output: Output) -> Result<(), Failure> {
    if let Some(BackupCommand::Verify { files, endpoint, opener }) = &args.what {
        return files.iter().try_for_each(|file| verify(file, endpoint.as_deref(), opener, output));
    }
    if let (Some(device), Some(to)) = (&args.device, &args.to) {
        return replicate(args, device, to, output);
    }
    let (Some(device), Some(file)) = (&args.device, &args.file) else {
        return Err(Failure::invalid("a device and a file are needed"));
    };
    let (name, shown) = split(device)?;
    let since = args.since.as_deref().map(|since| older(&name, shown.as_deref(), since, &args.opener)).transpose()?;
    let (since, secret) = since.unzip();
    let opened = open(&name, shown.as_deref(), secret.flatten(), &args.opener, true)?;
    if opened.attached && shown.is_none() {
        output.note(&format!("{device} is attached: what is written meanwhile may be in the backup or not"));
    }
    let secret = opened.secret.filter(|_| !args.plain);
    if opened.encrypted && secret.is_none() && !args.plain {
        return Err(Failure::invalid(format!(
            "{device} is encrypted, and nothing is there to encrypt its backup with"
        ))
        .help("add --passphrase-file or --key-file, or --plain to leave the backup open to everyone"));
    }
    let source = Source { name, secret, snapshot: shown.unwrap_or_default(), since };
    let place = Place::parse(file, args.endpoint.as_deref())?;
    let watch = Watch::new(output)?;
    let written = place.write(&opened.device, &source, args.resume, |progress| watch.at(progress));
    watch.bar.finish_and_clear();
    let stored = written.map_err(|unwritten| match unwritten {
        Unwritten::Place(failure) => failure,
        Unwritten::Backup(error) => failure(device, file, error),
    })?;
    // Standard output holds the backup.
    let Some(stored) = stored else { return Ok(()) };
    let data = watch.data_bytes.get();
    output.result(&json!({ "file": file, "data_bytes": data, "stored_bytes": stored }), || {
        format!("backed up {device}: {} of data in {} at {file}\n", size::show(data), size::show(stored))
    })
}

fn verify(file: &str, endpoint: Option<&str>, opener: &Opener, output: Output) -> Result<(), Failure> {
    let mut reader = read(file, endpoint, None, opener)?;
    let watch = Watch::new(output)?;
    let result = reader.verify(|progress| watch.at(progress));
    watch.bar.finish_and_clear();
    result.map_err(|error| failure(file, file, error))?;
    let header = reader.header();
    let value = json!({
        "file": file, "id": header.id, "device": header.device, "name": header.name, "capacity_bytes": header.bytes(),
        "sector_bytes": header.sector_bytes, "taken_at": header.taken_at,
        "snapshot": header.snapshot.as_ref().map(|shown| &shown.name), "snapshot_number": number(&header.snapshot),
        "since": header.since.as_ref().map(|since| &since.name), "since_number": number(&header.since),
        "encrypted": header.key.is_some(), "data_bytes": reader.data_bytes(),
    });
    output.result(&value, || format!("{file}: whole and sound: {}\n", describe(header, reader.data_bytes())))
}

/// A backup in words.
fn describe(header: &Header, data_bytes: u64) -> String {
    let taken = fields::show(fields::Unit::Time, &json!(header.taken_at));
    let (data, capacity) = (size::show(data_bytes), size::show(header.bytes()));
    let shown = header.snapshot.as_ref().map(|shown| format!(", {shown}")).unwrap_or_default();
    let since = header.since.as_ref().map(|since| format!(", what changed since {since}")).unwrap_or_default();
    format!("{data} of {} ({capacity}, UUID {}){shown}{since}, taken {taken}", header.name, header.device)
}

/// A snapshot's number as text: programs that read JSON lose digits of numbers that large.
fn number(moment: &Option<Moment>) -> Option<String> {
    moment.as_ref().map(|moment| format!("{:x}", moment.number))
}

pub fn restore(args: &Restore, output: Output) -> Result<(), Failure> {
    let own = Opener { passphrase_file: args.backup_passphrase_file.clone(), key_file: args.backup_key_file.clone() };
    let piped = args.files.iter().any(|file| file == "-");
    if piped && args.files.len() > 1 {
        return Err(Failure::invalid(
            "`-` stands alone: nobody can verify standard input before the device is changed",
        )
        .help("write it to a file first"));
    }
    let opened = open(&args.device, None, None, &args.opener, false)?;
    let secret = opened.secret.as_ref();
    let begin = |file: &String| read(file, args.endpoint.as_deref(), secret, &own);
    let mut readers = args.files.iter().map(begin).collect::<Result<Vec<_>, Failure>>()?;
    let headers: Vec<&Header> = readers.iter().map(Reader::header).collect();
    check_chain(&headers, &opened.device).map_err(|error| match error {
        BackupError::Base { index, .. } | BackupError::Whole { index } => Failure::invalid(format!(
            "{}: {error}",
            args.files[index]
        ))
        .help(
            "name the whole backup first, then what builds on it, in order; `vsl backup verify` says what each holds",
        ),
        error => failure(&args.device, &args.files[0], error),
    })?;
    if !args.yes {
        let held = format!("everything on {} ({})", args.device, size::show(opened.bytes()));
        let last = headers.last().map(|last| describe(last, 0)).unwrap_or_default();
        let question = format!("{last} takes its place. Type {} to go on:", args.device);
        confirm::ask(&held, &question, &args.device)?;
    }
    let watch = Watch::new(output)?;
    if !piped {
        watch.bar.set_message("reading");
        for (reader, file) in readers.iter_mut().zip(&args.files) {
            let verified = reader.verify(|progress| watch.at(progress));
            verified.map_err(|error| failure(&args.device, file, error))?;
            *reader = begin(file)?;
        }
    }
    watch.bar.set_message("writing");
    let mut data = 0;
    for (mut reader, file) in readers.into_iter().zip(&args.files) {
        let applied = apply(&mut reader, &opened.device, |progress| watch.at(progress));
        applied.map_err(|error| failure(&args.device, file, error))?;
        data += reader.data_bytes();
    }
    watch.bar.finish_and_clear();
    opened.device.close().map_err(|error| Failure::failed(format!("{}: {error}", args.device)))?;
    output.result(&json!({ "device": args.device, "data_bytes": data }), || {
        format!("restored {}: {} of data\n", args.device, size::show(data))
    })
}

/// Begins to read a backup. What opens a device may open its backup, too.
fn read(
    file: &str,
    endpoint: Option<&str>,
    secret: Option<&Secret>,
    own: &Opener,
) -> Result<Reader<Box<dyn Read>>, Failure> {
    let reader = Place::parse(file, endpoint)?.read(file, secret, own)?;
    reader.map_err(|error| failure(file, file, error.into()))
}

/// A device to read or to write, and what opened it.
struct Opened {
    device: Device,
    secret: Option<Secret>,
    encrypted: bool,
    attached: bool,
}

impl Opened {
    fn bytes(&self) -> u64 {
        let capabilities = self.device.capabilities();
        capabilities.sectors * u64::from(capabilities.sector_bytes)
    }
}

/// A device, and what stands behind `@` where that is no part of its name.
fn split(device: &str) -> Result<(String, Option<String>), Failure> {
    Ok(match device.rsplit_once('@') {
        Some((name, snapshot))
            if !Path::new(device).exists() && super::attached(&super::client()?, device).is_none() =>
        {
            (name.into(), Some(snapshot.into()))
        }
        _ => (device.into(), None),
    })
}

/// A snapshot that is to be built on, and what opened the device.
fn older(device: &str, shown: Option<&str>, since: &str, opener: &Opener) -> Result<(Moment, Option<Secret>), Failure> {
    if shown.is_none() {
        return Err(Failure::invalid("--since compares two snapshots, and only one is named")
            .help(format!("`vsl backup {device}@NEWER FILE --since {since}`")));
    }
    let opened = open(device, Some(since), None, opener, true)?;
    let number = opened.device.capabilities().snapshot;
    opened.device.close().map_err(|error| Failure::failed(format!("{device}: {error}")))?;
    let number =
        number.ok_or_else(|| Failure::failed(format!("{device}: the service shows no snapshots; update it")))?;
    Ok((Moment { number, name: since.into() }, opened.secret))
}

/// The device by the name under which the service has it, or by its file; or a snapshot of it. `known` opens it, where that is known already.
fn open(
    device: &str,
    snapshot: Option<&str>,
    known: Option<Secret>,
    opener: &Opener,
    read_only: bool,
) -> Result<Opened, Failure> {
    let failed = |error: openvsl::OpenError| Failure::failed(error.to_string());
    let unknown = || {
        let name = snapshot.unwrap_or_default();
        Failure::not_found(format!("{device} has no snapshot \"{name}\""))
            .help(format!("`vsl snapshot list {device}` shows those of an attached device"))
    };
    // Without a service every device is a file.
    let client = super::client()?;
    if let Some(view) = super::attached(&client, device) {
        let secret = opener::for_device(device, false, opener)?;
        let encrypted = !view.text("encryption").is_empty();
        let address: Address =
            view.text("nvme_uri").parse().map_err(|error: openvsl::BadAddress| failed(error.into()))?;
        let address = match snapshot {
            None => address,
            Some(snapshot) => {
                let listed: Snapshots = client.get(&format!("/devices/{}/snapshots", view.text("name")))?;
                if !listed.snapshots.iter().any(|one| one.name == snapshot) {
                    return Err(unknown());
                }
                address.at_snapshot(snapshot)
            }
        };
        let device = Device::connect_with(&address, &ConnectOptions::default()).map_err(failed)?;
        return Ok(Opened { device, secret, encrypted, attached: true });
    }
    let target = Target::parse(device)?.absolute()?.with_members(false)?;
    let Some(paths) = target.paths() else {
        return Err(Failure::invalid(format!("{device}: no device of that name is attached, and it is no file")));
    };
    let encrypted = opener::is_encrypted(paths);
    let secret = match known {
        Some(secret) => Some(secret),
        None => opener::for_device(device, encrypted, opener)?,
    };
    let mut options = openvsl::OpenOptions::default();
    options.read_only = read_only;
    options.secret = secret.clone().filter(|_| encrypted);
    options.snapshot = snapshot.map(str::to_string);
    let device = Device::open_with(paths, &options).map_err(|error| match error {
        OpenError::NoSnapshot { .. } => unknown(),
        error => failed(error),
    })?;
    Ok(Opened { device, secret, encrypted, attached: false })
}

fn failure(device: &str, file: &str, error: BackupError) -> Failure {
    let resume = "the same command with --resume goes on with it";
    let file = if file == "-" { "standard input or output" } else { file };
    match error {
        BackupError::Stopped => Failure::failed("interrupted"),
        BackupError::Stream(StreamError::Io(error)) => Failure::io(Path::new(file), &error),
        BackupError::Write(error) => Failure::io(Path::new(file), &error).help(resume),
        BackupError::Device(error) => Failure::failed(format!("{device}: {error}")),
        BackupError::Stream(StreamError::Interrupted { .. } | StreamError::Empty) => {
            Failure::failed(format!("{file}: {error}")).help("make the backup anew, or go on with it by --resume")
        }
        BackupError::Stream(StreamError::Foreign | StreamError::Version { .. }) | BackupError::Complete => {
            Failure::invalid(format!("{file}: {error}"))
        }
        BackupError::Stream(StreamError::NeedsSecret | StreamError::WrongSecret) => {
            Failure::invalid(format!("{file}: {error}")).help("--passphrase-file or --key-file names what opens it")
        }
        BackupError::NotOlder { .. } => Failure::invalid(format!("{device}: {error}")),
        BackupError::TooSmall { .. } | BackupError::SectorSize { .. } => Failure::invalid(format!("{device}: {error}")),
        error => Failure::failed(format!("{file}: {error}")),
    }
}

/// Shows how far it is, and listens to Ctrl-C.
pub(super) struct Watch {
    pub(super) bar: ProgressBar,
    pub(super) interrupt: Interrupt,
    data_bytes: std::cell::Cell<u64>,
}

impl Watch {
    pub(super) fn new(output: Output) -> Result<Watch, Failure> {
        let bar = bar(output, "{msg} [{wide_bar}] {percent} %, {eta} left")?;
        Ok(Watch { bar, interrupt: Interrupt::listen()?, data_bytes: std::cell::Cell::default() })
    }

    pub(super) fn at(&self, progress: Progress) -> bool {
        self.bar.set_length(progress.sectors);
        self.bar.set_position(progress.lba);
        self.data_bytes.set(progress.data_bytes);
        !self.interrupt.came()
    }
}
