//! `vsl connect` and `vsl disconnect`: an attached device as a block device of this machine's kernel.
//!
//! The kernel is the client, by whichever protocol it has. What was made is written down in the runtime directory, so that
//! `disconnect` undoes exactly that.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use daemon::api::{DeviceView, NvmeTarget};
use daemon::{Failure, Paths};
use serde::{Deserialize, Serialize};

use crate::args::{Connect, Disconnect, Means};
use crate::output::Output;

/// How long the kernel may take to show a block device.
const APPEARS_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// A block device that was made.
#[derive(Debug, Serialize, Deserialize)]
struct Connected {
    /// The device of the service.
    name: String,
    /// The block device.
    path: PathBuf,
    /// How it was made.
    by: Means,
    /// What else has to be undone: a subsystem's name, or a directory that is mounted.
    with: String,
}

pub fn connect(args: &Connect, output: Output) -> Result<(), Failure> {
    let paths = Paths::from_environment();
    let client = super::client()?;
    let view: DeviceView = client.get(&format!("/devices/{}", args.device))?;
    let record = record(&paths, view.text("name"));
    if let Ok(connected) = read(&record) {
        if connected.path.exists() {
            return Err(Failure::conflict(format!("{} is {} already", view.text("name"), connected.path.display()))
                .help(format!("use it, or end that with `vsl disconnect {}`", view.text("name"))));
        }
        // What it says went with a restart of the machine.
        remove(&record)?;
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::failed(format!("{}: only root can make block devices", view.text("name")))
            .help("run it with sudo, and with the service's OPENVSL_RUNTIME_DIR if that is not root's"));
    }
    let means = args.by.map_or(vec![Means::Nvme, Means::Nbd, Means::Fuse], |means| vec![means]);
    let mut reasons = Vec::new();
    for by in means {
        let made = match by {
            Means::Nvme => by_nvme(&view),
            Means::Nbd => by_nbd(&view, &paths),
            Means::Fuse => by_fuse(&view, &paths),
        };
        match made {
            Ok((path, with)) => {
                let connected = Connected { name: view.text("name").into(), path, by, with };
                write(&record, &connected)?;
                output.note(&format!("{} is connected by {by}", connected.name));
                return output.result(&connected, || format!("{}\n", connected.path.display()));
            }
            Err(why) => reasons.push(format!("by {by}: {why}")),
        }
    }
    Err(Failure::failed(format!("{} cannot be connected\n  {}", view.text("name"), reasons.join("\n  ")))
        .help("load one of the modules nvme-tcp and nbd, or install libnbd-bin and fuse3"))
}

pub fn disconnect(args: &Disconnect, output: Output) -> Result<(), Failure> {
    let paths = Paths::from_environment();
    let record = record(&paths, &args.device);
    let connected = read(&record).map_err(|_| {
        Failure::not_found(format!("{} is not connected by `vsl connect`", args.device))
            .help("`vsl status` lists the clients of every device")
    })?;
    let undone = match connected.by {
        Means::Nvme => controllers(&connected.with).into_iter().try_for_each(|controller| {
            std::fs::write(controller.join("delete_controller"), "1").map_err(|error| error.to_string())
        }),
        Means::Nbd => run("nbd-client", &["-d", &connected.path.display().to_string()]).map(drop),
        Means::Fuse => run("losetup", &["-d", &connected.path.display().to_string()])
            .and_then(|_| run("umount", &[&connected.with]))
            .map(|_| drop(std::fs::remove_dir(&connected.with))),
    };
    undone.map_err(|why| {
        Failure::failed(format!("{}: {why}", connected.path.display())).help("unmount what lies on it, and try again")
    })?;
    remove(&record)?;
    output.note(&format!("{} is gone", connected.path.display()));
    output.result(&connected, String::new)
}

fn record(paths: &Paths, name: &str) -> PathBuf {
    paths.runtime.join(format!("connected-{name}.json"))
}

fn read(record: &Path) -> Result<Connected, Failure> {
    let text = std::fs::read(record).map_err(|error| Failure::io(record, &error))?;
    serde_json::from_slice(&text).map_err(|error| Failure::failed(format!("{}: {error}", record.display())))
}

fn write(record: &Path, connected: &Connected) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(connected).map_err(|error| Failure::failed(error.to_string()))?;
    std::fs::write(record, text).map_err(|error| Failure::io(record, &error))
}

fn remove(record: &Path) -> Result<(), Failure> {
    std::fs::remove_file(record).map_err(|error| Failure::io(record, &error))
}

/// Runs a program, and gives what it printed; or what it said went wrong.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let ended =
        Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no program {program}"),
            _ => format!("{program}: {error}"),
        })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
    match ended.status.success() {
        true => Ok(text(&ended.stdout)),
        false => Err(format!("{program}: {} ({})", text(&ended.stderr), ended.status)),
    }
}

/// Loads a module of the kernel; whether it was there already does not matter, and where there is none what needs it says so.
fn load(module: &str) {
    let _ = run("modprobe", &[module]);
}

