//! One client on standard input and output, as `nbdkit -s` serves it.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{Shutdown, shutdown, sockopt};

use super::server::Server;

/// Serves the client on standard input (a socket), or on standard input and output (pipes), until it is gone.
///
/// # Errors
/// The descriptors cannot be used.
pub fn serve_stdio(server: &Server) -> io::Result<()> {
    let stdin = rustix::stdio::stdin().try_clone_to_owned()?;
    if sockopt::socket_type(&stdin).is_ok() {
        server.serve_connected(stdin, "standard input");
        return Ok(());
    }
    let stdout = rustix::stdio::stdout().try_clone_to_owned()?;
    let (ours, theirs) = UnixStream::pair()?;
    let feeding = ours.try_clone()?;
    std::thread::Builder::new().name("nbd-stdin".into()).spawn(move || {
        copy(stdin.into(), &feeding);
        // The client is done writing; what it asked for is still answered.
        let _ = shutdown(&feeding, Shutdown::Write);
    })?;
    let drain = std::thread::Builder::new().name("nbd-stdout".into()).spawn(move || copy_out(&ours, stdout.into()))?;
    server.serve_connected(OwnedFd::from(theirs), "standard input");
    // A thread that panicked has said so.
    let _ = drain.join();
    Ok(())
}

fn copy(mut from: std::fs::File, mut to: &UnixStream) {
    // The connection ends with either side; there is nobody to tell.
    let _ = io::copy(&mut from as &mut dyn Read, &mut to);
}

fn copy_out(mut from: &UnixStream, mut to: std::fs::File) {
    // As above.
    let _ = io::copy(&mut from, &mut to as &mut dyn Write);
}
