//! The handshake: every option, byte by byte.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use device::SnapshotChange;
use export::Bounds;
use export::nbd::Options;

use crate::common::proto::{info as kinds, option, reply};
use crate::common::{self, Client, SIZE, context, info, serve, serve_default};

/// All transmission flags of a writable export without DF.
const FLAGS: u16 = 0b1101_0110_1101;

fn bounded(bounds: Bounds) -> Options {
    Options { bounds, ..Options::default() }
}

#[test]
fn export_name_answers_size_flags_and_zeros_only_if_wanted() {
    let server = serve_default();
    let mut client = server.connect();
    client.option(option::EXPORT_NAME, b"");
    assert_eq!(client.take(8), SIZE.to_be_bytes());
    assert_eq!(client.take(2), FLAGS.to_be_bytes());
    client.assert_works();

    let stream = UnixStream::connect(&server.path).expect("the server listens");
    let mut old = Client { stream };
    old.take(18);
    old.put(&[0, 0, 0, 1]);
    old.option(option::EXPORT_NAME, b"ro");
    old.take(8);
    assert_eq!(old.take(2), 0b0101_0000_1111u16.to_be_bytes());
    assert_eq!(old.take(124), [0; 124]);
    old.assert_works();
}

#[test]
fn an_unknown_export_name_closes_the_connection() {
    let server = serve_default();
    let mut client = server.connect();
    client.option(option::EXPORT_NAME, b"nothing");
    client.assert_closed();
}

#[test]
fn abort_is_acknowledged() {
    let server = serve_default();
    let mut client = server.connect();
    assert_eq!(client.outcome(option::ABORT, &[]), reply::ACK);
    client.assert_closed();
}

#[test]
fn list_names_every_export() {
    let server = serve_default();
    let mut client = server.connect();
    let replies = client.haggle(option::LIST, &[]);
    let bodies: Vec<_> = replies.iter().map(|reply| (reply.kind, reply.body.as_slice())).collect();
    let expected: [(u32, &[u8]); 3] =
        [(reply::SERVER, b"\0\0\0\0"), (reply::SERVER, b"\0\0\0\x02ro"), (reply::ACK, b"")];
    assert_eq!(bodies, expected);
    assert_eq!(client.outcome(option::LIST, b"x"), reply::ERR_INVALID);
    assert!(server.server.remove_export("ro"));
    assert_eq!(client.haggle(option::LIST, &[]).len(), 2);
}

#[test]
fn info_tells_what_was_asked_for_and_go_begins() {
    let server = serve_default();
    let mut client = server.connect();
    let replies = client.haggle(option::INFO, &info("ro", &[kinds::NAME, kinds::DESCRIPTION, 99]));
    let find = |kind: u16| {
        let found = replies.iter().find(|reply| reply.kind == reply::INFO && reply.body[..2] == kind.to_be_bytes());
        found.map(|reply| reply.body[2..].to_vec())
    };
    let mut export = SIZE.to_be_bytes().to_vec();
    export.extend(0b0101_0000_1111u16.to_be_bytes());
    assert_eq!(find(kinds::EXPORT), Some(export));
    assert_eq!(find(kinds::NAME), Some(b"ro".to_vec()));
    assert_eq!(find(kinds::DESCRIPTION), Some(b"a test".to_vec()));
    assert_eq!(find(99), None);
    let largest = server.device.shape().max_request_bytes;
    let sizes: Vec<u8> = [512, 4096, largest].iter().flat_map(|size: &u32| size.to_be_bytes()).collect();
    assert_eq!(find(kinds::BLOCK_SIZE), Some(sizes));
    assert_eq!(replies.last().map(|reply| reply.kind), Some(reply::ACK));

    for code in [option::INFO, option::GO] {
        assert_eq!(client.outcome(code, &info("nothing", &[])), reply::ERR_UNKNOWN);
        assert_eq!(client.outcome(code, b"\0\0"), reply::ERR_INVALID);
        assert_eq!(client.outcome(code, b"\0\0\0\0\0\x02\0\0"), reply::ERR_INVALID, "one kind missing");
        assert_eq!(client.outcome(code, b"\xff\xff\xff\xff\0\0"), reply::ERR_INVALID, "name beyond the option");
    }
    client.go("");
    client.assert_works();
}

