//! The HTTP client: requests to the service over its Unix socket.

use std::path::{Path, PathBuf};

use daemon::api::{DeviceView, PREFIX};
use daemon::{Failure, Paths, Target};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// The largest answer that is taken, bytes.
const ANSWER_LIMIT: usize = 64 << 20;

/// The service, as seen from here.
pub struct Client {
    socket: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// A client of the service in these directories; whether it runs shows with the first request.
    ///
    /// # Errors
    /// The operating system gives no event queue.
    pub fn new(paths: &Paths) -> Result<Client, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(|error| Failure::failed(format!("the client cannot start: {error}")))?;
        Ok(Client { socket: paths.api_socket(), runtime })
    }

    /// `GET`.
    ///
    /// # Errors
    /// The service does not run, or says no.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(Method::GET, path, None)
    }

    /// `GET` of something that is no JSON.
    ///
    /// # Errors
    /// The service does not run, or says no.
    pub fn fetch(&self, path: &str) -> Result<Bytes, Failure> {
        self.runtime.block_on(exchange(&self.socket, Method::GET, path, None))
    }

    /// A request with a body.
    ///
    /// # Errors
    /// The service does not run, or says no.
    pub fn send<T: DeserializeOwned>(&self, method: Method, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::failed(format!("the request: {error}")))?;
        self.call(method, path, Some(body))
    }

    fn call<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<T, Failure> {
        let answer = self.runtime.block_on(exchange(&self.socket, method, path, body))?;
        serde_json::from_slice(if answer.is_empty() { b"null" } else { &answer }).map_err(|error| {
            Failure::failed(format!("the service's answer is not understood: {error}"))
                .help("service and vsl are of different versions: restart the service with `vsl down` and `vsl up`")
        })
    }

    /// An attached device by its name or the path of one of its files. Nothing when the service does not know it.
    ///
    /// # Errors
    /// The service does not run, or says no.
    pub fn find(&self, device: &str) -> Result<Option<DeviceView>, Failure> {
        let devices: Vec<DeviceView> = self.get("/devices")?;
        let asked = files(device);
        let has = |view: &DeviceView| {
            view.text("path") == device || files(view.text("path")).iter().any(|file| asked.contains(file))
        };
        let by_name = devices.iter().position(|view| view.text("name") == device);
        let at = by_name.or_else(|| devices.iter().position(has));
        Ok(at.and_then(|at| devices.into_iter().nth(at)))
    }

    /// An attached device by its name or the path of one of its files.
    ///
    /// # Errors
    /// There is none; or the service does not run, or says no.
    pub fn attached(&self, device: &str) -> Result<DeviceView, Failure> {
        self.find(device)?.ok_or_else(|| {
            let failure = Failure::not_found(format!("{device} is not attached"));
            if Path::new(device).exists() {
                failure.help(format!("`vsl attach {device}` attaches it"))
            } else {
                failure.help("`vsl status` lists attached devices, `vsl attach PATH` attaches one")
            }
        })
    }
}

/// The files of a device that is named so, each by its full path.
fn files(device: &str) -> Vec<PathBuf> {
    let Ok(Target::Files(paths)) = Target::parse(device) else { return Vec::new() };
    // One of several may be missing.
    paths
        .into_iter()
        .filter_map(|path| std::fs::canonicalize(&path).or_else(|_| std::path::absolute(&path)).ok())
        .collect()
}

/// The failure of having no service to talk to.
fn not_running(socket: &Path) -> Failure {
    Failure::not_found(format!("the service is not running (nobody listens on {})", socket.display()))
        .help("`vsl up` starts it; OPENVSL_RUNTIME_DIR must be the same for both")
}

async fn exchange(socket: &Path, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Bytes, Failure> {
    use std::io::ErrorKind;
    let stream = UnixStream::connect(socket).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => not_running(socket),
        ErrorKind::PermissionDenied => Failure::forbidden(format!("{}: {error}", socket.display()))
            .help("run vsl as the user who runs the service, or as root"),
        _ => Failure::failed(format!("{}: {error}", socket.display())),
    })?;
    // In a directory that everybody can write to, somebody else's service could wait for us.
    let me = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(server) if server.uid() == me || server.uid() == 0 || me == 0 => {}
        Ok(server) => {
            let error = format!("{}: the service there belongs to user {}", socket.display(), server.uid());
            return Err(Failure::forbidden(error).help("set OPENVSL_RUNTIME_DIR to the directory of your own service"));
        }
        Err(error) => return Err(Failure::failed(format!("{}: {error}", socket.display()))),
    }
    let broken = |error: hyper::Error| {
        Failure::failed(format!("the service broke off: {error}")).help("its log may say why; see `vsl status`")
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::builder()
        .method(method)
        .uri(format!("{PREFIX}{path}"))
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.unwrap_or_default())))
        .map_err(|error| Failure::invalid(format!("the request cannot be sent: {error}")))?;
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let answer = Limited::new(response.into_body(), ANSWER_LIMIT)
        .collect()
        .await
        .map_err(|error| Failure::failed(format!("the service broke off: {error}")))?
        .to_bytes();
    drop(sender);
    driver.abort();
    if status.is_success() {
        return Ok(answer);
    }
    Err(serde_json::from_slice(&answer).unwrap_or_else(|_| Failure::failed(format!("the service answered {status}"))))
}
