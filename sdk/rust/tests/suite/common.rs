//! What several of these tests begin with.

use openvsl::{CreateOptions, Device};
use tempfile::TempDir;

/// A device of 64 MiB whose power can be cut, and the directory that it is in.
pub fn drill_device() -> (TempDir, Device) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("d.vsl");
    let mut options = CreateOptions::default();
    options.drills = true;
    openvsl::create(&path, 64 << 20, &options).expect("created");
    let device = Device::open(&path).expect("opened");
    (directory, device)
}
