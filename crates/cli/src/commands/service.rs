//! `vsl up` and `vsl down`.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use daemon::api::{DetachRequest, Health, Named, Version};
use daemon::exports::Listen;
use daemon::serve::{Lock, Options, Web, how_it_stopped, run};
use daemon::{Failure, Paths, Program};
use hyper::Method;
use serde_json::json;

use super::attachment::waiting;
use crate::args::{Force, Nbd, Nvme, TlsMode, Up};
use crate::client::Client;
use crate::output::Output;

/// How often a starting service is asked whether it is ready.
const POLL: Duration = Duration::from_millis(50);
/// How long a service that does not answer is given to end.
const ENDING: Duration = Duration::from_secs(5);
/// How long a starting service may take to attach its devices.
const PATIENCE: Duration = Duration::from_secs(300);
/// How much of the log is shown when the service does not start, bytes.
const LOG_TAIL: u64 = 2048;

pub fn up(args: &Up, output: Output) -> Result<(), Failure> {
    let paths = Paths::from_environment();
    let listen = Listen { vhost: args.vhost, ..exports(args)? };
    if args.foreground {
        if args.new_session {
            // It fails only for a leader of a process group, which is free of the terminal's session already.
            let _ = rustix::process::setsid();
        }
        daemon::logging::start(args.log.as_deref(), "info")?;
        return run(&Options { paths, listen, web: web(args)? });
    }
    let deadline = Instant::now() + ENDING;
    while Lock::is_taken(&paths.lock_file()) {
        let client = Client::new(&paths)?;
        match client.get::<Version>("/version") {
            Ok(version) => {
                let what = format!("the service is running already, process {}", version.pid);
                return announce(&client, &what, &version, output);
            }
            Err(error) if Instant::now() >= deadline => return Err(error),
            // A service that was killed holds its lock and its socket a little longer.
            Err(_) => std::thread::sleep(POLL),
        }
    }
    listen.check(&[])?;
    paths.make()?;
    // What earlier starts wrote there is not about this one.
    let before = std::fs::metadata(paths.log_file()).map_or(0, |log| log.len());
    let mut child = start(args, &paths)?;
    let client = Client::new(&paths)?;
    waiting(output, "starting the service", || wait_until_ready(&client, &mut child, &paths.log_file(), before))?;
    let version: Version = client.get("/version")?;
    announce(&client, &format!("the service is running, process {}", version.pid), &version, output)?;
    if let Some(warning) = listen.warning() {
        output.note(&format!("warning: {warning}"));
    }
    // The service was started from here: what this process may not do it may not do either.
    if let Some(reason) = daemon::without_io_uring() {
        output.note(&format!("note: devices run without io_uring, which is slower: {reason}"));
    }
    Ok(())
}

/// Where devices are served. Certificates alone may also be there for the console.
fn exports(args: &Up) -> Result<Listen, Failure> {
    let for_console = args.listen.iter().any(|address| !address.ip().is_loopback());
    let nbd = if args.nbd.tls == TlsMode::Off && for_console {
        Listen {
            tcp: args.nbd_listen.clone(),
            open: args.nbd.nbd_open,
            client_memory: client_memory(&args.nbd),
            ..Listen::default()
        }
    } else {
        listen(&args.nbd_listen, &args.nbd)?
    };
    with_nvme(nbd, &args.nvme_listen, &args.nvme)
}

/// The same with NVMe.
///
/// # Errors
/// The file of hosts cannot be used.
pub fn with_nvme(nbd: Listen, addresses: &[SocketAddr], args: &Nvme) -> Result<Listen, Failure> {
    let nvme_hosts = args.nvme_hosts.as_deref().map(daemon::exports::nvme_hosts).transpose()?.unwrap_or_default();
    Ok(Listen { nvme: addresses.to_vec(), nvme_hosts, nvme_open: args.nvme_open, ..nbd })
}

/// Where the console and the API are served over TCP.
fn web(args: &Up) -> Result<Web, Failure> {
    let far = args.listen.iter().any(|address| !address.ip().is_loopback());
    let certificates = args.nbd.tls_certificates.as_ref().filter(|_| far);
    let tls = certificates.map(|directory| daemon::exports::web_certificates(directory)).transpose()?;
    Ok(Web { listen: args.listen.clone(), tls, names: args.host_name.clone(), program: PROGRAM })
}

/// The console's files, and what the lab knows.
const PROGRAM: Program = Program { asset: file, protocols, workloads };

fn protocols() -> Vec<Named> {
    let named = lab::protocol::shipped().iter().map(|shipped| {
        let found = lab::protocol::find(shipped.name).and_then(Result::ok);
        let description = found.map(|(protocol, _)| protocol.description).unwrap_or_default();
        Named { name: shipped.name.into(), description, kind: None }
    });
    named.collect()
}

fn workloads() -> Vec<Named> {
    let named = lab::workload::names().iter().map(|named| {
        let found = lab::workload::find(named.name).and_then(Result::ok);
        let description = found.map(|found| found.description).unwrap_or_default();
        Named { name: named.name.into(), description, kind: None }
    });
    named.collect()
}

