//! Devices of a service, over its Unix socket and over TCP.

use std::sync::Arc;

use device::SnapshotChange;
use export::{Address, Clients, Listener, Worker, WorkerHandle, nvme};
use openvsl::{Batch, ConnectOptions, Device, Error, HostSecret, OpenError};
use tempfile::TempDir;

const SECTOR: usize = 4096;

fn sector(byte: u8) -> Vec<u8> {
    vec![byte; SECTOR]
}

/// A service of one device in memory, as far as clients see it.
struct Service {
    server: nvme::Server,
    handle: WorkerHandle,
    uuid: String,
    directory: TempDir,
    tcp: String,
}

fn service(hosts: Option<&str>, read_only: bool) -> Service {
    let handle = Worker::spawn("test", |_| Ok(device::Device::memory(64 << 20, 4096).expect("good sizes")));
    let handle = handle.expect("a device");
    let uuid = handle.info().expect("it lives").uuid.to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let hosts = match hosts {
        Some(line) => {
            let file = directory.path().join("hosts");
            std::fs::write(&file, line).expect("a file");
            nvme::Hosts::load(&file).expect("hosts")
        }
        None => nvme::Hosts::Anybody,
    };
    let options = nvme::Options { hosts, ..nvme::Options::default() };
    let server = nvme::Server::new(options, &Arc::new(Clients::new(256 << 20))).expect("descriptors");
    server.add_export(nvme::Export { name: "test".into(), uuid: uuid.clone(), read_only, device: handle.clone() });
    server.listen(Listener::unix(&directory.path().join("nvme.sock")).expect("a socket")).expect("a thread");
    let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let Ok(Address::Tcp(tcp)) = server.listen(listener) else { panic!("TCP has an address") };
    Service { server, handle, uuid, directory, tcp: tcp.to_string() }
}

impl Service {
    fn unix(&self) -> String {
        format!("nvme+unix:///{}?socket={}/nvme.sock", self.uuid, self.directory.path().display())
    }

    fn connect(&self) -> Device {
        Device::connect(&self.unix()).expect("connected")
    }
}

#[test]
fn a_service_is_used_as_a_device_of_ones_own_is() {
    let service = service(None, false);
    let only = Device::connect(&format!("nvme+tcp://{}", service.tcp)).expect("the only device needs no name");
    for device in [service.connect(), only] {
        let capabilities = device.capabilities();
        assert_eq!((&capabilities.uuid, capabilities.sector_bytes), (&service.uuid, 4096));
        assert_eq!((capabilities.sectors, capabilities.max_write_bytes), (16384, 1 << 20));
        device.write(3, &[sector(1), sector(2)].concat()).expect("written");
        device.write_durable(9, &vec![7; 1 << 20]).expect("written");
        device.flush().expect("flushed");
        assert_eq!(device.read(3, 2), Ok([sector(1), sector(2)].concat()));
        assert_eq!(device.read(9, 256), Ok(vec![7; 1 << 20]));
        device.trim_durable(3, 1).expect("trimmed");
        assert_eq!(device.read(3, 2), Ok([sector(0), sector(2)].concat()));
        let batch = Batch::new().write(5, &sector(5)).write(700, &sector(6)).trim(4, 1).trim(9, 256);
        device.batch(batch.durable()).expect("carried out");
        assert_eq!(device.ranges(..1000).collect::<Result<Vec<_>, _>>(), Ok(vec![5..6, 700..701]));
        assert_eq!((device.exists(700), device.exists(4)), (Ok(true), Ok(false)));
        let twice = device.batch(Batch::new().write(5, &sector(1)).trim(0, 6)).expect_err("they overlap");
        assert!(matches!(twice, Error::Batch(_)), "{twice}");
        device.trim(700, 1).expect("trimmed");
        // More than a queue has room for.
        let writes: Vec<_> = (0..500).map(|lba| device.begin_write(1000 + lba, sector(lba as u8))).collect();
        writes.into_iter().for_each(|write| drop(write.wait().expect("written")));
        let reads: Vec<_> = (0..500).map(|lba| device.begin_read(1000 + lba, 1)).collect();
        reads.into_iter().zip(0..).for_each(|(read, byte)| assert_eq!(read.wait(), Ok(sector(byte as u8))));
        assert!(matches!(device.cut_power(), Err(Error::Unsupported { .. })));
        device.close().expect("closed");
    }
}

#[test]
fn a_connection_that_ends_says_so_to_everybody_who_asks() {
    let service = service(None, false);
    let device = service.connect();
    device.write(0, &sector(1)).expect("written");
    service.handle.detach(true).expect("detached");
    let first = device.write(0, &sector(2)).expect_err("nobody is there");
    assert!(matches!(first, Error::Disconnected { .. }), "{first}");
    assert_eq!(device.read(0, 1), Err(first));
    device.close().expect("closed");
    let again = Device::connect(&service.unix()).expect_err("it is not there any more");
    assert!(matches!(again, OpenError::Refused { .. }), "{again}");
}

