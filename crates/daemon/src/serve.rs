//! The service's life: one instance, its sockets, its signals, and an orderly end.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustls::ServerConfig;
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::access::{Origins, Peer};
use crate::alerts::{self, Outgoing};
use crate::exports::{Exports, Listen};
use crate::hosts;
use crate::net;
use crate::paths::socket_permissions;
use crate::registry::Registry;
use crate::service::Service;
use crate::state::StateFile;
use crate::web::router;
use crate::{Failure, Paths, Program, ticker};

/// How long a request to the API or a job may go on once the service stops.
const GRACE: Duration = Duration::from_secs(5);

/// What a service is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its directories.
    pub paths: Paths,
    /// Where and how devices are exported, besides the Unix socket in the runtime directory.
    pub listen: Listen,
    /// Where the API and the console are served, besides the Unix socket.
    pub web: Web,
}

/// Where and how the API and the console are served over TCP.
#[derive(Clone)]
pub struct Web {
    /// TCP addresses.
    pub listen: Vec<SocketAddr>,
    /// TLS for those that are not loopback, which need it.
    pub tls: Option<Arc<ServerConfig>>,
    /// Names under which it may be asked, besides its addresses.
    pub names: Vec<String>,
    /// The console's files, and what the lab knows.
    pub program: Program,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").field("listen", &self.listen).field("names", &self.names).finish_non_exhaustive()
    }
}

impl Web {
    /// Binds the addresses. What is not loopback needs TLS and somebody who can sign in.
    fn bind(&self, service: &Service) -> Result<Vec<Bound>, Failure> {
        let mut bound = Vec::new();
        for address in &self.listen {
            let near = address.ip().is_loopback();
            if !near && self.tls.is_none() {
                return Err(Failure::invalid(format!("{address}: whoever reaches it could listen in"))
                    .help("add --tls-certificates DIR, or listen on 127.0.0.1"));
            }
            if !near && service.access.accounts().is_empty() {
                return Err(Failure::invalid(format!(
                    "{address}: nobody could sign in there, since there is no account"
                ))
                .help(
                    "start the service without it, `vsl account add NAME --role administrator`, then start it again",
                ));
            }
            let listener = net::bind(*address)?;
            bound.push(Bound { listener, tls: if near { None } else { self.tls.clone() } });
        }
        Ok(bound)
    }
}

struct Bound {
    listener: std::net::TcpListener,
    tls: Option<Arc<ServerConfig>>,
}

impl Bound {
    fn address(&self) -> Option<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Some(format!("{scheme}://{}/", self.listener.local_addr().ok()?))
    }
}

/// Held for as long as a service runs in a runtime directory.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock.
    ///
    /// # Errors
    /// Another service has it.
    pub fn take(path: &Path) -> Result<Lock, Failure> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| Failure::io(path, &error))?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            let who = match file.read_to_string(&mut pid) {
                Ok(_) if !pid.trim().is_empty() => format!("process {}", pid.trim()),
                _ => "another process".into(),
            };
            return Err(Failure::conflict(format!("a service is running already: {who} holds {}", path.display()))
                .help("use it as it is, or stop it with `vsl down`"));
        }
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| Failure::io(path, &error))?;
        Ok(Lock { _file: file })
    }

    /// Waits until no service holds the lock.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn wait_until_free(path: &Path) -> Result<(), Failure> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Failure::io(path, &error)),
        };
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockShared) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Failure::io(path, &error.into())),
            }
        }
    }

    /// Whether a service holds the lock.
    pub fn is_taken(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    }
}

