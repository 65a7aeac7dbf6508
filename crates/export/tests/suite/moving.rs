//! A device moves to another one while a client uses it.

use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use array::{MoveCondition, MoveFailure, MoveStatus};
use device::{
    AttachError, AttachOptions, Capacity, CreateOptions, Device, Durability, FormatOptions, Info, Setting,
    give_up_identity,
};
use export::{HandOverError, MoveError, Worker, WorkerHandle};
use media::ring::SharedRing;
use uuid::Uuid;

use crate::common::proto::command;
use crate::common::{Client, MIB, TestServer, serve_device};

/// Capacity of the devices, bytes.
const BYTES: u64 = 32 * MIB;
const BLOCK: usize = 4096;
const BLOCKS: u64 = BYTES / BLOCK as u64;
/// Clients at once.
const USERS: u64 = 4;

fn made(path: &Path, bytes: u64, sector_bytes: u32) -> Info {
    let format = FormatOptions { sector_bytes, capacity: Capacity::Advertised, label: String::new() };
    let options =
        CreateOptions { advertised_bytes: bytes, raw_bytes: bytes + 96 * MIB, profile: None, parity: 0, format };
    device::create(&[path], &options).expect("made")
}

/// Attaches what a path names, with an identity where one is given.
fn attach(
    path: &Path,
    identity: Option<Uuid>,
) -> impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static {
    let path = path.to_path_buf();
    move |ring| Device::attach(&[path], &AttachOptions { identity, ..AttachOptions::default() }, ring)
}

struct World {
    directory: tempfile::TempDir,
    server: TestServer,
    old: PathBuf,
    new: PathBuf,
    identity: Uuid,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let (old, new) = (directory.path().join("old.vsl"), directory.path().join("new.vsl"));
        let identity = made(&old, BYTES, 4096).uuid;
        made(&new, BYTES, 4096);
        let server = serve_device(attach(&old, None));
        World { directory, server, old, new, identity }
    }

    fn target(&self) -> WorkerHandle {
        Worker::spawn("new", attach(&self.new, None)).expect("attached")
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&MoveStatus) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.server.device.move_status().expect("the thread is there").expect("it is being moved");
            if is_there(&status) {
                return;
            }
            assert!(Instant::now() < end, "never {what}: {status:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Both hold the same, and requests are held back; the new device is detached.
    fn settle(&self, target: &WorkerHandle) {
        self.wait_for("in sync", |status| status.condition == MoveCondition::InSync);
        self.server.device.settle_move().expect("the thread is there");
        self.wait_for("settled", |status| status.condition == MoveCondition::Settled);
        target.detach(true).expect("detached");
    }

    fn hand_over(
        &self,
        new: impl FnOnce(&SharedRing) -> Result<Device, AttachError> + Send + 'static,
        commit: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), HandOverError<String>> {
        self.server.device.hand_over(new, commit, attach(&self.old, None)).expect("the thread is there")
    }

    /// Runs `during` while clients write and read back, each a part of its own; afterwards everything is there that they wrote, over the same
    /// connections.
    fn under_load(&self, during: impl FnOnce()) {
        let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let (done, rounds) = (&done, &rounds);
            let share = |user| user * BLOCKS / USERS..(user + 1) * BLOCKS / USERS;
            let users =
                (0..USERS).map(|user| scope.spawn(move || use_it(self.server.go(""), share(user), done, rounds)));
            let users: Vec<_> = users.collect();
            while rounds.load(Ordering::Relaxed) < 500 {
                std::thread::sleep(Duration::from_millis(1));
            }
            during();
            // What was held back goes on.
            let seen = rounds.load(Ordering::Relaxed);
            while rounds.load(Ordering::Relaxed) < seen + 500 {
                std::thread::sleep(Duration::from_millis(1));
            }
            done.store(true, Ordering::Relaxed);
            for user in users {
                user.join().expect("the client found what it wrote");
            }
        });
    }
}

