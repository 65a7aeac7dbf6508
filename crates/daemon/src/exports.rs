//! Our side of the `export` crate: the servers, one a protocol, that serve devices by name.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use export::nbd::Tls;
use export::nvme::Hosts;
use export::vhost;
use export::{ClientInfo, Clients, Listener};

use rustix::fs::Mode;

use crate::Failure;
use crate::api::{Client, NvmeQueue, NvmeTarget};
use crate::handle::Handle;
use crate::paths::socket_permissions;

/// Where and how devices are exported, besides the Unix socket.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    /// TCP addresses.
    pub tcp: Vec<SocketAddr>,
    /// Whether clients may or must use TLS.
    pub tls: Tls,
    /// Clients that use TLS must show a certificate that the authority signed.
    pub verifies_clients: bool,
    /// Memory that clients may share, bytes; the server's default where nobody said.
    pub client_memory: Option<usize>,
    /// Strangers may use the devices over NBD, from wherever they come.
    pub open: bool,
    /// Addresses for NVMe over TCP.
    pub nvme: Vec<SocketAddr>,
    /// Which hosts may connect over NVMe.
    pub nvme_hosts: Hosts,
    /// Hosts that are not known by a secret may use the devices over NVMe, from wherever they come.
    pub nvme_open: bool,
    /// Each device has a vhost-user socket too.
    pub vhost: bool,
}

impl Listen {
    /// Whether every client beyond the Unix socket has shown a certificate.
    fn knows_clients(&self) -> bool {
        matches!(self.tls, Tls::Require(_)) && self.verifies_clients
    }

    /// What whoever asked for this may have overlooked: TLS without an authority hides what is said, not who says it.
    pub fn warning(&self) -> Option<&'static str> {
        (matches!(self.tls, Tls::Require(_)) && !self.verifies_clients).then_some(
            "NBD clients are not asked for certificates: whoever can connect may read and write every device; \
             put the authority's ca-cert.pem into the directory of --tls-certificates to know them",
        )
    }

    /// Those who are served, over all protocols.
    pub fn clients(&self) -> Arc<Clients> {
        Arc::new(self.client_memory.map_or_else(Clients::default, Clients::new))
    }

    /// Refuses addresses beyond loopback where nobody is known, unless that was asked for.
    ///
    /// # Errors
    /// One of its own, or of the sockets that a supervisor passed, is such an address.
    pub fn check(&self, inherited: &[Listener]) -> Result<(), Failure> {
        let far = |own: &[SocketAddr], nvme: bool| {
            let passed =
                inherited.iter().filter(|listener| is_nvme(listener) == nvme).filter_map(Listener::tcp_address);
            let mut addresses = own.iter().copied().chain(passed);
            addresses.find(|address| !address.ip().to_canonical().is_loopback())
        };
        let refuse = |protocol: &str, address: SocketAddr| {
            Failure::invalid(format!(
                "{address}: over {protocol}, whoever reaches this address could read and write every device"
            ))
        };
        if let Some(address) = far(&self.tcp, false).filter(|_| !self.open && !self.knows_clients()) {
            return Err(refuse("NBD", address).help(
                "ask clients for certificates with --tls require and a ca-cert.pem in --tls-certificates, listen on \
                 loopback, or add --nbd-open if everybody may",
            ));
        }
        if let Some(address) = far(&self.nvme, true).filter(|_| !self.nvme_open && !self.nvme_hosts.are_known()) {
            return Err(refuse("NVMe", address).help(
                "name the hosts and their secrets in a file for --nvme-hosts, listen on loopback, or add --nvme-open if \
                 everybody may",
            ));
        }
        Ok(())
    }
}

/// The name by which a service manager says that a socket is for NVMe.
const NVME_SOCKET_NAME: &str = "nvme";

fn is_nvme(listener: &Listener) -> bool {
    listener.name() == NVME_SOCKET_NAME
}

/// The hosts in a file, as `--nvme-hosts` names it.
///
/// # Errors
/// The file cannot be read, or a line is not what it should be.
pub fn nvme_hosts(file: &Path) -> Result<Hosts, Failure> {
    Hosts::load(file).map_err(|error| {
        Failure::invalid(error.to_string()).help("`nvme gen-dhchap-key` makes secrets; docs/nvme.md says more")
    })
}