/// The service goes and comes back: what was under way fails, what comes after waits, and a flush tells of writes that it cannot vouch for.
#[test]
fn a_connection_is_made_anew_where_that_was_asked_for() {
    let service = service(None, false);
    let mut options = ConnectOptions::default();
    options.reconnect = Some(std::time::Duration::from_secs(20));
    let device = Device::connect_with(&service.unix().parse().expect("an address"), &options).expect("connected");
    device.write(0, &sector(1)).expect("written");
    device.flush().expect("flushed");
    let away = |device: &Device| {
        service.server.remove_export("test");
        for client in service.handle.clients().expect("it lives") {
            service.handle.disconnect(client.id).expect("it lives");
        }
        // It waits for the service, or was under way when the connection ended.
        let read = device.begin_read(0, 1);
        std::thread::sleep(std::time::Duration::from_millis(200));
        let export = nvme::Export {
            name: "test".into(),
            uuid: service.uuid.clone(),
            read_only: false,
            device: service.handle.clone(),
        };
        service.server.add_export(export);
        let found = read.wait();
        assert!(found == Ok(sector(1)) || matches!(found, Err(Error::Disconnected { .. })), "{found:?}");
    };
    away(&device);
    assert_eq!(device.read(0, 1), Ok(sector(1)));
    device.flush().expect("nothing was in doubt");
    device.write(5, &sector(5)).expect("written, and not flushed");
    away(&device);
    device.write_durable(6, &sector(6)).expect("goes on");
    assert!(matches!(device.flush(), Err(Error::Disconnected { .. })), "sector 5 is in doubt");
    device.flush().expect("told once");
    device.close().expect("closed");
}

#[test]
fn who_serves_decides_who_may() {
    let known = service(None, true);
    let device = known.connect();
    assert!(device.capabilities().read_only);
    assert_eq!(device.write(0, &sector(1)), Err(Error::ReadOnly));
    assert_eq!(device.read(0, 1), Ok(sector(0)));

    let secret = "DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:";
    let host = "nqn.2014-08.org.nvmexpress:uuid:5b2e9a60-3a5c-4f0e-9d0c-1d6d8e6f4a11";
    let listed = service(Some(&format!("{host} {secret}")), false);
    assert!(matches!(Device::connect(&listed.unix()), Err(OpenError::Refused { .. })), "not listed");
    let address = listed.unix().parse().expect("an address");
    let mut options = ConnectOptions::default();
    options.host = Some(host.into());
    assert!(Device::connect_with(&address, &options).is_err(), "listed, but anybody could say so");
    options.secret = Some(secret.parse::<HostSecret>().expect("a secret"));
    let device = Device::connect_with(&address, &options).expect("listed and proved");
    assert_eq!(device.read(0, 1), Ok(sector(0)));
}

#[test]
fn where_nobody_serves_the_address_is_named() {
    let error = Device::connect("nvme+unix:///3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11?socket=/nowhere/nvme.sock");
    let error = error.expect_err("nobody is there").to_string();
    assert!(error.contains("/nowhere/nvme.sock") && error.contains("vsl up"), "{error}");
    assert!(matches!(Device::connect("localhost:4420"), Err(OpenError::Address(_))));
    let service = service(None, false);
    service.server.remove_export("test");
    let none = Device::connect(&format!("nvme+tcp://{}", service.tcp)).expect_err("there is none");
    assert!(matches!(none, OpenError::Ambiguous { count: 0, .. }), "{none}");
}