/// Runs the service until a signal or the API stops it.
///
/// # Errors
/// It cannot start: another instance runs, a socket cannot be bound, a file is damaged.
pub fn run(options: &Options) -> Result<(), Failure> {
    let paths = &options.paths;
    let inherited = export::inherited().map_err(|error| {
        Failure::invalid(format!("inherited sockets: {error}")).help("pass listening sockets for NBD, or none")
    })?;
    paths.make()?;
    let _lock = Lock::take(&paths.lock_file())?;
    if let Some(reason) = media::ring::without_io_uring() {
        tracing::warn!(reason, "devices run without io_uring, which is slower");
    }
    // What an earlier service left there is not about this one. Where it cannot be removed, nothing was left.
    let _ = std::fs::remove_file(paths.stop_file());
    let state = StateFile::open(paths.devices_file())?;
    let api = bind(&paths.api_socket())?;
    let exports = Exports::start(&paths.nbd_socket(), Some(&paths.nvme_socket()), inherited, &options.listen)?;
    let registry = Arc::new(Registry::new(exports, state, paths.staging())?);
    let origins = Origins { names: options.web.names.clone() };
    let (service, outgoing) = Service::open(Arc::clone(&registry), &paths.state, origins, options.web.program)?;
    let bound = options.web.bind(&service)?;
    let addresses: Vec<String> = bound.iter().filter_map(Bound::address).collect();
    registry.set_web(addresses);
    let ending = Arc::new(AtomicBool::new(false));
    let jobs = Arc::clone(&service.jobs);
    let monitor = ticker::start(
        Arc::clone(&service.monitor),
        Arc::clone(&registry),
        Arc::clone(&service.alerting),
        Arc::clone(&ending),
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("the control plane cannot start: {error}")))?;
    let result = runtime.block_on(control(api, bound, service, outgoing));
    notify(&[NotifyState::Stopping]);
    ending.store(true, Ordering::Relaxed);
    jobs.end_all(GRACE);
    if monitor.join().is_err() {
        tracing::error!("the monitor failed");
    }
    let failures = registry.stop_all();
    runtime.shutdown_timeout(GRACE);
    remove(&paths.api_socket());
    tracing::info!("stopped");
    stopped(&paths.stop_file(), &failures);
    result
}

/// Leaves what went wrong while devices were detached to whoever waits for the end. The program itself ends well: a supervisor that
/// restarts what failed must not undo the stop that was asked for.
fn stopped(path: &Path, failures: &[Failure]) {
    if failures.is_empty() {
        return;
    }
    let written = serde_json::to_vec(failures).map_err(std::io::Error::from);
    if let Err(error) = written.and_then(|text| std::fs::write(path, text)) {
        tracing::warn!("{}: {error}", path.display());
    }
}

/// What is said of a stop in which devices were not detached cleanly.
fn not_clean(failures: &[Failure]) -> Failure {
    let errors: Vec<&str> = failures.iter().map(|failure| failure.error.as_str()).collect();
    Failure::failed(format!("the service has stopped, but not everything was written: {}", errors.join("; ")))
        .help("what was flushed is safe: the next attach replays the log; see to the store first")
}

/// What went wrong while the service that ran there stopped.
///
/// # Errors
/// Something did.
pub fn how_it_stopped(paths: &Paths) -> Result<(), Failure> {
    let Ok(text) = std::fs::read(paths.stop_file()) else { return Ok(()) };
    match serde_json::from_slice::<Vec<Failure>>(&text) {
        Ok(failures) if failures.is_empty() => Ok(()),
        Ok(failures) => Err(not_clean(&failures)),
        Err(error) => Err(Failure::failed(format!("{}: {error}", paths.stop_file().display()))),
    }
}

