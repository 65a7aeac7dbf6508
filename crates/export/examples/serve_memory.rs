//! Serves a device in memory over NBD, for measurements and for trying clients.
//!
//! `serve_memory (SOCKET | ADDRESS:PORT | - | inherited) [MIB] [SECTOR]`

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use device::{AttachError, Device};
use export::Worker;
use export::nbd::{Export, Options, Server, Tls, serve_stdio, tls};
use export::{Listener, inherited};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let target =
        arguments.next().ok_or("usage: serve_memory (SOCKET | ADDRESS:PORT | - | inherited) [MIB] [SECTOR]")?;
    let mib: u64 = arguments.next().map_or(Ok(256), |mib| mib.parse())?;
    let sector: u32 = arguments.next().map_or(Ok(4096), |sector| sector.parse())?;
    let inherited = if target == "inherited" { inherited()? } else { Vec::new() };
    let device = Worker::spawn("memory", move |_| {
        Device::memory(mib << 20, sector)
            .map_err(|error| AttachError::Media { path: "memory".into(), what: error.to_string() })
    })?;
    // TLS, when a directory of PEM files is named.
    let mut options = Options::default();
    if let Some(directory) = std::env::var_os("TLS_CERTIFICATES") {
        options.tls = Tls::On(tls::load(Path::new(&directory), false)?);
    }
    let server = Server::new(options, &Arc::default())?;
    let export = Export { name: String::new(), description: "memory".into(), read_only: false, device };
    server.add_export(Export { name: "ro".into(), read_only: true, ..export.clone() });
    server.add_export(export);
    if target == "-" {
        return Ok(serve_stdio(&server)?);
    }
    if target == "inherited" {
        for listener in inherited {
            server.listen(listener)?;
        }
    } else {
        let listener = match target.parse::<SocketAddr>() {
            Ok(address) => Listener::tcp(address)?,
            Err(_) => Listener::unix(Path::new(&target))?,
        };
        println!("{}", server.listen(listener)?);
    }
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