#[test]
fn a_snapshot_is_a_device_to_be_read_and_says_what_changed_since_an_older_one() {
    let service = service(None, false);
    let change = |change: SnapshotChange| {
        let done = service
            .handle
            .with_device(move |device| device.change_snapshots(&change).map(|()| device.snapshots().to_vec()));
        done.expect("it lives").expect("changed")
    };
    let create = |name: &str| change(SnapshotChange::Create { name: name.into(), created: 0 });
    let show = |name: &str| Device::connect(&service.unix().replacen('?', &format!("@{name}?"), 1));
    let device = service.connect();
    device.write(3, &[sector(1), sector(2), sector(3)].concat()).expect("written");
    create("old");
    device.write(4, &sector(4)).expect("written");
    device.trim(5, 1).expect("trimmed");
    device.write(700, &sector(5)).expect("written");
    let snapshots = create("new");
    device.write(3, &sector(9)).expect("written");

    let (old, new) = (show("old").expect("connected"), show("new").expect("connected"));
    let number = |device: &Device| device.capabilities().snapshot;
    assert_eq!((number(&device), number(&old)), (None, Some(snapshots[0].id)));
    for shown in [&old, &new] {
        let capabilities = shown.capabilities();
        assert_eq!((&capabilities.uuid, capabilities.sectors, capabilities.read_only), (&service.uuid, 16384, true));
        assert_eq!(shown.write(0, &sector(1)), Err(Error::ReadOnly));
    }
    assert_eq!(old.read(3, 3), Ok([sector(1), sector(2), sector(3)].concat()));
    assert_eq!(new.read(3, 3), Ok([sector(1), sector(4), sector(0)].concat()));
    assert_eq!(new.ranges(..).collect::<Result<Vec<_>, _>>(), Ok(vec![3..5, 700..701]));
    let since = snapshots[0].id;
    let expected = vec![(4..5, true), (5..6, false), (700..701, true)];
    assert_eq!(new.changes(since, ..).collect::<Result<Vec<_>, _>>(), Ok(expected));
    assert_eq!(device.changes(since, ..4).collect::<Result<Vec<_>, _>>(), Ok(vec![(3..4, true)]));
    assert_eq!(device.changes(since + 1, ..).next(), Some(Err(Error::NoSnapshot)));
    assert!(matches!(show("neither"), Err(OpenError::Refused { .. })));
    assert_eq!(service.handle.clients().expect("it lives").iter().filter(|one| one.export == "test@new").count(), 2);

    // Whoever has a snapshot open that is deleted gets errors, also where there is another of its name.
    change(SnapshotChange::Delete(snapshots[1].id));
    create("new");
    assert_eq!(new.read(3, 1), Err(Error::NoSnapshot));
    assert_eq!(new.ranges(..).next(), Some(Err(Error::NoSnapshot)));
    assert_eq!(show("new").expect("connected").read(3, 1), Ok(sector(9)));
}

#[test]
fn a_clone_is_a_device_to_be_written() {
    let service = service(None, false);
    let change = |change: SnapshotChange| {
        let done = service.handle.with_device(move |device| device.change_snapshots(&change));
        done.expect("it lives").expect("changed");
    };
    let device = service.connect();
    device.write(3, &[sector(1), sector(2), sector(3), sector(4)].concat()).expect("written");
    change(SnapshotChange::Create { name: "base".into(), created: 0 });
    let of = service.handle.with_device(|device| device.snapshots()[0].id).expect("it lives");
    let show = |name: &str| Device::connect(&service.unix().replacen('?', &format!("@{name}?"), 1));
    let [one, two] = ["one", "two"].map(|name| {
        change(SnapshotChange::Clone { of, name: name.into(), created: 0 });
        show(name).expect("connected")
    });
    assert!(!one.capabilities().read_only && one.capabilities().snapshot != two.capabilities().snapshot);
    // Small writes, large ones, trims and batches go different ways.
    one.write(3, &sector(11)).expect("written");
    two.write(700, &vec![12; 64 * SECTOR]).expect("written");
    two.trim(4, 1).expect("trimmed");
    let batch = Batch::new().write(5, &sector(13)).trim(6, 1);
    two.batch(batch).expect("carried out");
    two.flush().expect("flushed");
    let all = |bytes: [u8; 4]| Ok(bytes.map(sector).concat());
    assert_eq!(one.read(3, 4), all([11, 2, 3, 4]));
    assert_eq!(two.read(3, 4), all([1, 0, 13, 0]));
    assert_eq!(two.read(700, 64), Ok(vec![12; 64 * SECTOR]));
    for other in [&device, &one, &show("base").expect("connected")] {
        assert_eq!(other.read(700, 64), Ok(vec![0; 64 * SECTOR]));
        assert_eq!(other.read(4, 3), Ok([2, 3, 4].map(sector).concat()));
    }
    assert_eq!(device.read(3, 1), Ok(sector(1)));
    assert_eq!(two.ranges(..).collect::<Result<Vec<_>, _>>(), Ok(vec![3..4, 5..6, 700..764]));
    assert!(matches!(two.write(16384, &sector(1)), Err(Error::OutOfRange { .. })));

    // Whoever has a clone open that is deleted gets errors, also where there is another of its name.
    let id = service.handle.with_device(|device| device.clone_named("two").map(|clone| clone.id)).expect("it lives");
    change(SnapshotChange::DeleteClone(id.expect("it is there")));
    change(SnapshotChange::Clone { of, name: "two".into(), created: 0 });
    assert_eq!(two.write(3, &sector(1)), Err(Error::NoSnapshot));
    assert_eq!(two.read(3, 1), Err(Error::NoSnapshot));
    assert_eq!(show("two").expect("connected").read(3, 4), all([1, 2, 3, 4]));
}