/// Whether clients must show a certificate: where the directory of certificates holds the authority's.
pub fn verifies_clients(directory: &Path) -> bool {
    directory.join("ca-cert.pem").exists()
}

/// TLS with the certificates in a directory. If it holds an authority's too, clients must show one that this signed.
///
/// # Errors
/// A file is missing or is not what it should be.
pub fn certificates(directory: &Path, required: bool) -> Result<Tls, Failure> {
    let verify_clients = verifies_clients(directory);
    let config = export::nbd::tls::load(directory, verify_clients).map_err(|error| {
        Failure::invalid(error.to_string())
            .help("the directory needs server-cert.pem and server-key.pem, and ca-cert.pem only to verify clients")
    })?;
    Ok(if required { Tls::Require(config) } else { Tls::On(config) })
}

/// TLS of the API with the certificates in a directory. Clients are known by their keys, not by certificates.
///
/// # Errors
/// A file is missing or is not what it should be.
pub fn web_certificates(directory: &Path) -> Result<Arc<rustls::ServerConfig>, Failure> {
    export::nbd::tls::load(directory, false).map_err(|error| {
        Failure::invalid(error.to_string()).help("the directory needs server-cert.pem and server-key.pem")
    })
}

/// The Unix sockets of a service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sockets<'a> {
    /// For NBD.
    pub nbd: Option<&'a Path>,
    /// For NVMe.
    pub nvme: Option<&'a Path>,
}

/// The servers of all protocols. Dropping them stops accepting.
#[derive(Clone)]
pub struct Servers {
    nbd: export::nbd::Server,
    nvme: export::nvme::Server,
    /// TCP addresses on which NBD is served.
    pub nbd_tcp: Vec<SocketAddr>,
    /// TCP addresses on which NVMe is served.
    pub nvme_tcp: Vec<SocketAddr>,
}

impl Servers {
    /// Starts them on Unix sockets, on sockets that a supervisor passed, and on TCP. Their clients share memory with `clients`.
    /// The first `device`, with its name and whether it takes no writes, is served before anybody is let in: a client may wait at
    /// a passed socket already.
    ///
    /// # Errors
    /// An address cannot be bound, or the device's thread has ended.
    pub fn start(
        inherited: Vec<Listener>,
        sockets: Sockets<'_>,
        listen: &Listen,
        clients: &Arc<Clients>,
        device: Option<(&str, &Handle, bool)>,
    ) -> Result<Servers, Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("serving devices: {error}"));
        let taken = |error: std::io::Error| failed(error).help(TAKEN);
        listen.check(&inherited)?;
        if let Some(warning) = listen.warning() {
            tracing::warn!("{warning}");
        }
        let options = export::nbd::Options { tls: listen.tls.clone(), ..export::nbd::Options::default() };
        let nbd = export::nbd::Server::new(options, clients).map_err(failed)?;
        let options = export::nvme::Options { hosts: listen.nvme_hosts.clone(), ..export::nvme::Options::default() };
        let nvme = export::nvme::Server::new(options, clients).map_err(failed)?;
        let (mut for_nvme, mut for_nbd): (Vec<_>, Vec<_>) = inherited.into_iter().partition(is_nvme);
        if let Some(socket) = sockets.nbd {
            for_nbd.push(private(socket, "the NBD server")?);
        }
        if let Some(socket) = sockets.nvme {
            for_nvme.push(private(socket, "the NVMe server")?);
        }
        for (addresses, listeners) in [(&listen.tcp, &mut for_nbd), (&listen.nvme, &mut for_nvme)] {
            for address in addresses {
                listeners.push(Listener::tcp(*address).map_err(taken)?);
            }
        }
        // Where a passed socket listens is as good an address as one of ours.
        let tcp = |listeners: &[Listener]| listeners.iter().filter_map(Listener::tcp_address).collect();
        let (nbd_tcp, nvme_tcp) = (tcp(&for_nbd), tcp(&for_nvme));
        let servers = Servers { nbd, nvme, nbd_tcp, nvme_tcp };
        if let Some((name, handle, read_only)) = device {
            servers.add(name, handle, read_only)?;
        }
        for listener in for_nbd {
            servers.nbd.listen(listener).map_err(failed)?;
        }
        for listener in for_nvme {
            servers.nvme.listen(listener).map_err(failed)?;
        }
        Ok(servers)
    }

    /// Serves a device under this name.
    ///
    /// # Errors
    /// The device's thread has ended.
    pub fn add(&self, name: &str, handle: &Handle, read_only: bool) -> Result<(), Failure> {
        let (description, device) = (handle.info()?.label, handle.worker().clone());
        let uuid = handle.facts().uuid.clone();
        self.nvme.add_export(export::nvme::Export { name: name.into(), uuid, read_only, device: device.clone() });
        self.nbd.add_export(export::nbd::Export { name: name.into(), description, read_only, device });
        Ok(())
    }

    /// Serves it no more.
    pub fn remove(&self, name: &str) {
        self.nbd.remove_export(name);
        self.nvme.remove_export(name);
    }

    /// Serves one NBD client on standard input and output, until it is gone.
    ///
    /// # Errors
    /// The descriptors cannot be used.
    pub fn serve_stdio(&self) -> std::io::Result<()> {
        export::nbd::serve_stdio(&self.nbd)
    }
}