fn use_it(mut client: Client<UnixStream>, share: Range<u64>, done: &AtomicBool, rounds: &AtomicU64) {
    let mut model = vec![0u8; BLOCKS as usize];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ share.start;
    let check = |client: &mut Client<_>, model: &[u8], block: u64, count: u64| {
        let found = client.read(block * BLOCK as u64, count as u32 * BLOCK as u32);
        for (found, block) in found.chunks(BLOCK).zip(block..) {
            assert!(found.iter().all(|byte| *byte == model[block as usize]), "block {block}");
        }
    };
    while !done.load(Ordering::Relaxed) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let count = 1 + (random >> 20) % 16;
        let block = share.start + (random >> 33) % (share.end - share.start - count);
        match random >> 60 {
            0 => assert_eq!(client.error(command::FLUSH, 0, 0, 0), 0),
            1 => {
                assert_eq!(client.error(command::TRIM, 0, block * BLOCK as u64, count as u32 * BLOCK as u32), 0);
                model[block as usize..(block + count) as usize].fill(0);
            }
            2..6 => check(&mut client, &model, block, count),
            _ => {
                let byte = (random >> 8) as u8;
                let flags = u16::from(random >> 60 == 6);
                assert_eq!(client.write(flags, block * BLOCK as u64, &vec![byte; count as usize * BLOCK]), 0);
                model[block as usize..(block + count) as usize].fill(byte);
            }
        }
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    for block in share.step_by(16) {
        check(&mut client, &model, block, 16);
    }
}

#[test]
fn a_device_moves_while_a_client_writes_and_keeps_its_identity() {
    let world = World::new();
    let device = &world.server.device;
    let requests = || device.view().expect("the thread is there").status.figures.requests.writes;
    world.under_load(|| {
        let target = world.target();
        device.begin_move(&target, false).expect("it begins");
        assert!(matches!(device.begin_move(&target, false), Err(MoveError::Taken { .. })), "it is being moved");
        world.settle(&target);
        let before = requests();
        world.hand_over(attach(&world.new, Some(world.identity)), || Ok(())).expect("handed over");
        assert!(requests() < before, "another device counts");
    });
    assert!(device.move_status().expect("the thread is there").is_none());
    assert_eq!(device.info().expect("the thread is there").uuid, world.identity);
    assert_eq!(device.info().expect("the thread is there").paths, std::slice::from_ref(&world.new));

    // The old one cannot be taken for it: not while both have the name, and not afterwards.
    let twice = Worker::spawn("old", attach(&world.old, None)).map(drop);
    assert!(matches!(twice, Err(AttachError::Twin { .. })), "{twice:?}");
    assert!(give_up_identity(&[&world.old], world.identity, None).expect("it gives it up"));
    assert!(!give_up_identity(&[&world.old], world.identity, None).expect("it has not got it any more"));
    let moved = Worker::spawn("old", attach(&world.old, None)).map(drop);
    assert!(matches!(moved, Err(AttachError::MovedAway { .. })), "{moved:?}");
    device.detach(true).expect("detached");
    let moved = Worker::spawn("old", attach(&world.old, None)).map(drop);
    assert!(matches!(moved, Err(AttachError::MovedAway { .. })), "{moved:?}");
    let path = world.old.clone();
    let options = AttachOptions { new_identity: true, ..AttachOptions::default() };
    let own = Worker::spawn("old", move |ring| Device::attach(&[path], &options, ring)).expect("a device of its own");
    assert_ne!(own.info().expect("the thread is there").uuid, world.identity);
    own.detach(true).expect("detached");
    let again = Worker::spawn("test", attach(&world.new, None)).expect("attached");
    assert_eq!(again.info().expect("the thread is there").uuid, world.identity);
}

