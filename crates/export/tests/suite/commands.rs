//! The transmission phase: every command, its flags and its errors.

use export::nbd::Options;

use crate::common::proto::{chunk, command, command_flag as flag, option};
use crate::common::{self, MIB, SIZE, request, serve, serve_default};

const PERM: u32 = 1;
const INVAL: u32 = 22;
const NOSPC: u32 = 28;
const NOTSUP: u32 = 95;

fn pattern(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed).wrapping_add((at >> 9) as u8)).collect()
}

#[test]
fn what_was_written_is_read_back_on_every_connection() {
    let server = serve_default();
    let mut structured = server.go("");
    let mut simple = server.connect();
    simple.go("");
    let data = pattern(1, 4096);
    assert_eq!(structured.write(0, 8192, &data), 0);
    assert_eq!(simple.read(8192, 4096), data);
    assert_eq!(simple.write(flag::FUA, 512, &data[..512]), 0);
    assert_eq!(structured.read(512, 512), data[..512]);
    assert_eq!(structured.read(SIZE - 512, 512), [0; 512]);
}

#[test]
fn fua_is_taken_on_every_command() {
    let server = serve_default();
    let mut client = server.go("");
    assert_eq!(client.write(flag::FUA, 0, &pattern(3, 1024)), 0);
    for (kind, len) in [
        (command::READ, 512),
        (command::TRIM, 512),
        (command::CACHE, 512),
        (command::WRITE_ZEROES, 512),
        (command::BLOCK_STATUS, 512),
        (command::FLUSH, 0),
    ] {
        assert_eq!(client.error(kind, flag::FUA, 0, len), 0, "command {kind}");
    }
}

#[test]
fn a_read_with_df_is_one_chunk_up_to_the_largest_payload() {
    let server = serve_default();
    let mut client = server.go("");
    let data = pattern(5, 3 * MIB as usize + 512);
    assert_eq!(client.write(0, 512, &data), 0);
    for len in [512, 65536, MIB as u32, 3 * MIB as u32 + 512] {
        client.request(command::READ, flag::DF, 1, 512, len);
        let reply = client.reply();
        assert_eq!((reply.error, reply.chunk), (0, Some(chunk::OFFSET_DATA)));
        assert!(reply.data == data[..len as usize], "{len} bytes differ");
    }
    let mut simple = server.connect();
    simple.go("");
    assert_eq!(simple.error(command::READ, flag::DF, 0, 512), INVAL, "not negotiated");
    assert!(simple.read(512, data.len() as u32) == data);
}

#[test]
fn the_largest_payloads_are_taken() {
    let server = serve_default();
    let mut client = server.go("");
    let data = pattern(7, 32 * MIB as usize);
    assert_eq!(client.write(0, MIB, &data), 0);
    assert!(client.read(MIB, 32 * MIB as u32) == data);
}

#[test]
fn payloads_beyond_the_largest_are_refused_without_harm() {
    let server = serve_default();
    let mut client = server.go("");
    assert_eq!(client.error(command::READ, 0, 0, 32 * MIB as u32 + 512), INVAL);
    assert_eq!(client.error(command::READ, 0, 0, u32::MAX), INVAL);
    assert_eq!(client.write(0, 0, &vec![9; 32 * MIB as usize + 512]), INVAL);
    assert_eq!(client.read(0, 512), [0; 512]);
}

