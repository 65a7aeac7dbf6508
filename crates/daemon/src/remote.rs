//! Requests to others: webhooks, and other hosts' services. HTTP/1.1, one connection a request.

mod trust;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Failure;

pub use trust::Trust;
use trust::client_config;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the first byte of an answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// Somewhere that is asked.
pub struct Remote {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    /// Its certificate was given.
    given: bool,
}

/// An address's host, port, and whether it uses TLS.
///
/// # Errors
/// It is none.
pub fn parse(uri: &Uri) -> Result<(String, u16, bool), Failure> {
    let wrong = || {
        Failure::invalid(format!("'{}' is no address", uri.to_string().escape_debug()))
            .help("write it like https://example.org:7420 or http://127.0.0.1:7420")
    };
    let secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong()),
    };
    let authority = uri.authority().ok_or_else(wrong)?;
    if authority.as_str().contains('@') {
        return Err(wrong());
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_string();
    if host.is_empty() {
        return Err(wrong());
    }
    Ok((host, authority.port_u16().unwrap_or(if secure { 443 } else { 80 }), secure))
}

/// Whether a host is this machine, so that nobody can listen in on the way.
pub fn is_near(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

impl Remote {
    /// Somewhere.
    ///
    /// # Errors
    /// It is no address, or the certificates are none.
    pub fn new(uri: &Uri, trust: &Trust) -> Result<Remote, Failure> {
        let (host, port, secure) = parse(uri)?;
        let tls = secure.then(|| client_config(trust)).transpose()?;
        Ok(Remote { host, port, tls, given: matches!(trust, Trust::These(_)) })
    }

    fn unreachable(&self, what: impl std::fmt::Display) -> Failure {
        Failure::unreachable(format!("{}:{}: {what}", self.host, self.port))
            .help("see whether the service runs there, and whether its address and key are right")
    }

    /// Sends a request, and gives the answer as soon as its head is there.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, String)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        self.send_within(ANSWER, method, path, headers, body).await
    }

    /// The same for what takes the other side so long at most.
    ///
    /// # Errors
    /// Nobody answers in time.
    pub async fn send_within(
        &self,
        patience: Duration,
        method: Method,
        path: &str,
        headers: &[(String, String)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, self.authority());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| Failure::invalid(format!("the request cannot be sent: {error}")))?;
        let stream = tokio::time::timeout(CONNECT, TcpStream::connect((self.host.as_str(), self.port)))
            .await
            .map_err(|_| self.unreachable(format!("no connection in {} s", CONNECT.as_secs())))?
            .map_err(|error| self.unreachable(error))?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.exchange(stream, request, patience).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| self.unreachable("no name that a certificate could have"))?;
                let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
                let stream = tokio::time::timeout(CONNECT, connecting)
                    .await
                    .map_err(|_| self.unreachable(format!("no TLS handshake in {} s", CONNECT.as_secs())))?
                    .map_err(|error| self.no_handshake(&error))?;
                self.exchange(stream, request, patience).await
            }
        }
    }

    fn no_handshake(&self, error: &std::io::Error) -> Failure {
        let cause = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        if self.given && matches!(cause, Some(rustls::Error::InvalidCertificate(_))) {
            return self.unreachable(format!("the certificate that was given does not vouch for the one that it shows: {error}")).help(
                "where it was changed on purpose, remove the host and add it with the new one; otherwise somebody stands in between",
            );
        }
        self.unreachable(error)
    }

    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<Response<Incoming>, Failure>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable(error))?;
        // It ends with the answer's body, or when nobody wants that any more.
        tokio::spawn(async move { drop(connection.await) });
        tokio::time::timeout(patience, sender.send_request(request))
            .await
            .map_err(|_| self.unreachable(format!("no answer in {} s", patience.as_secs())))?
            .map_err(|error| self.unreachable(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let parse = |text: &str| parse(&text.parse().expect(text));
        assert_eq!(parse("http://127.0.0.1:7420"), Ok(("127.0.0.1".into(), 7420, false)));
        assert_eq!(parse("https://[::1]/x"), Ok(("::1".into(), 443, true)));
        for text in ["/path", "ftp://x", "127.0.0.1:7420", "http://user:secret@host/"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn certificates_that_are_none_are_refused() {
        let uri: Uri = "https://db1:7420".parse().expect("an address");
        for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(Remote::new(&uri, &Trust::These(pem.into())).is_err(), "{pem}");
        }
        assert!(Remote::new(&uri, &Trust::System).is_ok());
    }
}