#[test]
fn a_hand_over_that_fails_leaves_the_old_device_with_its_clients() {
    let world = World::new();
    let device = &world.server.device;
    let found = |error: HandOverError<String>| error.to_string();
    world.under_load(|| {
        let too_early = world.hand_over(attach(&world.new, Some(world.identity)), || Ok(()));
        assert!(matches!(too_early, Err(HandOverError::NotSettled)));
        let target = world.target();
        device.begin_move(&target, false).expect("it begins");
        let too_early = world.hand_over(attach(&world.new, Some(world.identity)), || Ok(()));
        assert!(matches!(too_early, Err(HandOverError::NotSettled)));
        world.settle(&target);
        let nowhere = world.directory.path().join("nowhere.vsl");
        let error = world.hand_over(attach(&nowhere, Some(world.identity)), || Ok(())).map_err(found);
        assert!(error.as_ref().is_err_and(|why| why.contains("nowhere.vsl")), "{error:?}");
        assert_eq!(device.info().expect("the thread is there").paths, std::slice::from_ref(&world.old));

        let target = world.target();
        device.begin_move(&target, true).expect("it begins");
        world.settle(&target);
        let error = world.hand_over(attach(&world.new, Some(world.identity)), || Err("no room".into())).map_err(found);
        assert_eq!(error, Err("no room".into()));
        assert_eq!(device.info().expect("the thread is there").paths, std::slice::from_ref(&world.old));
        // The new one has the identity for nothing, and gives it back.
        assert!(give_up_identity(&[&world.new], world.identity, Some(Uuid::from_u128(7))).expect("it gives it up"));
        let target = world.target();
        assert_eq!(target.info().expect("the thread is there").uuid, Uuid::from_u128(7));
        target.detach(true).expect("detached");
    });
}

#[test]
fn a_move_is_cancelled_or_loses_its_target_and_nobody_notices() {
    let world = World::new();
    let device = &world.server.device;
    world.under_load(|| {
        for _ in 0..20 {
            let target = world.target();
            device.begin_move(&target, true).expect("it begins");
            world.wait_for("some of it", |status| status.at > 0);
            while !device.end_move().expect("the thread is there") {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(device.move_status().expect("the thread is there").is_none());
            target.detach(true).expect("free again");
        }
        let target = world.target();
        device.begin_move(&target, true).expect("it begins");
        target.detach(true).expect("detached by force");
        let gone = MoveCondition::Failed(MoveFailure::Gone);
        world.wait_for("without its target", |status| status.condition == gone);
        while !device.end_move().expect("the thread is there") {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    assert_eq!(device.info().expect("the thread is there").paths, std::slice::from_ref(&world.old));
}

#[test]
fn what_cannot_take_the_place_is_refused() {
    let world = World::new();
    let device = &world.server.device;
    let other = |name: &str, bytes: u64, sector_bytes: u32| {
        let path = world.directory.path().join(name);
        made(&path, bytes, sector_bytes);
        Worker::spawn(name, attach(&path, None)).expect("attached")
    };
    let refused = |target: &WorkerHandle| device.begin_move(target, false).expect_err("refused").to_string();
    let said = refused(&other("small", BYTES / 2, 4096));
    assert!(said.contains("small: has 16777216 bytes; expected 33554432"), "{said}");
    let said = refused(&other("large", BYTES * 2, 4096));
    assert!(said.contains("expected 33554432"), "{said}");
    let said = refused(&other("fine", BYTES, 512));
    assert!(said.contains("sectors of 512 bytes; expected 4096"), "{said}");
    assert!(refused(device).contains("test: "), "itself");
    let target = world.target();
    target
        .with_device(|device| {
            device.set(&[Setting::Durability(Durability::Unsafe)]).expect("a setting");
        })
        .expect("the thread is there");
    assert!(refused(&target).contains("'unsafe'"));
    let path = world.directory.path().join("held");
    made(&path, BYTES, 4096);
    let server = serve_device(attach(&path, None));
    assert_eq!(server.go("").write(0, 3 * BLOCK as u64, &[1; BLOCK]), 0);
    let held = server.device.clone();
    // The connection ends a moment later, and is in the way until then.
    let end = Instant::now() + Duration::from_secs(60);
    while !refused(&held).contains("holds data") {
        assert!(Instant::now() < end, "{}", refused(&held));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(device.move_status().expect("the thread is there").is_none(), "nothing began");
    // The thread of what was refused lets it go by itself, a moment later.
    while let Err(error) = device.begin_move(&held, true) {
        assert!(matches!(error, MoveError::Taken { .. }) && Instant::now() < end, "it may be destroyed: {error}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
