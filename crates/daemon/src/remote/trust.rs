//! Whose certificates count when others are asked.

use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::Failure;

/// Whose certificates count.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those that the system trusts.
    System,
    /// These, in PEM form, and what they signed.
    These(String),
}

/// TLS with those alone who are trusted.
///
/// # Errors
/// The certificates are none.
pub fn client_config(trust: &Trust) -> Result<Arc<ClientConfig>, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::failed(format!("TLS: {error}")))?;
    let config = match trust {
        Trust::System => config.with_root_certificates(system()),
        Trust::These(pem) => {
            let verifier = Arc::new(Given::new(pem, provider)?);
            config.dangerous().with_custom_certificate_verifier(verifier)
        }
    };
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Those that the system trusts. Read once: hosts are asked every few seconds. Those that cannot be read are left out; without any, nobody is trusted.
fn system() -> RootCertStore {
    static FOUND: OnceLock<RootCertStore> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let mut found = RootCertStore::empty();
        found.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        found
    });
    found.clone()
}

/// Trusts the certificates that were given, whatever names are in them, and what they signed for the name that was asked for. The chain
/// alone would not do: one that signed itself is an authority to most tools, which may not be a server's, and one that somebody else signed ends
/// in an authority that was not given.
#[derive(Debug)]
struct Given {
    certificates: Vec<CertificateDer<'static>>,
    chain: Arc<WebPkiServerVerifier>,
}

impl Given {
    fn new(pem: &str, provider: Arc<CryptoProvider>) -> Result<Given, Failure> {
        let wrong = |what: String| {
            Failure::invalid(format!("certificate: {what}"))
                .help("paste the PEM text, beginning with -----BEGIN CERTIFICATE-----")
        };
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| wrong(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| wrong(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(wrong("there is none".into()));
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Given { certificates, chain: chain.map_err(|error| wrong(error.to_string()))? })
    }
}

impl ServerCertVerifier for Given {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.contains(shown) {
            return Ok(ServerCertVerified::assertion());
        }
        self.chain.verify_server_cert(shown, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
