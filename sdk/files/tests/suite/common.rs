//! A sparse device whose power can be cut.

use openvsl::{CreateOptions, Device};
use tempfile::TempDir;

pub const MIB: u64 = 1 << 20;

/// The device, and the directory that it is in.
pub fn drill_device() -> (TempDir, Device) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("d.vsl");
    let mut options = CreateOptions::default();
    options.drills = true;
    options.address_space = Some(1 << 40);
    openvsl::create(&path, 64 * MIB, &options).expect("created");
    (directory, Device::open(&path).expect("opened"))
}
