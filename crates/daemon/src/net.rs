//! The API's TCP sockets: plain on loopback, TLS elsewhere.

mod seats;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::Failure;
use crate::access::{Peer, source};
use seats::Seats;
pub use seats::Standing;

/// How long a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a request's head may take, and how long a connection may be without a request.
const HEAD: Duration = Duration::from_secs(30);
/// How long a connection may be without a byte in either direction. Streams send something every 15 seconds.
const IDLE: Duration = Duration::from_secs(90);
/// How long to wait when the operating system has no more sockets for us.
const SCARCE: Duration = Duration::from_millis(100);

/// Serves the API on a listening TCP socket until `stop`. With `tls` its clients must use it.
///
/// # Errors
/// The socket cannot be used.
pub async fn serve(
    listener: std::net::TcpListener,
    tls: Option<Arc<ServerConfig>>,
    app: Router,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let (tls, seats) = (tls.map(TlsAcceptor::from), Seats::default());
    loop {
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!("a connection to the API failed: {error}");
                    tokio::time::sleep(SCARCE).await;
                    continue;
                }
            },
            () = told(&mut stop) => return Ok(()),
        };
        let Some(seat) = seats.take(source(address.ip())) else {
            tracing::debug!(%address, "no room for one more connection");
            continue;
        };
        // Answers are small; waiting to fill a segment would only make them late.
        let _ = stream.set_nodelay(true);
        let (tls, app, mut stop) = (tls.clone(), app.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = connection(stream, address, tls, app, seat.standing(), &mut stop) => {}
                () = seat.must_leave() => tracing::debug!(%address, "made room for another connection"),
            }
        });
    }
}

/// One connection, from its handshake to its end.
async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    app: Router,
    standing: Standing,
    stop: &mut watch::Receiver<bool>,
) {
    let peer = Peer::Tcp { address, secure: tls.is_some() };
    let transport = match tls {
        None => Transport::Plain(stream),
        Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => Transport::Secure(Box::new(stream)),
            Ok(Err(error)) => return tracing::debug!(%address, "TLS: {error}"),
            Err(_) => return,
        },
    };
    let stream = Stream { transport, idle: Box::pin(tokio::time::sleep(IDLE)) };
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(standing.clone());
        app.clone().oneshot(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = told(stop) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, "a connection to the API ended: {error}");
    }
}

/// Waits until the service stops.
async fn told(stop: &mut watch::Receiver<bool>) {
    // Whoever could still say so being gone is as good.
    drop(stop.wait_for(|stop| *stop).await);
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

enum Transport {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// A connection. One that says nothing for too long ends.
struct Stream {
    transport: Transport,
    idle: Pin<Box<Sleep>>,
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
