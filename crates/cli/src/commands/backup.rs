//! `vsl backup` and `vsl restore`: what a device holds as a stream, and back.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, stdin, stdout};
use std::path::Path;

use daemon::{Failure, Target, fields};
use device::Secret;
use indicatif::ProgressBar;
use openvsl::Device;
use openvsl_backup::{BackupError, Header, Progress, Reader, Source, StreamError, backup as write, restore as apply};
use serde_json::json;

use super::opener;
use crate::args::Opener;
use crate::args::backup::{Backup, BackupCommand, Restore};
use crate::confirm;
use crate::output::Output;
use crate::progress::{Interrupt, bar};

/// Bytes that are read from a file at a time.
const READ: usize = 1 << 20;

pub fn backup(args: &Backup, output: Output) -> Result<(), Failure> {
    if let Some(BackupCommand::Verify { files, opener }) = &args.what {
        return files.iter().try_for_each(|file| verify(file, opener, output));
    }
    let (Some(device), Some(file)) = (&args.device, &args.file) else {
        return Err(Failure::invalid("a device and a file are needed"));
    };
    let opened = open(device, &args.opener, true)?;
    if opened.attached {
        output.note(&format!("{device} is attached: what is written meanwhile may be in the backup or not"));
    }
    let secret = opened.secret.filter(|_| !args.plain);
    if opened.encrypted && secret.is_none() && !args.plain {
        return Err(Failure::invalid(format!(
            "{device} is encrypted, and nothing is there to encrypt its backup with"
        ))
        .help("add --passphrase-file or --key-file, or --plain to leave the backup open to everyone"));
    }
    let source = Source { name: device.clone(), secret, snapshot: None };
    let watch = Watch::new(output)?;
    let failed = |error: BackupError| failure(device, file, error);
    if file == "-" {
        if args.resume {
            return Err(Failure::invalid("--resume needs a file: standard output cannot be read back"));
        }
        let result = write(&opened.device, &source, stdout().lock(), |progress| watch.at(progress));
        watch.bar.finish_and_clear();
        return result.map(drop).map_err(failed);
    }
    let path = Path::new(file);
    let written = match args.resume {
        true => {
            let begun =
                OpenOptions::new().read(true).write(true).open(path).map_err(|error| Failure::io(path, &error))?;
            openvsl_backup::resume(&opened.device, &source, begun, |progress| watch.at(progress))
        }
        false => write(&opened.device, &source, new_file(path)?, |progress| watch.at(progress)),
    };
    watch.bar.finish_and_clear();
    let written = written.map_err(failed)?;
    written.sync_all().map_err(|error| Failure::io(path, &error))?;
    let stored = written.metadata().map_err(|error| Failure::io(path, &error))?.len();
    let data = watch.data_bytes.get();
    output.result(&json!({ "file": file, "data_bytes": data, "stored_bytes": stored }), || {
        format!("backed up {device}: {} of data in {} at {file}\n", size::show(data), size::show(stored))
    })
}

fn new_file(path: &Path) -> Result<File, Failure> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    made.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::conflict(format!("{}: there is a file already", path.display()))
            .help("add --resume to go on with a backup that was interrupted, or name another file"),
        _ => Failure::io(path, &error),
    })
}

fn verify(file: &str, opener: &Opener, output: Output) -> Result<(), Failure> {
    let mut reader = read(file, None, opener)?;
    let watch = Watch::new(output)?;
    let result = reader.verify(|progress| watch.at(progress));
    watch.bar.finish_and_clear();
    result.map_err(|error| failure(file, file, error))?;
    let header = reader.header();
    let value = json!({
        "file": file, "id": header.id, "device": header.device, "name": header.name, "capacity_bytes": header.bytes(),
        "sector_bytes": header.sector_bytes, "taken_at": header.taken_at, "snapshot": header.snapshot, "since": header.since,
        "encrypted": header.key.is_some(), "data_bytes": reader.data_bytes(),
    });
    output.result(&value, || format!("{file}: whole and sound: {}\n", describe(header, reader.data_bytes())))
}

/// A backup in words.
fn describe(header: &Header, data_bytes: u64) -> String {
    let taken = fields::show(fields::Unit::Time, &json!(header.taken_at));
    let (data, capacity) = (size::show(data_bytes), size::show(header.bytes()));
    format!("{data} of {} ({capacity}, UUID {}), taken {taken}", header.name, header.device)
}

