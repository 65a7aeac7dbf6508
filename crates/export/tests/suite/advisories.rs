//! Holes that other NBD servers had, one test each. Those that other files of this directory hold already: CVE-2021-3716
//! (plain text injected before TLS) in `tls.rs`, CVE-2022-26495 (a name of 4 GiB) in `options.rs`, CVE-2024-7409 (clients held
//! open at shutdown) in `lifecycle.rs`.

use std::io::Write;
use std::os::unix::net::UnixStream;

use device::Device;
use export::Worker;
use export::nbd::{Export, Options, Server};

use crate::common::proto::{command, command_flag as flag, option, reply};
use crate::common::{Client, MIB, SIZE, context, info, request, serve_default};

const INVAL: u32 = 22;

/// CVE-2013-7441 (nbd-server): a client that gives up in the middle of the handshake ended the whole server.
#[test]
fn clients_that_leave_during_the_handshake_leave_the_server_standing() {
    let server = serve_default();
    let mut bystander = server.go("");
    let mut whole = vec![0, 0, 0, 3];
    whole.extend(b"IHAVEOPT\0\0\0\x03\0\0\0\0");
    whole.extend(b"IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0");
    for len in 0..whole.len() {
        let mut stream = UnixStream::connect(&server.path).expect("the server listens");
        stream.write_all(&whole[..len]).expect("the server takes it");
        drop(stream);
    }
    bystander.assert_works();
    server.go("").assert_works();
    server.wait_for_clients(1);
}

/// CVE-2017-7539 and CVE-2017-9524 (qemu): data that is no negotiation, or an early end, met state that was not there yet.
#[test]
fn requests_before_the_handshake_is_over_are_no_requests() {
    let server = serve_default();
    let mut bystander = server.go("");
    for prefix in [&b""[..], b"\0\0\0\x03"] {
        let mut stream = UnixStream::connect(&server.path).expect("the server listens");
        stream.write_all(prefix).expect("the server takes it");
        for number in 0..64 {
            // The server may hang up at the first.
            let _ = stream.write_all(&request(command::READ, 0, number, 0, 4096));
        }
        let mut client = Client { stream };
        client.take(18);
        client.assert_closed();
    }
    bystander.assert_works();
    server.wait_for_clients(1);
}

/// CVE-2017-15118 and CVE-2022-26496 (qemu, nbd-server): a name longer than a buffer on the stack.
#[test]
fn names_longer_than_the_protocol_allows_are_invalid_in_every_option() {
    let server = serve_default();
    let mut client = server.connect();
    client.structured();
    for len in [4097, 5000, 60_000] {
        let name = "n".repeat(len);
        for code in [option::INFO, option::GO] {
            assert_eq!(client.outcome(code, &info(&name, &[])), reply::ERR_INVALID, "option {code}, {len} bytes");
        }
        for code in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
            let body = context(&name, &["base:allocation"]);
            assert_eq!(client.outcome(code, &body), reply::ERR_INVALID, "option {code}, {len} bytes");
        }
    }
    // A name that says it is longer than its option, up to where adding to its length overflows.
    for told in [7, 4096, 0x7fff_ffff, 0xffff_fff8, 0xffff_ffff_u32] {
        let body = [&told.to_be_bytes()[..], b"name\0\0"].concat();
        for code in [option::INFO, option::GO, option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
            assert_eq!(client.outcome(code, &body), reply::ERR_INVALID, "option {code}, {told:#x}");
        }
    }
    client.go("");
    client.assert_works();
}

/// CVE-2017-15119 (qemu): options of gigabytes kept the server reading, and reading, and reading.
#[test]
fn an_option_is_skipped_up_to_a_limit_and_not_a_byte_beyond() {
    let server = serve_default();
    let mut client = server.connect();
    assert_eq!(client.outcome(99, &vec![0; 32 << 20]), reply::ERR_TOO_BIG);
    assert_eq!(client.outcome(option::ABORT, &[]), reply::ACK);
    for len in [(32 << 20) + 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let mut hostile = server.connect();
        hostile.put(&[b"IHAVEOPT", &99u32.to_be_bytes()[..], &len.to_be_bytes()].concat());
        // Closed without waiting for any of it.
        hostile.assert_closed();
    }
}

/// CVE-2019-14850 (nbdkit): to begin a handshake was enough to open the device behind it.
#[test]
fn a_handshake_touches_no_device_before_it_is_over() {
    let server = serve_default();
    let mut strangers: Vec<_> = (0..32).map(|_| server.connect()).collect();
    for stranger in &mut strangers {
        stranger.haggle(option::LIST, &[]);
        stranger.outcome(option::INFO, &info("", &[]));
        stranger.outcome(option::GO, &info("nothing", &[]));
    }
    assert!(server.device.clients().expect("attached").is_empty());
    assert_eq!(server.device.detach(false), Ok(()), "nobody is connected");
}

