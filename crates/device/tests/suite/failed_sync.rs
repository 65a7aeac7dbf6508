//! A sync fails, and what it should have made durable can still be read: no later attach may believe in it.

use std::cell::Cell;
use std::rc::Rc;

use device::{Device, Io, IoError, MediaFormat, max_sectors};
use ftl::{Geometry, Policy};
use media::flashback::media_geometry;
use media::sim::{Cut, Knobs, SimMedia, SimStore};
use media::{Command, Done, Media, MediaError, Page};
use random::SplitMix64;
use rustix::io::Errno;
use uuid::Uuid;

use crate::common::call;

const SECTOR: usize = 4096;

/// A medium whose next sync fails on every die when it is told so.
struct FailsOnce {
    inner: SimMedia,
    fails: Rc<Cell<bool>>,
}

impl Media for FailsOnce {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn page(&mut self) -> Page {
        self.inner.page()
    }

    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        match command {
            Command::Sync if self.fails.take() => {
                let dies = (0..self.geometry().dies).collect();
                Some(Done { id, result: Err(MediaError::Dies { dies, error: Errno::IO }) })
            }
            command => self.inner.submit(id, command),
        }
    }

    fn poll(&mut self) -> Option<Done> {
        self.inner.poll()
    }

    fn wait(&mut self) {
        self.inner.wait();
    }

    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        self.inner.read_label(die, copy)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        self.inner.allocated_bytes()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.inner.free_bytes()
    }

    fn inner(&mut self) -> Option<&mut dyn Media> {
        Some(&mut self.inner)
    }
}

fn medium(store: &SimStore) -> SimMedia {
    SimMedia::new(store, 1, Knobs { spread_polls: 0, must_erase: false, ..Knobs::default() })
}

#[test]
fn what_a_failed_sync_should_have_covered_is_not_believed_later() {
    a_failed_sync(1, 0);
}

/// Where more dies fail than parity makes up for, the sync fails as it does without, and none of them is given up.
#[test]
fn nor_is_it_with_parity() {
    a_failed_sync(3, 1);
}

fn a_failed_sync(dies: u32, parity: u32) {
    let geometry = Geometry {
        dies,
        parity,
        blocks: 60,
        pages_per_block: 4,
        slots_per_page: 4,
        sector_bytes: SECTOR as u32,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 4096,
    };
    let store = SimStore::new(if parity == 0 { geometry } else { media_geometry(&geometry) });
    let format = MediaFormat {
        sectors: max_sectors(&geometry) / 2,
        max_request_bytes: 4 * SECTOR as u32,
        checkpoint_interval: 200,
        policy: Policy::Greedy,
        uuid: Uuid::from_u128(7),
        key: None,
    };
    Device::format_media(&mut medium(&store), &format).expect("formatted");
    let fails = Rc::new(Cell::new(false));
    let media = FailsOnce { inner: medium(&store), fails: fails.clone() };
    let mut device = Device::on_media(Box::new(media), false).expect("attached");
    let write = |device: &mut Device, lba, byte| call(device, Io::Write { lba, data: &[byte; SECTOR], fua: false });
    let read =
        |device: &mut Device, lba| call(device, Io::Read { lba, buf: vec![0; SECTOR] }).expect("read").expect("data");

    write(&mut device, 1, 1).expect("written");
    write(&mut device, 2, 1).expect("written");
    call(&mut device, Io::Flush).expect("flushed");
    write(&mut device, 1, 2).expect("written");
    call(&mut device, Io::Trim { lba: 2, count: 1, fua: false }).expect("trimmed");
    fails.set(true);
    assert!(matches!(call(&mut device, Io::Flush), Err(IoError::Media)));
    assert!(matches!(call(&mut device, Io::Flush), Err(IoError::Media)), "a later flush is believed");
    assert_eq!(read(&mut device, 1), [2; SECTOR]);
    assert!(device.status().lost_dies.is_empty(), "a die is given up, and it helps nobody");
    assert!(device.detach().is_err(), "it must be told that nothing could be made durable");

    // All of it still stands there, and yet only what was flushed may count: of the rest nobody knows.
    let mut device = Device::on_media(Box::new(medium(&store)), false).expect("attached anew");
    assert_eq!(read(&mut device, 1), [1; SECTOR]);
    assert_eq!(read(&mut device, 2), [1; SECTOR]);
    write(&mut device, 3, 3).expect("written");
    call(&mut device, Io::Flush).expect("flushed");
    drop(device);
    store.switch_off();
    store.power_cut_as(&mut SplitMix64::new(3), &Cut::LOSE_ALL);
    let mut device = Device::on_media(Box::new(medium(&store)), false).expect("attached after a cut");
    assert_eq!([1, 2, 3].map(|lba| read(&mut device, lba)[0]), [1, 1, 3]);
}
