use std::os::unix::net::UnixListener;
use std::path::Path;

use super::*;
use crate::nbd::proto::{FLAG_FIXED_NEWSTYLE, IHAVEOPT, NBDMAGIC, OPTION_REPLY_MAGIC, info, option, reply};

/// A server for one client: answers the handshake, then what `answers` makes of each request's header.
fn server(path: &Path, mut answers: impl FnMut(&mut std::os::unix::net::UnixStream, &[u8]) -> bool + Send + 'static) {
    let listener = UnixListener::bind(path).expect("a socket");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut greeting = Vec::new();
        greeting.extend(NBDMAGIC.to_be_bytes());
        greeting.extend(IHAVEOPT.to_be_bytes());
        greeting.extend(FLAG_FIXED_NEWSTYLE.to_be_bytes());
        stream.write_all(&greeting).expect("sent");
        let mut said = vec![0; 4 + 16 + 4 + 1 + 4];
        stream.read_exact(&mut said).expect("what it chooses");
        let mut replies = Vec::new();
        for (kind, body) in [
            (reply::INFO, [&info::EXPORT.to_be_bytes()[..], &(1u64 << 20).to_be_bytes(), &[0, 5]].concat()),
            (reply::ACK, Vec::new()),
        ] {
            replies.extend(OPTION_REPLY_MAGIC.to_be_bytes());
            replies.extend(option::GO.to_be_bytes());
            replies.extend(kind.to_be_bytes());
            replies.extend((body.len() as u32).to_be_bytes());
            replies.extend(body);
        }
        stream.write_all(&replies).expect("sent");
        let mut header = [0; REQUEST_BYTES];
        while stream.read_exact(&mut header).is_ok() && answers(&mut stream, &header) {}
    });
}

fn answer(stream: &mut std::os::unix::net::UnixStream, header: &[u8], error: u32, data: &[u8]) {
    let mut bytes = SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
    bytes.extend(error.to_be_bytes());
    bytes.extend(&header[8..16]);
    bytes.extend(data);
    stream.write_all(&bytes).expect("sent");
}

#[test]
fn answers_find_who_waits_in_any_order() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("s");
    let mut held = Vec::new();
    server(&path, move |stream, header| {
        held.push(header.to_vec());
        if held.len() == 3 {
            // Backwards; each read gives its own offset.
            for header in held.drain(..).rev() {
                let offset = header[16..24].to_vec();
                match header[7] {
                    0 => answer(stream, &header, 0, &offset),
                    _ => answer(stream, &header, 28, &[]),
                }
            }
        }
        true
    });
    let client = Client::connect(&Address::unix(&path, "a")).expect("connected");
    assert_eq!((client.export().bytes, client.export().flags), (1 << 20, 5));
    let first = client.begin(Ask::Read(8), 512, 0).expect("sent");
    let second = client.begin(Ask::Read(8), 4096, 0).expect("sent");
    let full = client.request(Ask::Zeroes(512), 0, 0).expect_err("refused");
    assert_eq!((full.kind(), is_gone(&full)), (ErrorKind::StorageFull, false));
    assert_eq!(first.wait().expect("read"), 512u64.to_be_bytes());
    assert_eq!(second.wait().expect("read"), 4096u64.to_be_bytes());
}

#[test]
fn once_the_server_is_gone_everything_fails() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("s");
    server(&path, |stream, header| {
        // Half an answer.
        let mut bytes = SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(&header[8..16]);
        stream.write_all(&bytes).expect("sent");
        false
    });
    let client = Client::connect(&Address::unix(&path, "a")).expect("connected");
    assert!(is_gone(&client.request(Ask::Read(4096), 0, 0).expect_err("the server went")));
    let after = client.begin(Ask::Flush, 0, 0).and_then(Pending::wait).expect_err("it is gone");
    assert!(is_gone(&after), "{after}");
}

#[test]
fn an_answer_to_nothing_ends_the_connection() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("s");
    server(&path, |stream, _| {
        answer(stream, &[9; REQUEST_BYTES], 0, &[]);
        true
    });
    let client = Client::connect(&Address::unix(&path, "a")).expect("connected");
    let error = client.request(Ask::Flush, 0, 0).expect_err("that was no answer");
    assert!(is_gone(&error) && error.to_string().contains("not asked"), "{error}");
}