/// Asks until there is an answer, or it takes too long.
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> Result<T, String> {
    let deadline = Instant::now() + APPEARS_WITHIN;
    loop {
        match ask() {
            Some(found) => return Ok(found),
            None if Instant::now() >= deadline => return Err(format!("{what} did not appear")),
            None => std::thread::sleep(POLL),
        }
    }
}

/// The kernel's NVMe host: survives a restart of the service without an error.
fn by_nvme(view: &DeviceView) -> Result<(PathBuf, String), String> {
    const FABRICS: &str = "/dev/nvme-fabrics";
    let Some(NvmeTarget { address, port, subsystem }) = view.field("nvme") else {
        return Err("the service does not serve NVMe on TCP (`vsl up --nvme-listen 127.0.0.1:4420`)".into());
    };
    load("nvme-tcp");
    let mut fabrics = OpenOptions::new().read(true).write(true).open(FABRICS).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "the kernel has no module nvme-tcp".to_string(),
        _ => format!("{FABRICS}: {error}"),
    })?;
    let asked = format!("transport=tcp,traddr={address},trsvcid={port},nqn={subsystem},reconnect_delay=1");
    let refused = |error: std::io::Error| format!("the kernel does not connect to {address}:{port}: {error}");
    fabrics.write_all(asked.as_bytes()).map_err(refused)?;
    let mut answer = String::new();
    // Its answer is read once; what it says of the controller is found below as well.
    let _ = File::read_to_string(&mut fabrics, &mut answer);
    let uuid = view.text("uuid").to_string();
    let path = wait_for("the block device", || block_device(&uuid))?;
    Ok((path, subsystem.clone()))
}

/// The kernel's block device of a namespace.
fn block_device(uuid: &str) -> Option<PathBuf> {
    let found = std::fs::read_dir("/sys/block").ok()?.flatten().find(|entry| {
        let wwid = std::fs::read_to_string(entry.path().join("wwid")).unwrap_or_default();
        wwid.trim() == format!("uuid.{uuid}")
    })?;
    let path = Path::new("/dev").join(found.file_name());
    path.exists().then_some(path)
}

/// The kernel's controllers of a subsystem over TCP.
fn controllers(subsystem: &str) -> Vec<PathBuf> {
    let is = |controller: &Path, file: &str, value: &str| {
        std::fs::read_to_string(controller.join(file)).is_ok_and(|text| text.trim() == value)
    };
    let all = std::fs::read_dir("/sys/class/nvme").into_iter().flatten().flatten().map(|entry| entry.path());
    all.filter(|controller| is(controller, "transport", "tcp") && is(controller, "subsysnqn", subsystem)).collect()
}

/// The kernel's NBD client.
fn by_nbd(view: &DeviceView, paths: &Paths) -> Result<(PathBuf, String), String> {
    load("nbd");
    let free = |number: &u32| {
        let block = PathBuf::from(format!("/sys/block/nbd{number}"));
        block.exists() && !block.join("pid").exists()
    };
    if !Path::new("/sys/block/nbd0").exists() {
        return Err("the kernel has no module nbd".into());
    }
    let number = (0..256).find(free).ok_or("every /dev/nbdN is in use")?;
    let path = format!("/dev/nbd{number}");
    let socket = paths.nbd_socket().display().to_string();
    // The device takes whole sectors only.
    let sector = sector_bytes(view).to_string();
    run("nbd-client", &["-unix", &socket, &path, "-name", view.text("name"), "-block-size", &sector, "-persist"])?;
    Ok((path.into(), String::new()))
}

fn sector_bytes(view: &DeviceView) -> u32 {
    view.field("sector_bytes").unwrap_or(4096)
}

/// A file in user space, and a loop device on it.
fn by_fuse(view: &DeviceView, paths: &Paths) -> Result<(PathBuf, String), String> {
    let uri = Some(view.text("uri")).filter(|uri| !uri.is_empty()).ok_or("it is not attached")?;
    let mount = paths.runtime.join(format!("connected-{}", view.text("name")));
    std::fs::create_dir_all(&mount).map_err(|error| format!("{}: {error}", mount.display()))?;
    let file = mount.join("nbd");
    Command::new("nbdfuse")
        .args([&file.display().to_string(), uri])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("there is no program nbdfuse ({error})"))?;
    // The device takes whole sectors only.
    let sector = format!("--sector-size={}", sector_bytes(view));
    let losetup = ["--find", "--show", "--direct-io=on", &sector, &file.display().to_string()];
    let made = wait_for("the file of nbdfuse", || file.exists().then_some(())).and_then(|()| run("losetup", &losetup));
    match made {
        Ok(path) => Ok((path.into(), mount.display().to_string())),
        Err(why) => {
            // As it was before; there may be nothing to undo.
            let _ = run("umount", &[&mount.display().to_string()]);
            let _ = std::fs::remove_dir(&mount);
            Err(why)
        }
    }
}