#[test]
fn trimmed_and_zeroed_ranges_read_as_zeros_and_are_holes() {
    let server = serve_default();
    let mut client = server.go("");
    assert_eq!(client.write(0, 0, &pattern(9, 4096)), 0);
    assert_eq!(client.error(command::TRIM, 0, 512, 512), 0);
    assert_eq!(client.error(command::WRITE_ZEROES, 0, 1024, 512), 0);
    assert_eq!(client.error(command::WRITE_ZEROES, flag::FAST_ZERO, 2048, 512), 0);
    assert_eq!(client.read(512, 1024), [0; 1024]);
    assert_eq!(client.read(2048, 512), [0; 512]);
    assert_eq!(client.extents(0, 0, 8192), [(512, 0), (1024, 3), (512, 0), (512, 3), (1536, 0), (4096, 3)]);
    // Larger than one request of the device.
    assert_eq!(client.write(0, 8 * MIB, &pattern(1, 4 * MIB as usize)), 0);
    assert_eq!(client.error(command::WRITE_ZEROES, flag::NO_HOLE, 8 * MIB, 3 * MIB as u32), 0);
    assert!(client.read(8 * MIB, 3 * MIB as u32).iter().all(|byte| *byte == 0));
    assert_eq!(client.error(command::WRITE_ZEROES, 0, 0, SIZE as u32), 0);
    assert_eq!(client.extents(0, 0, SIZE as u32), [(SIZE as u32, 3)]);
}

#[test]
fn fast_zeroing_that_would_be_slow_fails_at_once() {
    let server = serve_default();
    let mut client = server.go("");
    let data = pattern(2, 512);
    assert_eq!(client.write(0, 0, &data), 0);
    assert_eq!(client.error(command::WRITE_ZEROES, flag::FAST_ZERO | flag::NO_HOLE, 0, 512), NOTSUP);
    assert_eq!(client.read(0, 512), data);
}

#[test]
fn block_status_gives_one_extent_when_asked_and_bounded_many_otherwise() {
    let server = serve_default();
    let mut client = server.go("");
    for sector in (0..8192).step_by(2) {
        assert_eq!(client.write(0, sector * 512, &[1; 512]), 0);
    }
    assert_eq!(client.extents(flag::REQ_ONE, 0, 65536), [(512, 0)]);
    assert_eq!(client.extents(flag::REQ_ONE, 8192 * 512, 65536), [(65536, 3)], "no longer than asked");
    let extents = client.extents(0, 0, SIZE as u32);
    assert!(extents.len() <= 4096 && extents.windows(2).all(|pair| pair[0].1 != pair[1].1));
    // A client asks on from where the answer ends.
    let mut at = 0;
    let mut holes = 0;
    while at < SIZE {
        for (len, flags) in client.extents(0, at, (SIZE - at) as u32) {
            at += u64::from(len);
            holes += u32::from(flags == 3);
        }
    }
    assert_eq!((at, holes), (SIZE, 4096));
    assert_eq!(client.error(command::BLOCK_STATUS, 0, 0, 0), INVAL);
}

#[test]
fn ranges_beyond_the_end_get_the_error_of_their_command() {
    let server = serve_default();
    let mut client = server.go("");
    for (kind, error) in [
        (command::READ, INVAL),
        (command::TRIM, INVAL),
        (command::CACHE, INVAL),
        (command::BLOCK_STATUS, INVAL),
        (command::WRITE_ZEROES, NOSPC),
    ] {
        assert_eq!(client.error(kind, 0, SIZE, 512), error, "command {kind}");
        assert_eq!(client.error(kind, 0, u64::MAX - 511, 512), error, "command {kind}");
    }
    assert_eq!(client.write(0, SIZE - 512, &[1; 1024]), NOSPC);
    assert_eq!(client.write(0, u64::MAX - 511, &[1; 512]), NOSPC);
    assert_eq!(client.read(SIZE - 512, 512), [0; 512], "nothing of a refused write is written");
}

#[test]
fn a_read_only_export_refuses_changes_and_stays_connected() {
    let server = serve_default();
    let mut client = server.go("ro");
    assert_eq!(client.write(0, 0, &[1; 512]), PERM);
    assert_eq!(client.error(command::TRIM, 0, 0, 512), PERM);
    assert_eq!(client.error(command::WRITE_ZEROES, 0, 0, 512), PERM);
    assert_eq!(client.error(command::FLUSH, 0, 0, 0), 0);
    assert_eq!(client.read(0, 512), [0; 512]);
}

