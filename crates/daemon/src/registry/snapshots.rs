//! Snapshots of devices.

use array::Level;
use device::{Figures, Snapshot, SnapshotChange, SnapshotError, SnapshotId};
use export::Served;

use super::clones::clones;
use super::{Handle, Registry};
use crate::Failure;
use crate::api::{Diff, DiffBlock, RollBackRequest, SnapshotPatch, SnapshotView, Snapshots};
use crate::clock::now_ms;
use crate::schedule;
use crate::state::RememberedArray;

/// Pieces that are counted, and runs that are compared, before the device's thread sees to its clients again.
const AT_ONCE: usize = 4096;

impl Registry {
    /// The snapshots of a device or an array, and what they hold.
    ///
    /// # Errors
    /// There is no such device, or it is not attached.
    pub fn snapshots(&self, name: &str) -> Result<Snapshots, Failure> {
        let handle = self.table().attached(name)?;
        let array = self.table().array(name).ok().cloned();
        let look = |served: &mut Served| {
            let clones = served.device().map(|device| clones(device)).unwrap_or_default();
            (served.snapshots().to_vec(), clones, served.figures())
        };
        let (listed, clones, figures) = handle.with_served(look)?;
        let Space { alone, held_bytes, room_bytes } = match array {
            Some(array) => self.space_of_array(&handle, &array)?,
            None => space(&handle)?,
        };
        let views = listed.into_iter().map(|snapshot| {
            let alone = alone.iter().find(|(id, _)| *id == snapshot.id).map_or(0, |(_, sectors)| *sectors);
            let of = clones.iter().filter(|(of, _)| *of == snapshot.id).map(|(_, clone)| clone.clone()).collect();
            SnapshotView { clones: of, ..view(snapshot, alone, &figures) }
        });
        let (snapshots, schedule) = (views.collect(), self.schedule(&handle.facts().uuid));
        Ok(Snapshots { snapshots, held_bytes, room_bytes, schedule })
    }

    /// What the snapshots of an array hold, from what those of its members do.
    fn space_of_array(&self, handle: &Handle, array: &RememberedArray) -> Result<Space, Failure> {
        let on = |served: &mut Served| {
            let ids: Vec<SnapshotId> = served.snapshots().iter().map(|snapshot| snapshot.id).collect();
            let one = served.composite();
            one.map_or(Vec::new(), |one| ids.into_iter().map(|id| (id, one.snapshot_on(id))).collect())
        };
        let snapshots: Vec<(SnapshotId, Vec<Option<SnapshotId>>)> = handle.with_served(on)?;
        let members = array.members.iter().map(|member| {
            // One that a mirror goes on without says nothing.
            let there = self.table().attached(member).ok();
            there.map(|member| space(&member)).transpose()
        });
        let members = members.collect::<Result<Vec<Option<Space>>, Failure>>()?;
        let there = || members.iter().flatten();
        let alone = snapshots.into_iter().map(|(id, on)| {
            let own = on.iter().zip(&members).filter_map(|(own, member)| {
                let (own, member) = ((*own)?, member.as_ref()?);
                member.alone.iter().find(|(id, _)| *id == own).map(|(_, sectors)| *sectors)
            });
            (id, if array.level == Level::Raid1 { own.max().unwrap_or(0) } else { own.sum() })
        });
        let alone = alone.collect();
        let least = there().map(|member| member.room_bytes).min().unwrap_or(0);
        let (held_bytes, room_bytes) = match array.level {
            Level::Raid1 => (there().map(|member| member.held_bytes).max().unwrap_or(0), least),
            // The first member that is full is the end of it.
            Level::Raid0 => (there().map(|member| member.held_bytes).sum(), least * members.len() as u64),
            Level::Concat => {
                (there().map(|member| member.held_bytes).sum(), there().map(|member| member.room_bytes).sum())
            }
        };
        Ok(Space { alone, held_bytes, room_bytes })
    }

