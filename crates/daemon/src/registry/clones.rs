//! Clones of devices' snapshots.

use device::{Device, SnapshotChange, SnapshotId};

use super::snapshots::{find, nobody_is_connected, not_reserved};
use super::{Handle, Registry};
use crate::Failure;
use crate::api::{CloneRequest, CloneView, Clones, PromoteRequest};
use crate::clock::now_ms;

impl Registry {
    /// The clones of a device's snapshots.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn clones(&self, name: &str) -> Result<Clones, Failure> {
        let found = self.table().attached(name)?.with_device(|device| clones(device))?;
        Ok(Clones { clones: found.into_iter().map(|(_, clone)| clone).collect() })
    }

    /// Makes a clone of a snapshot.
    ///
    /// # Errors
    /// There is no such device or snapshot, the name is taken or one that schedules give, or it cannot be made.
    pub fn create_clone(&self, name: &str, request: &CloneRequest) -> Result<CloneView, Failure> {
        not_reserved(&request.name)?;
        let handle = self.table().free(name)?;
        let of = find(&handle, &request.snapshot)?;
        let created = now_ms() / 1000;
        let change = SnapshotChange::Clone { of, name: request.name.clone(), created };
        self.make_changes(name, "clone-made", &request.name, &[change])?;
        let CloneRequest { name, snapshot } = request.clone();
        Ok(CloneView { name, snapshot, created, own_bytes: 0 })
    }

    /// Deletes a clone.
    ///
    /// # Errors
    /// There is no such device or clone.
    pub fn delete_clone(&self, name: &str, clone: &str) -> Result<Clones, Failure> {
        let handle = self.table().free(name)?;
        let id = find_clone(&handle, clone)?;
        self.make_changes(name, "clone-deleted", clone, &[SnapshotChange::DeleteClone(id)])?;
        self.clones(name)
    }

    /// Has a device hold what one of its clones does, which is none any more.
    ///
    /// # Errors
    /// There is no such device or clone, it is not confirmed, or clients are connected.
    pub fn promote_clone(&self, name: &str, clone: &str, request: &PromoteRequest) -> Result<Clones, Failure> {
        if request.confirm != name {
            return Err(Failure::conflict(format!("{name}: promoting a clone was not confirmed"))
                .help(format!("repeat the device's name: \"confirm\": \"{name}\"")));
        }
        let handle = self.table().free(name)?;
        let id = find_clone(&handle, clone)?;
        nobody_is_connected(&handle)?;
        self.make_changes(name, "clone-promoted", clone, &[SnapshotChange::Promote(id)])?;
        self.clones(name)
    }
}

/// The clones of a device, each with the snapshot that it stands on.
pub(super) fn clones(device: &Device) -> Vec<(SnapshotId, CloneView)> {
    let sector = u64::from(device.info().sector_bytes);
    let view = |clone: &device::SnapshotClone| {
        let snapshot = device.snapshot(clone.of).map(|snapshot| snapshot.name.clone()).unwrap_or_default();
        let own_bytes = device.own_sectors(clone) * sector;
        (clone.of, CloneView { name: clone.name.clone(), snapshot, created: clone.created, own_bytes })
    };
    device.clones().iter().map(view).collect()
}

fn find_clone(handle: &Handle, name: &str) -> Result<SnapshotId, Failure> {
    let wanted = name.to_owned();
    let found = handle.with_device(move |device| device.clone_named(&wanted).map(|clone| clone.id))?;
    found.ok_or_else(|| {
        Failure::not_found(format!("{}: there is no clone \"{name}\"", handle.name()))
            .help(format!("`vsl clone list {}` shows those that there are", handle.name()))
    })
}