#[test]
fn structured_replies_bring_df() {
    let server = serve_default();
    let mut client = server.connect();
    assert_eq!(client.outcome(option::STRUCTURED_REPLY, b"x"), reply::ERR_INVALID);
    client.structured();
    let replies = client.haggle(option::GO, &info("", &[]));
    assert_eq!(replies[0].body[10..], (FLAGS | 1 << 7).to_be_bytes());
    client.assert_works();
}

#[test]
fn metadata_contexts_are_listed_by_namespace_and_set_by_name() {
    let server = serve_default();
    let mut client = server.connect();
    let list = option::LIST_META_CONTEXT;
    let set = option::SET_META_CONTEXT;
    assert_eq!(client.outcome(set, &context("", &["base:allocation"])), reply::ERR_INVALID, "needs structured");
    client.structured();
    for queries in [&[][..], &["base:"], &["base:allocation"], &["x:y", "base:"]] {
        let replies = client.haggle(list, &context("", queries));
        assert_eq!(replies.len(), 2, "{queries:?}");
        assert_eq!((replies[0].kind, &replies[0].body[4..]), (reply::META_CONTEXT, &b"base:allocation"[..]));
    }
    assert_eq!(client.haggle(list, &context("", &["qemu:"])).len(), 1);
    assert_eq!(client.haggle(set, &context("", &["base:"])).len(), 1);
    assert_eq!(client.haggle(set, &context("", &[])).len(), 1);
    assert_eq!(client.outcome(set, &context("nothing", &["base:allocation"])), reply::ERR_UNKNOWN);
    assert_eq!(client.outcome(set, b"\0\0\0\0\0\0\0\x01"), reply::ERR_INVALID);
    client.set_context("");
    // Another export than the one it was set for: BLOCK_STATUS is invalid there.
    client.go("ro");
    assert_eq!(client.error(common::proto::command::BLOCK_STATUS, 0, 0, 512), 22);
    client.assert_works();
}

#[test]
fn what_changed_since_a_snapshot_is_a_context_of_its_own_beside_the_others() {
    let server = serve_default();
    let change = |change: SnapshotChange| {
        let done = server.device.with_device(move |device| device.change_snapshots(&change));
        done.expect("attached").expect("changed");
        server.device.with_device(|device| device.snapshots().to_vec()).expect("attached")
    };
    let create = |name: &str| SnapshotChange::Create { name: name.into(), created: 0 };
    let mut writer = server.go("");
    writer.write(0, 0, &[1; 4096]);
    change(create("old"));
    writer.write(0, 1024, &[2; 512]);
    let snapshots = change(create("new"));
    writer.write(0, 2048, &[3; 512]);

    let (list, set) = (option::LIST_META_CONTEXT, option::SET_META_CONTEXT);
    let mut client = server.connect();
    client.structured();
    for (export, queries, contexts) in [
        ("", &["openvsl:"][..], &["openvsl:changed:old", "openvsl:changed:new"][..]),
        ("", &["openvsl:changed:new", "base:"], &["base:allocation", "openvsl:changed:new"]),
        ("@new", &[], &["base:allocation", "openvsl:changed:old"]),
        ("@old", &["openvsl:"], &[]),
        ("", &["openvsl:changed:neither"], &[]),
    ] {
        let found = client.haggle(list, &context(export, queries));
        let found: Vec<_> =
            found.iter().filter(|one| one.kind == reply::META_CONTEXT).map(|one| &one.body[4..]).collect();
        assert_eq!(found, contexts.iter().map(|name| name.as_bytes()).collect::<Vec<_>>(), "{export} {queries:?}");
    }
    let many: Vec<&str> = vec!["x"; 257];
    assert_eq!(client.outcome(list, &context("", &many)), reply::ERR_TOO_BIG);

    let both = client.haggle(set, &context("", &["openvsl:changed:old", "base:allocation", "openvsl:changed:neither"]));
    assert_eq!(both.len(), 3, "two contexts, and an end");
    assert_eq!(both[1].body, b"\0\0\0\x02openvsl:changed:old");
    client.go("");
    let changed = vec![(1024, 0), (512, 1), (512, 0), (512, 1), (5632, 0)];
    assert_eq!(client.contexts(0, 8192), [(1, vec![(4096, 0), (4096, 3)]), (2, changed)]);

    let mut view = server.connect();
    view.structured();
    view.haggle(set, &context("@new", &["openvsl:changed:old"]));
    view.go("@new");
    let changed = vec![(1024, 0), (512, 1), (6656, 0)];
    assert_eq!(view.contexts(0, 8192), [(1, changed)], "what changed after it is not told");

    // Nothing is told of what is not known any more.
    change(SnapshotChange::Delete(snapshots[0].id));
    for client in [&mut client, &mut view] {
        assert_eq!(client.error(common::proto::command::BLOCK_STATUS, 0, 0, 8192), 5);
    }
    let mut view = server.go("@new");
    assert_eq!(view.extents(0, 0, 8192), [(4096, 0), (4096, 3)]);
    change(SnapshotChange::Delete(snapshots[1].id));
    assert_eq!(view.error(common::proto::command::BLOCK_STATUS, 0, 0, 8192), 5);
    client.assert_works();
}

