//! What a client's connection takes in memory, and that it gives it back.

use crate::common::{MIB, proto, request, serve_default};

/// Bytes of a simple reply without data.
const ANSWER: usize = 16;

#[test]
fn a_client_that_is_always_behind_takes_no_more_with_time() {
    let server = serve_default();
    let mut client = server.go("");
    // A cache hint is answered on the spot with a header and nothing else.
    let requests = request(proto::command::CACHE, 0, 1, 0, 512).repeat(10_000);
    let behind = 20;
    (0..behind).for_each(|_| client.put(&requests));
    for _ in 0..100 {
        client.put(&requests);
        client.take(requests.len() / 28 * ANSWER);
    }
    let memory = server.device.clients().expect("the device is there")[0].memory_bytes;
    assert!(memory < 16 * MIB, "{memory} bytes");
    client.take(behind * requests.len() / 28 * ANSWER);
    client.assert_works();
}

#[test]
fn buffers_go_when_a_client_asks_for_nothing() {
    let server = serve_default();
    let mut client = server.go("");
    let data: Vec<u8> = (0..MIB).map(|at| (at % 251) as u8).collect();
    for round in 0..3 {
        assert_eq!(client.write(0, 0, &data), 0);
        // The receive that waited was ended, and the next request comes whole all the same.
        server.wait_until(|clients| clients[0].memory_bytes == 0);
        assert_eq!(client.read(0, MIB as u32), data, "round {round}");
    }
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_write_is_waited_for() {
    let server = serve_default();
    let mut client = server.go("");
    let data: Vec<u8> = (0..MIB).map(|at| (at % 249) as u8).collect();
    client.request(proto::command::WRITE, 0, 5, 0, MIB as u32);
    client.put(&data[..600_000]);
    // Longer than it takes until buffers of idle clients go.
    std::thread::sleep(std::time::Duration::from_millis(400));
    client.put(&data[600_000..]);
    assert_eq!(client.reply().error, 0);
    assert_eq!(client.read(0, MIB as u32), data);
}

#[test]
fn a_large_read_begins_although_others_read_without_end() {
    let server = serve_default();
    let mut many: Vec<_> = (0..3).map(|_| server.go("")).collect();
    for client in &mut many {
        (0..32).for_each(|cookie| client.request(proto::command::READ, 0, cookie, 0, MIB as u32));
    }
    let mut large = server.go("");
    assert_eq!(large.read(0, 32 * MIB as u32).len(), 32 * MIB as usize);
}