async fn control(
    api: UnixListener,
    bound: Vec<Bound>,
    service: Service,
    outgoing: mpsc::Receiver<Outgoing>,
) -> Result<(), Failure> {
    let failed = |what: &str, error: std::io::Error| Failure::failed(format!("{what}: {error}"));
    api.set_nonblocking(true).map_err(|error| failed("the API's socket", error))?;
    let listener = tokio::net::UnixListener::from_std(api).map_err(|error| failed("the API's socket", error))?;
    let (stop, registry) = (service.stop.clone(), Arc::clone(&service.registry));
    let mut stopped = stop.subscribe();
    let told = until_told()?;
    let (alerting, monitor) = (Arc::clone(&service.alerting), Arc::clone(&service.monitor));
    tokio::spawn(alerts::run(outgoing, move |alert, sent| alerting.note_sent(alert, sent, &monitor)));
    tokio::spawn(hosts::watch(Arc::clone(&service.hosts), stop.subscribe()));
    let app = router(service);
    for bound in bound {
        let server = net::serve(bound.listener, bound.tls, app.clone(), stop.subscribe());
        tokio::spawn(async move {
            if let Err(error) = server.await {
                tracing::error!("the API over TCP: {error}");
            }
        });
    }
    let mut until = stop.subscribe();
    let server = axum::serve(listener, app.into_make_service_with_connect_info::<Peer>())
        .with_graceful_shutdown(async move { drop(until.wait_for(|stop| *stop).await) });
    let mut server = tokio::spawn(async move { server.await });

    let attaching = {
        let registry = Arc::clone(&registry);
        tokio::task::spawn_blocking(move || {
            registry.attach_remembered();
            let health = registry.health();
            tracing::info!(attached = health.attached, failed = health.failed, "ready");
            let status = format!("{} attached, {} failed", health.attached, health.failed);
            notify(&[NotifyState::Ready, NotifyState::Status(&status)]);
        })
    };
    let early = tokio::select! {
        () = told => None,
        _ = stopped.wait_for(|stop| *stop) => None,
        ended = &mut server => Some(ended),
    };
    stop.send_replace(true);
    let ended = match early {
        Some(ended) => Ok(ended),
        None => tokio::time::timeout(GRACE, server).await,
    };
    // A device that is being attached is let in first, so that it can be detached cleanly.
    if let Err(error) = attaching.await {
        tracing::error!("attaching devices: {error}");
    }
    match ended {
        Ok(Ok(Err(error))) => Err(failed("the API's server", error)),
        Ok(Err(error)) => Err(Failure::failed(format!("the API's server: {error}"))),
        // A client of the API that does not go away does not keep the service.
        Ok(Ok(Ok(()))) | Err(_) => Ok(()),
    }
}

/// Waits for one of the signals that end a program: SIGTERM, SIGINT, and SIGHUP of a terminal that goes away.
///
/// # Errors
/// The signals cannot be caught, or there is no runtime to wait in.
pub fn until_told() -> Result<impl Future<Output = ()>, Failure> {
    let catch = |kind| signal(kind).map_err(|error| Failure::failed(format!("signals: {error}")));
    let mut terminate = catch(SignalKind::terminate())?;
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut hangup = catch(SignalKind::hangup())?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hangup.recv() => "SIGHUP",
        };
        tracing::info!("told to stop by {name}");
    })
}

/// Binds a socket for its owner only, in place of one that a dead service left behind (we hold the lock).
fn bind(path: &Path) -> Result<UnixListener, Failure> {
    let socket = |error: std::io::Error| {
        Failure::failed(format!("{}: the socket cannot be made: {error}", path.display()))
            .help("a socket's path is at most 107 bytes; OPENVSL_RUNTIME_DIR chooses another directory")
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(socket(error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(socket)?;
    std::fs::set_permissions(path, socket_permissions(path)).map_err(socket)?;
    Ok(listener)
}

fn remove(socket: &Path) {
    if let Err(error) = std::fs::remove_file(socket) {
        tracing::warn!("{}: not removed: {error}", socket.display());
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("systemd was not told: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_service_at_a_time() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("lock");
        assert!(!Lock::is_taken(&path));
        Lock::wait_until_free(&path).expect("nobody has it");
        let lock = Lock::take(&path).expect("free");
        assert!(Lock::is_taken(&path));
        let failure = Lock::take(&path).expect_err("taken");
        assert!(failure.error.contains(&format!("process {}", std::process::id())), "{}", failure.error);
        drop(lock);
        Lock::wait_until_free(&path).expect("free again");
        Lock::take(&path).expect("free again");
    }

    #[test]
    fn a_stop_that_left_something_behind_is_a_failure() {
        let directory = tempfile::tempdir().expect("tempdir");
        let paths = Paths { runtime: directory.path().into(), state: directory.path().into() };
        stopped(&paths.stop_file(), &[]);
        how_it_stopped(&paths).expect("nothing went wrong");
        let failures = [Failure::failed("a: no room"), Failure::failed("b: gone")];
        stopped(&paths.stop_file(), &failures);
        let said = how_it_stopped(&paths).expect_err("two devices");
        assert!(said.error.ends_with("a: no room; b: gone") && said.help.contains("the next attach"), "{said}");
    }

    #[test]
    fn a_stale_socket_is_replaced_and_private() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("s");
        drop(bind(&path).expect("bound"));
        bind(&path).expect("bound again");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_named() {
        let path = Path::new("/tmp").join("x".repeat(120));
        let failure = bind(&path).expect_err("too long");
        assert!(failure.error.contains("xxx: the socket cannot be made"), "{}", failure.error);
    }
}
