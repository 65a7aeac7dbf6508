//! Requests to others: webhooks, and other hosts' services. HTTP/1.1, one connection a request.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{Method, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Failure;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the first byte of an answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// Whose certificates count.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those that the system trusts.
    System,
    /// These, in PEM form, and what they signed.
    These(String),
}

/// Somewhere that is asked.
pub struct Remote {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
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

impl Remote {
    /// Somewhere.
    ///
    /// # Errors
    /// It is no address, or the certificates are none.
    pub fn new(uri: &Uri, trust: &Trust) -> Result<Remote, Failure> {
        let (host, port, secure) = parse(uri)?;
        let tls = secure.then(|| client_config(trust)).transpose()?;
        Ok(Remote { host, port, tls })
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
            None => self.exchange(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| self.unreachable("no name that a certificate could have"))?;
                let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
                let stream = tokio::time::timeout(CONNECT, connecting)
                    .await
                    .map_err(|_| self.unreachable(format!("no TLS handshake in {} s", CONNECT.as_secs())))?
                    .map_err(|error| self.unreachable(error))?;
                self.exchange(stream, request).await
            }
        }
    }

    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    async fn exchange<S>(&self, stream: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unreachable(error))?;
        // It ends with the answer's body, or when nobody wants that any more.
        tokio::spawn(async move { drop(connection.await) });
        tokio::time::timeout(ANSWER, sender.send_request(request))
            .await
            .map_err(|_| self.unreachable(format!("no answer in {} s", ANSWER.as_secs())))?
            .map_err(|error| self.unreachable(error))
    }
}

fn client_config(trust: &Trust) -> Result<Arc<ClientConfig>, Failure> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::System => {
            // Read once: hosts are asked every few seconds. Those that cannot be read are left out; without any, nobody is trusted.
            static FOUND: OnceLock<RootCertStore> = OnceLock::new();
            let found = FOUND.get_or_init(|| {
                let mut found = RootCertStore::empty();
                found.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                found
            });
            roots.clone_from(found);
        }
        Trust::These(pem) => {
            let wrong = |what: String| {
                Failure::invalid(format!("certificate: {what}"))
                    .help("paste the PEM text, beginning with -----BEGIN CERTIFICATE-----")
            };
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("there is none".into()));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::failed(format!("TLS: {error}")))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
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