/// A file of the console.
fn file(path: &str) -> Option<daemon::Asset> {
    let asset = console_assets::asset(path)?;
    Some(daemon::Asset {
        content_type: asset.content_type,
        etag: asset.etag,
        encoding: Some("gzip"),
        bytes: asset.gzip,
    })
}

/// Where and how NBD is served.
///
/// # Errors
/// A certificate cannot be used, or there are none.
pub fn listen(addresses: &[SocketAddr], args: &Nbd) -> Result<Listen, Failure> {
    let tls = match (args.tls, &args.tls_certificates) {
        (TlsMode::Off, None) => export::nbd::Tls::Off,
        (TlsMode::Off, Some(_)) => {
            return Err(Failure::invalid("--tls-certificates without TLS")
                .help("add --tls on to offer TLS, or --tls require to insist on it"));
        }
        (_, None) => return Err(Failure::invalid("TLS needs certificates").help("add --tls-certificates DIR")),
        (mode, Some(directory)) => daemon::exports::certificates(directory, mode == TlsMode::Require)?,
    };
    let verifies_clients = args.tls_certificates.as_deref().is_some_and(daemon::exports::verifies_clients);
    let client_memory = client_memory(args);
    Ok(Listen {
        tcp: addresses.to_vec(),
        tls,
        verifies_clients,
        client_memory,
        open: args.nbd_open,
        ..Listen::default()
    })
}

fn client_memory(args: &Nbd) -> Option<usize> {
    args.client_memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}

fn announce(client: &Client, what: &str, version: &Version, output: Output) -> Result<(), Failure> {
    let health: Health = client.get("/health")?;
    let value = json!({
        "pid": version.pid,
        "version": version.version,
        "attached": health.attached,
        "failed": health.failed,
        "addresses": health.addresses,
        "web": health.web,
    });
    output.result(&value, || {
        let mut text = format!("{what}; devices attached: {}", health.attached);
        if health.failed > 0 {
            text.push_str(&format!(", not attached: {} (see `vsl status --errors`)", health.failed));
        }
        text.push('\n');
        let addresses = health.addresses.iter().chain(&health.web);
        addresses.for_each(|address| text.push_str(&format!("{address}\n")));
        text
    })
}

/// Starts this program again, as the service in the background.
fn start(args: &Up, paths: &Paths) -> Result<Child, Failure> {
    let path = paths.log_file();
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| Failure::io(&path, &error))?;
    let program = std::env::current_exe().map_err(|error| Failure::failed(format!("this program's path: {error}")))?;
    let mut command = Command::new(&program);
    command.args(["up", "--foreground", "--new-session"]);
    for address in &args.nbd_listen {
        command.arg("--nbd-listen").arg(address.to_string());
    }
    if args.nbd.nbd_open {
        command.arg("--nbd-open");
    }
    if args.vhost {
        command.arg("--vhost");
    }
    if let Some(bytes) = args.nbd.client_memory {
        command.args(["--client-memory", &bytes.to_string()]);
    }
    if let Some(directory) = &args.nbd.tls_certificates {
        let mode = match args.nbd.tls {
            TlsMode::Off => "off",
            TlsMode::On => "on",
            TlsMode::Require => "require",
        };
        command.args(["--tls", mode, "--tls-certificates"]).arg(directory);
    }
    for address in &args.nvme_listen {
        command.arg("--nvme-listen").arg(address.to_string());
    }
    if let Some(file) = &args.nvme.nvme_hosts {
        command.arg("--nvme-hosts").arg(file);
    }
    if args.nvme.nvme_open {
        command.arg("--nvme-open");
    }
    for address in &args.listen {
        command.arg("--listen").arg(address.to_string());
    }
    for name in &args.host_name {
        command.arg("--host-name").arg(name);
    }
    if let Some(log) = &args.log {
        command.arg("--log").arg(log);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| Failure::io(&program, &error))
}

fn wait_until_ready(client: &Client, child: &mut Child, log: &Path, before: u64) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if client.get::<Health>("/health").is_ok_and(|health| health.ready) {
            return Ok(());
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(Failure::failed(format!("the service did not start ({status}):\n{}", tail(log, before)))
                .help(format!("the whole log is in {}", log.display())));
        }
        std::thread::sleep(POLL);
    }
    Err(Failure::failed(format!("the service is still attaching its devices after {} s", PATIENCE.as_secs()))
        .help(format!("`vsl status` shows how far it is; its log is {}", log.display())))
}

/// The end of the log, as far as it was written since it was so long.
fn tail(path: &Path, before: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL).max(before)))?;
        let mut bytes = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_string())
    };
    read().unwrap_or_else(|error| format!("{}: {error}", path.display()))
}

pub fn down(args: &Force, output: Output) -> Result<(), Failure> {
    let paths = Paths::from_environment();
    if !Lock::is_taken(&paths.lock_file()) {
        output.note("the service is not running");
        return output.result(&json!({ "stopped": false }), String::new);
    }
    let client = Client::new(&paths)?;
    let request = DetachRequest { force: args.force };
    client.send::<()>(Method::POST, "/shutdown", &request)?;
    waiting(output, "stopping the service: waiting for outstanding requests", || {
        Lock::wait_until_free(&paths.lock_file())
    })?;
    how_it_stopped(&paths)?;
    output.note("the service has stopped");
    output.result(&json!({ "stopped": true }), String::new)
}