#[test]
fn unknown_options_are_unsupported_and_haggling_goes_on() {
    let server = serve_default();
    let mut client = server.connect();
    for code in [4, 11, 0, 0xffff_ffff] {
        assert_eq!(client.outcome(code, b"whatever"), reply::ERR_UNSUP);
    }
    assert_eq!(client.outcome(option::STARTTLS, &[]), reply::ERR_POLICY, "no certificates here");
    client.go("");
    client.assert_works();
}

#[test]
fn large_options_are_skipped_and_absurd_ones_end_the_connection() {
    let server = serve_default();
    let mut client = server.connect();
    assert_eq!(client.outcome(option::LIST, &vec![0; 70_000]), reply::ERR_TOO_BIG);
    assert_eq!(client.outcome(option::INFO, &vec![0; 1 << 20]), reply::ERR_TOO_BIG);
    client.go("");
    client.assert_works();
    // CVE-2022-26495: a name of 0xffffffff bytes, as the whole option and inside of one.
    for code in [option::EXPORT_NAME, option::GO, option::SET_META_CONTEXT, option::LIST, 99] {
        let mut hostile = server.connect();
        hostile.put(b"IHAVEOPT");
        hostile.put(&code.to_be_bytes());
        hostile.put(&[0xff; 4]);
        hostile.assert_closed();
    }
    let mut hostile = server.connect();
    hostile.option(option::EXPORT_NAME, &[b'a'; 5000]);
    hostile.assert_closed();
    let mut hostile = server.connect();
    hostile.option(option::EXPORT_NAME, &[0xff, 0xfe]);
    hostile.assert_closed();
}

#[test]
fn garbage_ends_the_connection_and_no_other() {
    let server = serve_default();
    let mut bystander = server.go("");
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0xff; 64]] {
        let mut hostile = server.connect();
        hostile.put(garbage);
        hostile.assert_closed();
        bystander.assert_works();
    }
    let mut hostile = Client { stream: UnixStream::connect(&server.path).expect("the server listens") };
    hostile.take(18);
    hostile.put(&[0, 0, 0, 7]);
    hostile.assert_closed();
    let mut endless = server.connect();
    for _ in 0..1024 {
        assert_eq!(endless.outcome(99, &[]), reply::ERR_UNSUP);
    }
    endless.assert_closed();
}

#[test]
fn clients_that_dawdle_in_the_handshake_are_given_up() {
    let options = bounded(Bounds { handshake_timeout: Duration::from_millis(200), ..Bounds::default() });
    let server = serve(options, 512);
    let mut dawdler = server.connect();
    dawdler.put(b"IHAVE");
    dawdler.assert_closed();
    // Beyond the limit the oldest goes, so that strangers cannot keep others out.
    let options =
        bounded(Bounds { max_handshakes: 4, handshake_timeout: Duration::from_secs(60), ..Bounds::default() });
    let server = serve(options, 512);
    let mut dawdlers: Vec<_> = (0..20).map(|_| server.connect()).collect();
    server.go("").assert_works();
    for dawdler in &mut dawdlers[..16] {
        dawdler.assert_closed();
    }
}

#[test]
fn connections_are_limited_and_given_back() {
    let server = serve(bounded(Bounds { max_connections: 2, ..Bounds::default() }), 512);
    let mut first = server.go("");
    let mut second = server.go("");
    second.assert_works();
    let mut third = Client { stream: UnixStream::connect(&server.path).expect("the server listens") };
    third.assert_closed();
    drop(second);
    server.wait_for_clients(1);
    server.go("ro").assert_works();
    first.assert_works();
    first.stream.flush().expect("nothing to flush");
}
