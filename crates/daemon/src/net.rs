//! The API's TCP sockets: plain on loopback, TLS elsewhere.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::Failure;
use crate::access::Peer;

/// Connections at once.
const CONNECTIONS: usize = 256;
/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection may be without a byte in either direction. Streams send something every 15 seconds.
const IDLE: Duration = Duration::from_secs(90);
/// How long to wait when the operating system has no more sockets for us.
const SCARCE: Duration = Duration::from_millis(100);

/// A listening TCP socket of the API.
pub struct Tcp {
    accepted: mpsc::Receiver<(Stream, Peer)>,
    address: SocketAddr,
}

impl Tcp {
    /// Listens. With `tls` its clients must use it.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn listen(listener: std::net::TcpListener, tls: Option<Arc<ServerConfig>>) -> Result<Tcp, Failure> {
        let failed = |error: io::Error| Failure::failed(format!("the API's TCP socket: {error}"));
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (sender, accepted) = mpsc::channel(16);
        tokio::spawn(accept(listener, tls.map(TlsAcceptor::from), sender));
        Ok(Tcp { accepted, address })
    }
}

/// Binds an address.
///
/// # Errors
/// It is taken, or is not of this machine.
pub fn bind(address: SocketAddr) -> Result<std::net::TcpListener, Failure> {
    std::net::TcpListener::bind(address).map_err(|error| {
        Failure::failed(format!("{address}: the API cannot listen there: {error}"))
            .help("choose another address, or find out with `ss -lp` who listens there")
    })
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, sender: mpsc::Sender<(Stream, Peer)>) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!("a connection to the API failed: {error}");
                    tokio::time::sleep(SCARCE).await;
                    continue;
                }
            },
            () = sender.closed() => return,
        };
        // Answers are small; waiting to fill a segment would only make them late.
        let _ = stream.set_nodelay(true);
        let (tls, sender) = (tls.clone(), sender.clone());
        tokio::spawn(async move {
            let peer = Peer::Tcp { address, secure: tls.is_some() };
            let transport = match tls {
                None => Transport::Plain(stream),
                Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => Transport::Secure(Box::new(stream)),
                    Ok(Err(error)) => return tracing::debug!(%address, "TLS: {error}"),
                    Err(_) => return,
                },
            };
            let idle = Box::pin(tokio::time::sleep(IDLE));
            // Nobody takes it any more when the service stops.
            let _ = sender.send((Stream { transport, idle, _seat: seat }, peer)).await;
        });
    }
}

impl axum::serve::Listener for Tcp {
    type Io = Stream;
    type Addr = Peer;

    async fn accept(&mut self) -> (Stream, Peer) {
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            // The task that accepts ends only with the runtime.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer::Tcp { address: self.address, secure: false })
    }
}

enum Transport {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// A connection. One that says nothing for too long ends.
pub struct Stream {
    transport: Transport,
    idle: Pin<Box<Sleep>>,
    _seat: OwnedSemaphorePermit,
}

impl Stream {
    /// Notes that something came or went; or that nothing did for too long.
    fn moved<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.idle.as_mut().reset(Instant::now() + IDLE);
            return polled;
        }
        match self.idle.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let polled = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Secure(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        self.moved(cx, polled)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Secure(stream) => Pin::new(stream).poll_write(cx, buf),
        };
        self.moved(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