/// CVE-2019-14851 (nbdkit): an export described, and then chosen or described again, met an assertion.
#[test]
fn exports_may_be_described_any_number_of_times_before_one_is_chosen() {
    let server = serve_default();
    let mut client = server.connect();
    client.structured();
    for round in 0..21 {
        let name = ["", "ro", "nothing"][round % 3];
        let expected = if name == "nothing" { reply::ERR_UNKNOWN } else { reply::ACK };
        assert_eq!(client.outcome(option::INFO, &info(name, &[])), expected);
        assert_eq!(client.outcome(option::SET_META_CONTEXT, &context(name, &["base:allocation"])), expected);
        assert_eq!(client.outcome(option::GO, &info("nothing", &[])), reply::ERR_UNKNOWN);
        client.structured();
    }
    client.go("ro");
    // The last choice of a context failed, which undid the one before.
    assert_eq!(client.error(command::BLOCK_STATUS, 0, 0, 512), INVAL);
    client.assert_works();
}

/// CVE-2020-10761 (qemu): a name of the greatest length that is allowed made an error message longer than that.
#[test]
fn names_of_the_greatest_length_are_refused_in_few_words() {
    let server = serve_default();
    let mut client = server.connect();
    client.structured();
    let name = "n".repeat(4096);
    for (code, body) in [
        (option::INFO, info(&name, &[])),
        (option::GO, info(&name, &[1, 2, 3])),
        (option::SET_META_CONTEXT, context(&name, &["base:allocation"])),
        (option::SET_META_CONTEXT, context(&name, &[&name, &name])),
    ] {
        let replies = client.haggle(code, &body);
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0].kind, reply::ERR_UNKNOWN);
        assert!(replies[0].body.len() < 1000, "{} bytes of message", replies[0].body.len());
    }
    assert_eq!(client.haggle(option::SET_META_CONTEXT, &context("", &[&name])).len(), 1, "no such context");
    client.go("");
    client.assert_works();
}

/// CVE-2025-47711 and CVE-2025-47712 (nbdkit): extents of 4 GiB and more, and ranges that end just below, overflowed.
#[test]
fn extents_beyond_four_gibibytes_are_cut_to_what_was_asked() {
    let bytes: u64 = 16 << 30;
    let device = Worker::spawn("large", move |_| Ok(Device::memory(bytes, 512).expect("good sizes")));
    let device = device.expect("a device in memory");
    let server = Server::new(Options::default(), &std::sync::Arc::default()).expect("a server");
    server.add_export(Export { name: String::new(), description: String::new(), read_only: false, device });
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let thread = std::thread::spawn(move || server.serve_connected(theirs.into(), "a test"));
    let mut client = Client::greeted(ours);
    client.structured();
    client.set_context("");
    client.go("");
    assert_eq!(client.write(0, 9 << 30, &[1; 512]), 0);
    for offset in [0, 512, 4 << 30, (5 << 30) + 512, 9 << 30, bytes - (4 << 30)] {
        for len in [0xffff_fe00, 0x8000_0000, 0x7fff_fe00] {
            for flags in [0, flag::REQ_ONE] {
                let extents = client.extents(flags, offset, len);
                let sum: u64 = extents.iter().map(|(len, _)| u64::from(*len)).sum();
                assert!(
                    sum <= u64::from(len) && extents.iter().all(|(len, _)| *len > 0),
                    "{offset} {len}: {extents:?}"
                );
                assert!(flags != 0 || sum == u64::from(len), "{offset} {len}: {extents:?}");
            }
        }
    }
    for kind in [command::TRIM, command::WRITE_ZEROES] {
        assert_eq!(client.error(kind, 0, 1 << 30, 0xffff_fe00), 0);
    }
    assert_eq!(client.error(command::BLOCK_STATUS, 0, bytes - 512, 0xffff_fe00), INVAL);
    client.assert_works();
    drop(client);
    thread.join().expect("the server's thread");
}

/// CVE-2005-3534 (nbd-server): a request larger than the buffer that waits for it. Its payload goes by, whatever its length says.
#[test]
fn payloads_larger_than_any_buffer_are_not_kept() {
    let server = serve_default();
    let mut bystander = server.go("");
    let mut hostile = server.go("");
    hostile.request(command::WRITE, 0, 1, 0, u32::MAX);
    let piece = vec![7; MIB as usize];
    for _ in 0..256 {
        hostile.put(&piece);
    }
    bystander.assert_works();
    drop(hostile);
    server.wait_for_clients(1);
    assert_eq!(bystander.read(0, 4096), [0; 4096]);
    // At the limit it is taken, one sector beyond it is not.
    let largest = vec![9; 32 << 20];
    assert_eq!(bystander.write(0, SIZE - (32 << 20), &largest), 0);
    assert_eq!(bystander.write(0, 0, &vec![9; (32 << 20) + 512]), INVAL);
    assert_eq!(bystander.read(0, 512), [0; 512]);
}
