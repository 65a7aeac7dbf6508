//! TLS: offered, required, and attacked.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use export::nbd::{Options, Tls, tls};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::common::proto::{command, option, reply};
use crate::common::{Client, TestServer, context, info, request, serve};

/// A certificate authority, a server's and a client's certificate, in files as `nbdkit` names them.
struct Certificates {
    directory: PathBuf,
    authority: CertificateDer<'static>,
    client: (CertificateDer<'static>, PrivateKeyDer<'static>),
}

impl Drop for Certificates {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).expect("it was made here");
    }
}

fn certificates(name: &str) -> Certificates {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let directory = std::env::temp_dir().join(format!("openvsl-tls-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("a certificate");
    let issuer = Issuer::new(params, key);
    let sign = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        (params.signed_by(&key, &issuer).expect("a certificate"), key)
    };
    let (server, server_key) = sign("localhost");
    let (client, client_key) = sign("client");
    for (file, content) in [
        ("ca-cert.pem", authority.pem()),
        ("server-cert.pem", server.pem()),
        ("server-key.pem", server_key.serialize_pem()),
    ] {
        std::fs::write(directory.join(file), content).expect("a file");
    }
    let client_key = PrivateKeyDer::try_from(client_key.serialize_der()).expect("a key");
    Certificates { directory, authority: authority.der().clone(), client: (client.der().clone(), client_key) }
}

fn require(certificates: &Certificates, verify: bool) -> TestServer {
    let config = tls::load(&certificates.directory, verify).expect("good certificates");
    serve(Options { tls: Tls::Require(config), ..Options::default() }, 512)
}

type Encrypted = Client<StreamOwned<ClientConnection, UnixStream>>;

fn upgrade(mut client: Client<UnixStream>, certificates: &Certificates, own: bool) -> Encrypted {
    assert_eq!(client.outcome(option::STARTTLS, &[]), reply::ACK);
    let mut roots = RootCertStore::empty();
    roots.add(certificates.authority.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = if own {
        let (chain, key) = &certificates.client;
        builder.with_client_auth_cert(vec![chain.clone()], key.clone_key()).expect("a good certificate")
    } else {
        builder.with_no_client_auth()
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    Client { stream: StreamOwned::new(session, client.stream) }
}

#[test]
fn everything_works_inside_of_tls() {
    let certificates = certificates("works");
    let server = require(&certificates, false);
    let mut client = upgrade(server.connect(), &certificates, false);
    assert_eq!(client.outcome(option::STARTTLS, &[]), reply::ERR_INVALID, "once is enough");
    client.structured();
    client.set_context("");
    client.go("");
    let data: Vec<u8> = (0..3_000_000u32 / 512 * 512).map(|at| ((at * 7) >> 3) as u8).collect();
    assert_eq!(client.write(0, 512, &data), 0);
    assert!(client.read(512, data.len() as u32) == data);
    assert_eq!(client.extents(0, 0, 1024), [(512, 3), (512, 0)]);
    assert!(server.device.clients().expect("attached")[0].tls);
    // Pipelined, and a proper goodbye.
    let mut bytes = Vec::new();
    for number in 0..200 {
        bytes.extend(request(command::READ, 0, number, 512, 16384));
    }
    bytes.extend(request(command::DISC, 0, 0, 0, 0));
    client.put(&bytes);
    for _ in 0..200 {
        assert!(client.reply().data == data[..16384]);
    }
    client.assert_closed();
}

#[test]
fn required_tls_refuses_everything_before_it() {
    let certificates = certificates("required");
    let server = require(&certificates, false);
    let mut client = server.connect();
    for code in [option::LIST, option::STRUCTURED_REPLY, option::INFO, option::GO, option::SET_META_CONTEXT, 99] {
        assert_eq!(client.outcome(code, &info("", &[])), reply::ERR_TLS_REQD, "option {code}");
    }
    assert_eq!(client.outcome(option::ABORT, &[]), reply::ACK);
    client.assert_closed();
    let mut client = server.connect();
    client.option(option::EXPORT_NAME, b"");
    client.assert_closed();
}

#[test]
fn offered_tls_leaves_plain_clients_alone() {
    let certificates = certificates("offered");
    let config = tls::load(&certificates.directory, false).expect("good certificates");
    let server = serve(Options { tls: Tls::On(config), ..Options::default() }, 512);
    server.go("").assert_works();
    let mut client = upgrade(server.connect(), &certificates, false);
    client.go("");
    client.assert_works();
}

/// CVE-2021-3716: a man in the middle puts options behind STARTTLS, in plain text.
#[test]
fn plain_text_behind_starttls_is_never_taken_for_options() {
    let certificates = certificates("injected");
    let server = require(&certificates, false);
    let mut client = server.connect();
    let mut bytes = b"IHAVEOPT\0\0\0\x05\0\0\0\0".to_vec();
    bytes.extend(b"IHAVEOPT\0\0\0\x08\0\0\0\0IHAVEOPT\0\0\0\x03\0\0\0\0");
    client.put(&bytes);
    assert_eq!(client.option_reply().kind, reply::ACK);
    // What follows is the server's TLS alert, if anything, and then the end: no reply to an option.
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut client.stream, &mut rest);
    assert!(!rest.windows(4).any(|bytes| bytes == [0x04, 0x55, 0x65, 0xa9]), "{rest:?}");
    assert!(rest.is_empty() || rest[0] == 0x15, "only an alert: {rest:?}");
}

#[test]
fn what_was_negotiated_in_plain_text_is_forgotten() {
    let certificates = certificates("forgotten");
    let config = tls::load(&certificates.directory, false).expect("good certificates");
    let server = serve(Options { tls: Tls::On(config), ..Options::default() }, 512);
    let mut plain = server.connect();
    plain.structured();
    plain.set_context("");
    let mut client = upgrade(plain, &certificates, false);
    assert_eq!(client.outcome(option::LIST_META_CONTEXT, &context("", &[])), reply::ERR_INVALID);
    client.go("");
    client.request(command::READ, 0, 5, 0, 512);
    let answer = client.reply();
    assert_eq!((answer.error, answer.chunk), (0, None), "a simple reply");
}

#[test]
fn clients_are_verified_when_asked_for() {
    let certificates = certificates("verified");
    let server = require(&certificates, true);
    let mut known = upgrade(server.connect(), &certificates, true);
    known.go("");
    known.assert_works();
    let mut unknown = upgrade(server.connect(), &certificates, false);
    let mut bytes = [0; 1];
    let refused = std::io::Write::write_all(&mut unknown.stream, b"IHAVEOPT\0\0\0\x03\0\0\0\0")
        .and_then(|()| std::io::Read::read_exact(&mut unknown.stream, &mut bytes));
    assert!(refused.is_err(), "no certificate, no service");
    known.assert_works();
}

#[test]
fn broken_records_end_only_their_connection() {
    let certificates = certificates("broken");
    let server = require(&certificates, false);
    let mut bystander = upgrade(server.connect(), &certificates, false);
    bystander.go("");
    let mut hostile = upgrade(server.connect(), &certificates, false);
    hostile.go("");
    std::io::Write::write_all(&mut hostile.stream.sock, &[0x17, 3, 3, 0, 32]).expect("connected");
    std::io::Write::write_all(&mut hostile.stream.sock, &[0; 32]).expect("connected");
    server.wait_for_clients(1);
    bystander.assert_works();
}

#[test]
fn missing_or_foreign_files_are_named() {
    let certificates = certificates("missing");
    let key = certificates.directory.join("server-key.pem");
    std::fs::write(&key, "no key at all").expect("a file");
    let error = tls::load(&certificates.directory, false).expect_err("no key").to_string();
    assert!(error.contains("server-key.pem") && error.contains("private key"), "{error}");
    std::fs::write(certificates.directory.join("server-cert.pem"), "").expect("a file");
    let error = tls::load(&certificates.directory, false).expect_err("no certificate").to_string();
    assert!(error.contains("server-cert.pem"), "{error}");
}
