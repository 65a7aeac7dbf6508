//! A device in a file of its own, with sectors of 4096 bytes, and requests of one sector.

use device::{AttachOptions, CreateOptions, Device, Io, IoError, create};
use media::ring::Ring;

use crate::common::call;

pub const SECTOR: usize = 4096;

/// The file, which goes with it.
pub struct Made {
    directory: tempfile::TempDir,
}

impl Made {
    pub fn new(options: &CreateOptions) -> Made {
        let made = Made { directory: tempfile::tempdir().expect("a directory") };
        create(&[made.path()], options).expect("created");
        made
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("d")
    }

    pub fn attach(&self) -> Device {
        Device::attach(&[self.path()], &AttachOptions::default(), &Ring::new(64).expect("io_uring")).expect("attached")
    }
}

/// Fills a sector with a byte.
pub fn write(device: &mut Device, lba: u64, byte: u8) -> Result<(), IoError> {
    call(device, Io::Write { lba, data: &[byte; SECTOR], fua: false }).map(drop)
}

/// The first byte of a sector.
pub fn read(device: &mut Device, lba: u64) -> u8 {
    call(device, Io::Read { lba, buf: vec![0xee; SECTOR] }).expect("read").expect("a buffer")[0]
}
