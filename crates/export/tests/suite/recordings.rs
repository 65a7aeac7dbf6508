//! Recordings that are on when their device goes.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use device::{AttachOptions, Capacity, CreateOptions, Device, Drill, FormatOptions, Unsynced};
use export::{Recording, WorkerHandle};
use trace::recorder::Recorder;
use trace::{OutputFormat, Reader, Wanted};

use crate::common::proto::command;
use crate::common::{self, Client, TestServer, request};

/// So many requests that they are not in the file before somebody waits for that.
const REQUESTS: u64 = 50_000;

fn record(device: &WorkerHandle, path: &Path) {
    let recorder = Recorder::start(path, OutputFormat::Msr, 0, "test").expect("a new file");
    assert!(device.begin_recording(Recording::new(recorder)).expect("attached").is_ok());
}

fn read_all(client: &mut Client<UnixStream>) {
    for first in (0..REQUESTS).step_by(500) {
        let requests: Vec<u8> = (first..first + 500)
            .flat_map(|number| request(command::READ, 0, number, number % 1000 * 512, 512))
            .collect();
        client.put(&requests);
        for _ in 0..500 {
            assert_eq!(client.reply().error, 0);
        }
    }
}

/// The trace, read as soon as whoever waited for the device's end is answered.
fn recorded(path: &Path) -> u64 {
    let reader = Reader::open(path, &Wanted::default()).expect("a trace");
    reader.inspect(|record| assert!(record.is_ok(), "a whole record: {record:?}")).count() as u64
}

#[test]
fn a_detach_writes_all_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.csv.zst");
    let server = common::serve_default();
    record(&server.device, &path);
    read_all(&mut server.go(""));
    assert_eq!(server.device.detach(true), Ok(()));
    assert_eq!(recorded(&path), REQUESTS);
}

#[test]
fn a_power_cut_writes_all_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.csv.zst");
    let server = serve_drills(directory.path().join("d.vsl"));
    record(&server.device, &path);
    read_all(&mut server.go(""));
    let (told, wait) = channel();
    let trace = path.clone();
    let ended = move |_, recording: Option<export::Recording>| {
        let status = recording.expect("it was being recorded").stop().expect("written");
        assert_eq!((status.written, status.path.as_path()), (REQUESTS, trace.as_path()));
        told.send(recorded(&trace)).expect("the test waits");
    };
    server.device.on_power_cut(ended).expect("attached");
    let cut = Drill::PowerCut { at_write: None, at_program: None, unsynced: Unsynced::default(), seed: None };
    server.device.with_device(move |device| device.drill(cut)).expect("attached").expect("a drill device");
    assert_eq!(wait.recv_timeout(Duration::from_secs(30)), Ok(REQUESTS));
}

fn serve_drills(path: PathBuf) -> TestServer {
    let paths = vec![path];
    let options = CreateOptions {
        advertised_bytes: 64 << 20,
        raw_bytes: 256 << 20,
        profile: None,
        parity: 0,
        format: FormatOptions { sector_bytes: 512, capacity: Capacity::Advertised, label: "t".into() },
    };
    device::create(&paths, &options).expect("created");
    device::mark_for_drills(&paths, true).expect("marked");
    common::serve_device(move |ring| Device::attach(&paths, &AttachOptions::default(), ring))
}
