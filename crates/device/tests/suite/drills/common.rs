//! A drill device on files, and how requests are put to it.

use std::path::PathBuf;

use device::{
    AttachOptions, Capacity, CarriedDrills, CreateOptions, Device, FormatOptions, Io, IoError, create, mark_for_drills,
};
use media::ring::Ring;
use tempfile::TempDir;

pub use crate::common::{ask, call};

pub const SECTOR: usize = 4096;

/// A device's files, made in a directory of their own.
pub struct Files {
    _dir: TempDir,
    /// Where page buffers outlive the process, which a power cut on command must not let them.
    memory: TempDir,
    pub paths: Vec<PathBuf>,
}

impl Files {
    pub fn unmarked(files: usize, parity: u32) -> Files {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let paths: Vec<PathBuf> = (0..files).map(|number| dir.path().join(format!("d{number}.vsl"))).collect();
        let options = CreateOptions {
            advertised_bytes: 256 << 20,
            raw_bytes: 384 << 20,
            profile: None,
            parity,
            format: FormatOptions { sector_bytes: SECTOR as u32, capacity: Capacity::Advertised, label: "t".into() },
        };
        create(&paths, &options).expect("created");
        let memory = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        Files { _dir: dir, memory, paths }
    }

    pub fn new(files: usize, parity: u32) -> Files {
        let files = Files::unmarked(files, parity);
        assert!(mark_for_drills(&files.paths, true).expect("marked").drill_device);
        files
    }

    pub fn attach(&self) -> Device {
        self.attach_with(CarriedDrills::default())
    }

    pub fn attach_with(&self, drills: CarriedDrills) -> Device {
        let ring = Ring::new(64).expect("io_uring");
        let staging = Some(self.memory.path().into());
        let options = AttachOptions { drills, staging, ..AttachOptions::default() };
        Device::attach(&self.paths, &options, &ring).expect("attached")
    }
}

pub fn write(device: &mut Device, lba: u64, byte: u8) -> Result<(), IoError> {
    call(device, Io::Write { lba, data: &[byte; SECTOR], fua: false }).map(drop)
}

pub fn flush(device: &mut Device) -> Result<(), IoError> {
    call(device, Io::Flush).map(drop)
}

/// What stands in a sector, which is the same byte throughout.
pub fn read(device: &mut Device, lba: u64) -> Result<u8, IoError> {
    let bytes = call(device, Io::Read { lba, buf: vec![0xee; SECTOR] })?.expect("a read gives its buffer");
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "sector {lba} is torn");
    Ok(bytes[0])
}