/// What to do where nobody can listen.
const TAKEN: &str =
    "choose another address, or find out with `ss -lp` who listens there; a socket's path is at most 107 bytes";

/// A Unix socket that from its first moment is for those only who may use it.
fn private(socket: &Path, who: &str) -> Result<Listener, Failure> {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let listener = Listener::unix(socket).map_err(|error| Failure::failed(format!("{who}: {error}")).help(TAKEN))?;
    std::fs::set_permissions(socket, socket_permissions(socket)).map_err(|error| Failure::io(socket, &error))?;
    Ok(listener)
}

/// Serves a device as the disk of a virtual machine, on a Unix socket of its own.
///
/// # Errors
/// The socket cannot be made.
pub fn serve_vhost(
    name: &str,
    handle: &Handle,
    read_only: bool,
    socket: &Path,
    clients: &Arc<Clients>,
) -> Result<vhost::Server, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("the vhost-user server: {error}"));
    let options = vhost::Options { read_only, ..vhost::Options::default() };
    let server = vhost::Server::new(name, handle.worker().clone(), options, clients).map_err(failed)?;
    server.listen(private(socket, "the vhost-user server")?).map_err(failed)?;
    Ok(server)
}

/// A client in the API's words.
pub fn client(client: ClientInfo) -> Client {
    let since = client.since.duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs());
    Client {
        id: client.id as u64,
        protocol: client.protocol.into(),
        peer: client.peer,
        tls: client.tls,
        since,
        requests: client.requests,
        read_bytes: client.read_bytes,
        written_bytes: client.written_bytes,
        in_flight: client.in_flight,
        nvme: client.nvme.map(|nvme| NvmeQueue {
            host: nvme.host,
            controller: nvme.controller,
            queue: nvme.queue,
            header_digest: nvme.header_digest,
            data_digest: nvme.data_digest,
        }),
        last_error: client.last_error,
        memory_bytes: client.memory_bytes,
    }
}

/// The servers that serve every device by its name.
pub struct Exports {
    /// Gone once the service stops.
    servers: Mutex<Option<Servers>>,
    socket: PathBuf,
    nvme_socket: Option<PathBuf>,
    nbd_tcp: Vec<SocketAddr>,
    nvme_tcp: Vec<SocketAddr>,
    /// Whether NBD clients need TLS.
    secure: bool,
    clients: Arc<Clients>,
    /// Of each device, where they have vhost-user sockets.
    vhost: Option<Mutex<BTreeMap<String, vhost::Server>>>,
}

