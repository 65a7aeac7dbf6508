//! TLS settings, from a directory of PEM files as `nbdkit` and QEMU lay it out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Whether clients may or must use TLS.
#[derive(Clone, Debug, Default)]
pub enum Tls {
    /// STARTTLS is unknown.
    #[default]
    Off,
    /// STARTTLS works; plain clients are served too.
    On(Arc<ServerConfig>),
    /// Nothing but STARTTLS works until TLS is on.
    Require(Arc<ServerConfig>),
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing or not what it should be.
    #[error("{path}: {error}; expected {expected}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// The files do not fit together.
    #[error("{path}: certificate and key were refused: {error}")]
    Config {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: rustls::Error,
    },
    /// The certificate authority cannot verify clients.
    #[error("{path}: cannot verify clients with it: {error}")]
    Verifier {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
}

/// Reads `server-cert.pem` and `server-key.pem`, and with `verify_clients` also `ca-cert.pem`, from a directory.
///
/// # Errors
/// See [`TlsError`].
pub fn load(directory: &Path, verify_clients: bool) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(&directory.join("server-cert.pem"))?;
    let key_path = directory.join("server-key.pem");
    let key = PrivateKeyDer::from_pem_file(&key_path).map_err(|error| TlsError::File {
        path: key_path,
        error: error.to_string(),
        expected: "the server's private key in PEM form",
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config_error = |error| TlsError::Config { path: directory.to_owned(), error };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(config_error)?;
    let builder = if verify_clients {
        let path = directory.join("ca-cert.pem");
        let verifier_error = |error: String| TlsError::Verifier { path: path.clone(), error };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&path)? {
            roots.add(certificate).map_err(|error| verifier_error(error.to_string()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| verifier_error(error.to_string()))?;
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    Ok(Arc::new(builder.with_single_cert(chain, key).map_err(config_error)?))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error: String| TlsError::File {
        path: path.to_owned(),
        error,
        expected: "one or more certificates in PEM form",
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?.collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(failed("holds no certificate".into())),
        Ok(chain) => Ok(chain),
        Err(error) => Err(failed(error.to_string())),
    }
}