pub fn restore(args: &Restore, output: Output) -> Result<(), Failure> {
    let own = Opener { passphrase_file: args.backup_passphrase_file.clone(), key_file: args.backup_key_file.clone() };
    let opened = open(&args.device, &args.opener, false)?;
    let secret = opened.secret.as_ref();
    let mut reader = read(&args.file, secret, &own)?;
    if reader.header().since.is_some() {
        return Err(Failure::invalid(format!("{}: it holds only what changed since another backup", args.file)));
    }
    if !args.yes {
        let held = format!("everything on {} ({})", args.device, size::show(opened.bytes()));
        let question = format!("{} takes its place. Type {} to go on:", describe(reader.header(), 0), args.device);
        confirm::ask(&held, &question, &args.device)?;
    }
    let failed = |error: BackupError| failure(&args.device, &args.file, error);
    let watch = Watch::new(output)?;
    if args.file != "-" {
        watch.bar.set_message("reading");
        reader.verify(|progress| watch.at(progress)).map_err(failed)?;
        reader = read(&args.file, secret, &own)?;
    }
    watch.bar.set_message("writing");
    let result = apply(&mut reader, &opened.device, |progress| watch.at(progress));
    watch.bar.finish_and_clear();
    result.map_err(failed)?;
    opened.device.close().map_err(|error| Failure::failed(format!("{}: {error}", args.device)))?;
    let data = reader.data_bytes();
    output.result(&json!({ "device": args.device, "data_bytes": data }), || {
        format!("restored {}: {} of data\n", args.device, size::show(data))
    })
}

/// Begins to read a backup. What opens a device may open its backup, too.
fn read(file: &str, secret: Option<&Secret>, own: &Opener) -> Result<Reader<Box<dyn Read>>, Failure> {
    let path = Path::new(file);
    let named = opener::for_device(file, false, own)?;
    let open = || -> Result<Box<dyn Read>, Failure> {
        if file == "-" {
            return Ok(Box::new(stdin().lock()));
        }
        let input = File::open(path).map_err(|error| Failure::io(path, &error))?;
        Ok(Box::new(BufReader::with_capacity(READ, input)))
    };
    match Reader::open(open()?, named.as_ref().or(secret)) {
        // Standard input cannot be begun again.
        Err(StreamError::NeedsSecret) if file != "-" => {
            let asked = opener::for_device(file, true, own)?;
            Reader::open(open()?, asked.as_ref())
        }
        result => result,
    }
    .map_err(|error| failure(file, file, error.into()))
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

/// The device by the name under which the service has it, or by its file.
fn open(device: &str, opener: &Opener, read_only: bool) -> Result<Opened, Failure> {
    let failed = |error: openvsl::OpenError| Failure::failed(error.to_string());
    // Without a service every device is a file.
    if let Some(view) = super::attached(&super::client()?, device) {
        let secret = opener::for_device(device, false, opener)?;
        let encrypted = !view.text("encryption").is_empty();
        let device = Device::connect(view.text("nvme_uri")).map_err(failed)?;
        return Ok(Opened { device, secret, encrypted, attached: true });
    }
    let target = Target::parse(device)?.absolute()?.with_members(false)?;
    let Some(paths) = target.paths() else {
        return Err(Failure::invalid(format!("{device}: no device of that name is attached, and it is no file")));
    };
    let encrypted = opener::is_encrypted(paths);
    let secret = opener::for_device(device, encrypted, opener)?;
    let mut options = openvsl::OpenOptions::default();
    options.read_only = read_only;
    options.secret = secret.clone().filter(|_| encrypted);
    let device = Device::open_with(paths, &options).map_err(failed)?;
    Ok(Opened { device, secret, encrypted, attached: false })
}

fn failure(device: &str, file: &str, error: BackupError) -> Failure {
    let resume = format!("`vsl backup {device} {file} --resume` goes on with it");
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
        BackupError::TooSmall { .. } | BackupError::SectorSize { .. } => Failure::invalid(format!("{device}: {error}")),
        error => Failure::failed(format!("{file}: {error}")),
    }
}

/// Shows how far it is, and listens to Ctrl-C.
struct Watch {
    bar: ProgressBar,
    interrupt: Interrupt,
    data_bytes: std::cell::Cell<u64>,
}

impl Watch {
    fn new(output: Output) -> Result<Watch, Failure> {
        let bar = bar(output, "{msg} [{wide_bar}] {percent} %, {eta} left")?;
        Ok(Watch { bar, interrupt: Interrupt::listen()?, data_bytes: std::cell::Cell::default() })
    }

    fn at(&self, progress: Progress) -> bool {
        self.bar.set_length(progress.sectors);
        self.bar.set_position(progress.lba);
        self.data_bytes.set(progress.data_bytes);
        !self.interrupt.came()
    }
}