#[test]
fn invalid_requests_are_answered_and_the_connection_stays() {
    let server = serve(Options::default(), 4096);
    let mut client = server.go("");
    assert_eq!(client.error(command::READ, 0, 512, 4096), INVAL, "misaligned");
    assert_eq!(client.error(command::READ, 0, 0, 512), INVAL, "misaligned");
    assert_eq!(client.write(0, 0, &[1; 512]), INVAL, "misaligned; the payload is consumed");
    assert_eq!(client.error(command::TRIM, 0, 1, 4096), INVAL);
    assert_eq!(client.error(99, 0, 0, 4096), INVAL, "unknown command");
    assert_eq!(client.error(command::READ, 1 << 12, 0, 4096), INVAL, "unknown flag");
    assert_eq!(client.write(flag::NO_HOLE, 0, &[1; 4096]), INVAL, "a flag of another command");
    assert_eq!(client.error(command::FLUSH, 0, 0, 4096), INVAL);
    for kind in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES, command::CACHE, command::FLUSH] {
        assert_eq!(client.error(kind, 0, 0, 0), 0, "length 0 of command {kind}");
    }
    assert_eq!(client.read(0, 4096), [0; 4096]);
    let mut plain = server.connect();
    plain.go("");
    assert_eq!(plain.error(command::BLOCK_STATUS, 0, 0, 4096), INVAL, "no context negotiated");
}

#[test]
fn pipelined_requests_are_all_answered_however_they_are_cut() {
    let server = serve_default();
    let mut client = server.go("");
    let mut bytes = Vec::new();
    for number in 0..500u64 {
        bytes.extend(request(command::WRITE, 0, number, number * 1024, 1024));
        bytes.extend(pattern(number as u8, 1024));
    }
    let mut cut = 1;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        client.put(now);
        rest = later;
        cut = cut * 7 % 4093 + 1;
    }
    let mut cookies: Vec<u64> = (0..500).map(|_| client.reply()).map(|reply| (reply.error, reply.cookie).1).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..500).collect::<Vec<_>>());
    for number in 0..500u64 {
        assert_eq!(client.read(number * 1024, 1024), pattern(number as u8, 1024));
    }
}

#[test]
fn a_disconnect_answers_what_was_asked_before() {
    let server = serve_default();
    let mut client = server.go("");
    let mut bytes = Vec::new();
    for number in 0..64 {
        bytes.extend(request(command::READ, 0, number, number * 4096, 4096));
    }
    bytes.extend(request(command::DISC, 0, 99, 0, 0));
    bytes.extend(request(command::READ, 0, 100, 0, 4096));
    client.put(&bytes);
    for _ in 0..64 {
        assert_eq!(client.reply().error, 0);
    }
    client.assert_closed();
    server.wait_for_clients(0);
}

#[test]
fn a_client_that_does_not_read_its_answers_holds_up_only_itself() {
    let server = serve_default();
    let mut lazy = server.go("");
    let mut bystander = server.go("");
    // Far more answers than a client may leave unread, but so few requests that the socket holds them all: the server
    // stops reading them, and a client that must write before it reads would wait forever.
    let count = 200u64;
    for number in 0..count {
        lazy.request(command::READ, 0, number, 0, 262_144);
    }
    for _ in 0..100 {
        bystander.assert_works();
    }
    for _ in 0..count {
        assert_eq!(lazy.reply().data.len(), 262_144);
    }
    lazy.assert_works();
}

#[test]
fn figures_of_a_client() {
    let server = serve_default();
    let mut client = server.go("ro");
    client.read(0, 4096);
    client.error(command::FLUSH, 0, 0, 0);
    let clients = server.device.clients().expect("the device is there");
    assert_eq!(clients.len(), 1);
    assert_eq!((clients[0].requests, clients[0].read_bytes, clients[0].written_bytes), (2, 4096, 0));
    assert_eq!((clients[0].export.as_str(), clients[0].tls, clients[0].in_flight), ("ro", false, 0));
    assert!(server.device.disconnect(clients[0].id).expect("the device is there"));
    client.assert_closed();
    let mut other = server.connect();
    assert_eq!(other.outcome(option::GO, &common::info("", &[])), common::proto::reply::ACK);
}