impl Exports {
    /// Starts the servers on Unix sockets, which are for their owner only, and wherever else is asked.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub fn start(
        socket: &Path,
        nvme_socket: Option<&Path>,
        inherited: Vec<Listener>,
        listen: &Listen,
    ) -> Result<Exports, Failure> {
        let clients = listen.clients();
        let sockets = Sockets { nbd: Some(socket), nvme: nvme_socket };
        let servers = Servers::start(inherited, sockets, listen, &clients, None)?;
        Ok(Exports {
            socket: socket.into(),
            nvme_socket: nvme_socket.map(Into::into),
            nbd_tcp: servers.nbd_tcp.clone(),
            nvme_tcp: servers.nvme_tcp.clone(),
            secure: matches!(listen.tls, Tls::Require(_)),
            servers: Mutex::new(Some(servers)),
            clients,
            vhost: listen.vhost.then(Mutex::default),
        })
    }

    fn servers(&self) -> Option<Servers> {
        // A clone of a handle or nothing: no panic leaves it half-way.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves a device.
    ///
    /// # Errors
    /// The service is stopping.
    pub fn add(&self, name: &str, handle: &Handle, read_only: bool) -> Result<(), Failure> {
        let servers = self.servers().ok_or_else(|| Failure::conflict("the service is stopping"))?;
        if let (Some(vhost), Some(socket)) = (&self.vhost, self.vhost_socket(name)) {
            let server = serve_vhost(name, handle, read_only, &socket, &self.clients)?;
            vhost.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), server);
        }
        servers.add(name, handle, read_only)
    }

    /// Serves it no more.
    pub fn remove(&self, name: &str) {
        if let Some(servers) = self.servers() {
            servers.remove(name);
        }
        if let Some(vhost) = &self.vhost {
            let server = vhost.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
            // Its thread ends outside of the lock.
            drop(server);
        }
    }

    /// Takes no new connections.
    pub fn stop_accepting(&self) {
        drop(self.servers.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(vhost) = &self.vhost {
            let servers = std::mem::take(&mut *vhost.lock().unwrap_or_else(PoisonError::into_inner));
            drop(servers);
        }
    }

    /// Where a device is the disk of a virtual machine, if devices are.
    pub fn vhost_socket(&self, name: &str) -> Option<PathBuf> {
        self.vhost.as_ref().map(|_| self.socket.with_file_name(format!("{name}.vhost")))
    }

    /// The Unix socket on which clients without TLS are served.
    pub fn plain_socket(&self) -> Option<&Path> {
        (!self.secure).then_some(self.socket.as_path())
    }

    /// Addresses without an export name.
    pub fn addresses(&self) -> Vec<String> {
        std::iter::once(self.uri(""))
            .chain(self.nbd_tcp.iter().map(|address| tcp_uri(*address, "", self.secure)))
            .collect()
    }

    /// Where clients on this machine find a device.
    pub fn uri(&self, name: &str) -> String {
        unix_uri(&self.socket, name, self.secure)
    }

    /// Where a device is to be had over NVMe; nothing where NVMe is not served on TCP.
    pub fn nvme_target(&self, uuid: &str) -> Option<NvmeTarget> {
        let address = self.nvme_tcp.first()?;
        let subsystem = nvme::fabrics::subsystem_name(uuid);
        Some(NvmeTarget { address: reachable(address.ip()), port: address.port(), subsystem })
    }

    /// Where programs on this machine find a device that bring an NVMe host of their own, as the SDK does.
    pub fn nvme_uri(&self, uuid: &str) -> Option<String> {
        let socket = self.nvme_socket.as_deref()?;
        Some(uri_on(socket, "nvme+unix", &nvme::fabrics::subsystem_name(uuid)))
    }

    /// Where clients find it over TCP.
    pub fn tcp_uri(&self, name: &str) -> Option<String> {
        self.nbd_tcp.first().map(|address| tcp_uri(*address, name, self.secure))
    }
}

/// An address that a host can connect to: for one that stands for all addresses, this machine's.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// The address of an export on a Unix socket.
pub fn unix_uri(socket: &Path, name: &str, secure: bool) -> String {
    uri_on(socket, if secure { "nbds+unix" } else { "nbd+unix" }, name)
}

fn uri_on(socket: &Path, scheme: &str, name: &str) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut uri = format!("{scheme}:///{name}?socket=");
    for byte in socket.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(*byte)),
            // Writing to a string cannot fail.
            byte => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}

/// The address of an export over TCP.
pub fn tcp_uri(address: SocketAddr, name: &str, secure: bool) -> String {
    let scheme = if secure { "nbds" } else { "nbd" };
    format!("{scheme}://{address}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_paths_are_escaped_in_addresses() {
        assert_eq!(unix_uri(Path::new("/run/a.sock"), "fct0", false), "nbd+unix:///fct0?socket=/run/a.sock");
        assert_eq!(unix_uri(Path::new("/a b/?x&%"), "", true), "nbds+unix:///?socket=/a%20b/%3Fx%26%25");
    }
}