    /// Makes a snapshot.
    ///
    /// # Errors
    /// There is no such device, the name is one that schedules give, or it cannot be made.
    pub fn create_snapshot(&self, name: &str, snapshot: &str) -> Result<SnapshotView, Failure> {
        not_reserved(snapshot)?;
        let change = SnapshotChange::Create { name: snapshot.into(), created: now_ms() / 1000 };
        let handle = self.make_changes(name, "snapshot-made", snapshot, &[change])?;
        // What all of them hold is not counted: that takes longer than making one.
        let wanted = snapshot.to_owned();
        let named = move |served: &mut Served| {
            let made = served.snapshots().iter().find(|snapshot| snapshot.name == wanted).cloned();
            (made, served.figures())
        };
        let made = handle.with_served(named)?;
        let (Some(made), figures) = made else { return Err(no_snapshot(&handle, snapshot)) };
        Ok(view(made, 0, &figures))
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// There is no such device or snapshot, or it is held.
    pub fn delete_snapshot(&self, name: &str, snapshot: &str) -> Result<Snapshots, Failure> {
        // The table is not locked while the device answers.
        let handle = self.table().free(name)?;
        let id = find(&handle, snapshot)?;
        self.change_snapshots(name, "snapshot-deleted", snapshot, &[SnapshotChange::Delete(id)])
    }

    /// Gives a snapshot another name, holds it, or lets it go.
    ///
    /// # Errors
    /// There is no such device or snapshot, or another one has the name, or may get it from a schedule.
    pub fn change_snapshot(&self, name: &str, snapshot: &str, patch: &SnapshotPatch) -> Result<Snapshots, Failure> {
        patch.name.as_deref().map_or(Ok(()), not_reserved)?;
        // The table is not locked while the device answers.
        let handle = self.table().free(name)?;
        let id = find(&handle, snapshot)?;
        let renamed = patch.name.iter().map(|name| SnapshotChange::Rename(id, name.clone()));
        let held = patch.held.iter().map(|held| SnapshotChange::Hold(id, *held));
        let changes: Vec<_> = renamed.chain(held).collect();
        self.change_snapshots(name, "snapshot-changed", snapshot, &changes)
    }

    /// Has a device hold again what a snapshot shows.
    ///
    /// # Errors
    /// There is no such device or snapshot, it is not confirmed, or clients are connected.
    pub fn roll_back(&self, name: &str, snapshot: &str, request: &RollBackRequest) -> Result<Snapshots, Failure> {
        if request.confirm != name {
            return Err(Failure::conflict(format!("{name}: rolling back was not confirmed"))
                .help(format!("repeat the device's name: \"confirm\": \"{name}\"")));
        }
        let handle = self.table().free(name)?;
        let to = find(&handle, snapshot)?;
        if self.table().array(name).is_ok() {
            return Err(Failure::invalid(format!("{name} is an array, and an array does not roll back"))
                .help(format!("copy what {name}@{snapshot} shows to {name}, with nbdcopy or qemu-img")));
        }
        nobody_is_connected(&handle)?;
        let change = SnapshotChange::RollBack { to, delete_newer: request.delete_newer };
        self.change_snapshots(name, "rolled-back", snapshot, &[change])
    }

    fn change_snapshots(
        &self,
        name: &str,
        event: &'static str,
        snapshot: &str,
        changes: &[SnapshotChange],
    ) -> Result<Snapshots, Failure> {
        self.make_changes(name, event, snapshot, changes)?;
        self.snapshots(name)
    }

    pub(super) fn make_changes(
        &self,
        name: &str,
        event: &'static str,
        snapshot: &str,
        changes: &[SnapshotChange],
    ) -> Result<Handle, Failure> {
        self.table().not_a_member(name)?;
        let (handle, log) = self.table().attached_with_log(name)?;
        for change in changes {
            handle.change_snapshots(change).map_err(|failure| self.told(name, failure))?;
        }
        log.note(event, snapshot);
        tracing::info!(device = name, snapshot, "{event}");
        Ok(handle)
    }

    /// What differs between a snapshot and another one, or the device as it is, from a byte on.
    ///
    /// # Errors
    /// There is no such device or snapshot.
    pub fn diff(&self, name: &str, snapshot: &str, with: Option<&str>, from: u64) -> Result<Diff, Failure> {
        let handle = self.table().attached(name)?;
        let one = find(&handle, snapshot)?;
        let other = with.map(|other| find(&handle, other)).transpose()?;
        let sector = handle.info()?.sector_bytes;
        let from = from / u64::from(sector);
        let (found, next) = handle.ask(move |device| device.diff(Some(one), other, from, AT_ONCE))?;
        let bytes = |sectors: u64| sectors * u64::from(sector);
        let blocks = found.into_iter().map(|run| DiffBlock {
            byte_offset: bytes(run.lba),
            size_bytes: bytes(run.count),
            mapped: run.mapped,
        });
        Ok(Diff { block_size_bytes: sector, blocks: blocks.collect(), next: next.map(bytes) })
    }
}

/// What snapshots hold.
struct Space {
    /// Each of them alone, sectors.
    alone: Vec<(SnapshotId, u64)>,
    /// All of them, that the device itself does not any more, bytes.
    held_bytes: u64,
    /// What may still be written, bytes.
    room_bytes: u64,
}

/// What the snapshots of a device hold; counted bit by bit.
fn space(handle: &Handle) -> Result<Space, Failure> {
    let figures = handle.with_device(|device| device.figures())?;
    let mut alone: Vec<(SnapshotId, u64)> = Vec::new();
    let mut from = Some(0);
    while let Some(at) = from {
        let counted = handle.with_device(move |device| device.count_held(at, AT_ONCE))?;
        for (id, more) in counted.alone {
            match alone.iter_mut().find(|(known, _)| *known == id) {
                Some((_, sectors)) => *sectors += more,
                None => alone.push((id, more)),
            }
        }
        from = counted.next;
    }
    // Without snapshots there is room for whatever the host can address.
    let unused = figures.bytes(figures.sectors.saturating_sub(figures.mapped_sectors));
    let room_bytes = figures.room_left_bytes().unwrap_or(unused);
    Ok(Space { alone, held_bytes: figures.bytes(figures.kept_sectors - figures.cloned_sectors), room_bytes })
}

/// What a client has in its caches would no longer be what the device holds.
pub(super) fn nobody_is_connected(handle: &Handle) -> Result<(), Failure> {
    match handle.client_count() {
        0 => Ok(()),
        _ => Err(Failure::conflict(format!("{}: clients are connected, and would not notice", handle.name()))
            .help("disconnect them first; `vsl status` lists them")),
    }
}

/// Whatever has a name that schedules give may be deleted by one.
pub(super) fn not_reserved(snapshot: &str) -> Result<(), Failure> {
    match schedule::is_reserved(snapshot) {
        false => Ok(()),
        true => Err(Failure::invalid(format!("\"{snapshot}\" is a name that schedules give"))
            .help("choose another, or have it made by `vsl snapshot schedule`")),
    }
}

fn view(snapshot: Snapshot, alone: u64, figures: &Figures) -> SnapshotView {
    SnapshotView {
        alone_bytes: figures.bytes(alone),
        mapped_bytes: figures.bytes(snapshot.mapped),
        name: snapshot.name,
        created: snapshot.created,
        held: snapshot.held,
        clones: Vec::new(),
    }
}

/// The snapshot of a name.
pub(super) fn find(handle: &Handle, name: &str) -> Result<SnapshotId, Failure> {
    let wanted = name.to_owned();
    let named = move |served: &mut Served| served.view_named(&wanted).filter(|shown| !shown.is_clone);
    let found = handle.with_served(named)?.map(|shown| shown.id);
    found.ok_or_else(|| no_snapshot(handle, name))
}

fn no_snapshot(handle: &Handle, name: &str) -> Failure {
    Failure::not_found(format!("{}: there is no snapshot \"{name}\"", handle.name()))
        .help(format!("`vsl snapshot list {}` shows those that there are", handle.name()))
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Failure {
        let said = error.to_string();
        match error {
            SnapshotError::Unknown | SnapshotError::UnknownClone => Failure::not_found(said),
            SnapshotError::Taken(_) | SnapshotError::Held(_) | SnapshotError::Cloned(..) => Failure::conflict(said),
            SnapshotError::Name(_) | SnapshotError::Unsupported(_) | SnapshotError::Unclonable(_) => {
                Failure::invalid(said)
            }
            SnapshotError::TooMany | SnapshotError::TooManyClones | SnapshotError::Full => {
                Failure::conflict(said).help("`vsl snapshot list DEVICE` shows what each of them holds alone")
            }
            SnapshotError::Failed(_) => Failure::failed(said).help("see `vsl status`"),
        }
    }
}
