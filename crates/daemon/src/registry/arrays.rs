//! Arrays of attached devices. One is in the table like a device, on a thread of its own; its members stay in the table too, and nobody
//! else uses them.

use std::time::{Duration, Instant};

use array::{Level, Status};
use export::{ArrayError, ArrayMember, ArrayPlan};

use super::composites::Coming;
use super::table::{Entry, Phase, Standing};
use super::{Refused, Registry};
use crate::api::{
    AddMemberRequest, ArrayMemberView, ArrayRequest, ArrayView, Arrays, AssembleRequest, DeleteArrayRequest,
    ReplaceRequest,
};
use crate::handle::Handle;
use crate::state::RememberedArray;
use crate::{Failure, Target, names};

/// The stripe of RAID 0 where nobody says another, bytes.
const STRIPE_BYTES: u64 = 64 << 10;
/// How long a member that comes back may wait until the others have noted that it left.
const NOTED_WITHIN: Duration = Duration::from_secs(5);
/// How long a device that is added may take until all members have noted it.
const ADDED_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

impl Registry {
    /// Every array that the service remembers.
    pub fn arrays(&self) -> Arrays {
        let names: Vec<String> = self.table().state.arrays().iter().map(|array| array.name.clone()).collect();
        // One that was deleted in between is simply not there.
        Arrays { arrays: names.iter().filter_map(|name| self.array(name).ok()).collect() }
    }

    /// One array.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn array(&self, name: &str) -> Result<ArrayView, Failure> {
        let (remembered, handle, health) = {
            let table = self.table();
            let remembered = table.array(name)?.clone();
            match table.devices.get(name).map(Entry::standing) {
                Some(Standing::Attached(handle)) => (remembered, Some(handle.clone()), String::new()),
                Some(Standing::Failed(failure)) => (remembered, None, failure.to_string()),
                Some(_) => (remembered, None, "it is being assembled or stopped".into()),
                None => (remembered, None, format!("stopped; `vsl array assemble {name}` assembles it")),
            }
        };
        let mut view = ArrayView {
            name: remembered.name,
            uuid: remembered.uuid.to_string(),
            level: remembered.level.name().into(),
            state: "stopped".into(),
            health,
            stripe_bytes: remembered.stripe_bytes,
            members: remembered
                .members
                .into_iter()
                .map(|name| ArrayMemberView { name, state: "unknown".into() })
                .collect(),
            ..ArrayView::default()
        };
        if let Some(handle) = handle
            && let (Ok(Some(status)), Ok(seen)) = (handle.array_status(), handle.view())
        {
            view.health = seen.status.health.clone();
            view.bytes = Some(seen.info.bytes());
            view.max_request_bytes = Some(seen.info.max_request_bytes);
            view.repaired_bytes = status.repaired_sectors * u64::from(seen.info.sector_bytes);
            view.copied_bytes = status.copied_sectors * u64::from(seen.info.sector_bytes);
            show(&mut view, &status);
        }
        Ok(view)
    }

    /// Makes an array of attached devices, and serves it.
    ///
    /// # Errors
    /// The name is taken, or the devices cannot be its members; then nothing has changed.
    pub fn create_array(&self, request: &ArrayRequest) -> Result<ArrayView, Failure> {
        let ArrayRequest { name, members, force, .. } = request;
        names::check("array", name)?;
        let level = Level::from_name(&request.level).ok_or_else(|| {
            Failure::invalid(format!("'{}' is no level of an array", request.level))
                .help("choose raid0, raid1 or concat")
        })?;
        if request.stripe_bytes.is_some() && level != Level::Raid0 {
            return Err(Failure::invalid(format!("a stripe was given, and {} has none", level.words()))
                .help("leave the stripe out, or choose raid0"));
        }
        let stripe_bytes = (level == Level::Raid0).then(|| request.stripe_bytes.unwrap_or(STRIPE_BYTES));
        self.may_be_members(members)?;
        let uuid = uuid::Uuid::new_v4();
        let remembered =
            RememberedArray { name: name.clone(), uuid, level, stripe_bytes, members: members.clone(), adding: None };
        let plan = ArrayPlan::Make { uuid, level, stripe_bytes: stripe_bytes.unwrap_or(0), force: *force };
        if self.table().state.arrays().iter().any(|array| array.name == *name) {
            return Err(Failure::conflict(format!("the name '{name}' is taken by an array")).help("choose another"));
        }
        self.start_array(&remembered, plan)?;
        for member in members {
            self.exports.remove(member);
        }
        {
            let mut table = self.table();
            table.state.remember_array(remembered)?;
            table.remember_parts(members)?;
        }
        self.array(name)
    }

    /// Refuses devices that cannot be members, before anything is done.
    fn may_be_members(&self, members: &[String]) -> Result<(), Failure> {
        let mut table = self.table();
        for (at, member) in members.iter().enumerate() {
            if members[..at].contains(member) {
                return Err(Failure::invalid(format!("{member} was named twice")).help("name each device once"));
            }
            table.free(member)?;
            if table.state.arrays().iter().any(|array| array.name == *member) {
                return Err(Failure::invalid(format!("{member} is an array, which cannot be a member of another"))
                    .help("name devices"));
            }
        }
        Ok(())
    }

    /// Puts an array together that was made before.
    ///
    /// # Errors
    /// There is none of that name, it serves already, or its members are not enough.
    pub fn assemble_array(&self, name: &str, request: AssembleRequest) -> Result<ArrayView, Failure> {
        let remembered = self.table().array(name)?.clone();
        let AssembleRequest { degraded, force } = request;
        let failed = {
            let table = self.table();
            // One whose member is gone stays in the table until it is put together anew.
            table.devices.get(name).and_then(|entry| match entry.standing() {
                Standing::Attached(handle) => Some(handle.clone()),
                _ => None,
            })
        };
        if let Some(handle) = failed {
            let serves = handle.array_status()?.is_some_and(|status| status.condition != array::Condition::Failed);
            if serves {
                return Err(Failure::conflict(format!("{name} is assembled already"))
                    .help(format!("`vsl array status {name}` shows how it stands")));
            }
            match self.let_go(name, true) {
                // It could not be stopped in order, which is why it is assembled anew.
                Ok(()) | Err(Refused::Gone(_)) => {}
                Err(Refused::StillAttached(failure)) => return Err(failure),
            }
        }
        self.start_array(&remembered, ArrayPlan::Assemble { uuid: remembered.uuid, degraded, force })?;
        self.settle_adding(name)?;
        self.array(name)
    }

    /// Starts an array's thread, and serves it.
    fn start_array(&self, array: &RememberedArray, plan: ArrayPlan) -> Result<(), Failure> {
        let name = &array.name;
        let places = array.places();
        let target = Target::Array(array.members.clone());
        let (members, coming) = {
            let mut table = self.table();
            let coming = Coming::new(&mut table, name, target)?;
            let handle = |member: &String| match table.devices.get(member)?.standing() {
                Standing::Attached(handle) => Some(handle.worker().clone()),
                _ => None,
            };
            let members = places.iter().map(|member| ArrayMember { name: member.clone(), handle: handle(member) });
            (members.collect::<Vec<ArrayMember>>(), coming)
        };
        let started =
            Handle::start_array(name, members, plan, array.uuid).map_err(|error| failure(name, &places, &error));
        self.serve_composite(name, coming, started, ("assembled", array.level.words().into()))?;
        tracing::info!(array = name, level = array.level.name(), "assembled");
        Ok(())
    }

    /// Assembles what the state file remembers, once the devices are attached.
    pub(super) fn assemble_remembered(&self) {
        let remembered = self.table().state.arrays().to_vec();
        for array in remembered {
            let plan = ArrayPlan::Assemble { uuid: array.uuid, degraded: false, force: false };
            if let Err(failure) = self.start_array(&array, plan) {
                tracing::error!(array = array.name, "not assembled: {failure}");
                self.failed_composite(array.name, Target::Array(array.members), failure);
            } else if let Err(failure) = self.settle_adding(&array.name) {
                tracing::error!(array = array.name, "a device that was being added is still remembered so: {failure}");
            }
        }
    }

    /// A device was attached: if it belongs to an array, it comes back to it, or the array is assembled.
    pub(super) fn member_came(&self, member: &str) {
        let found = {
            let table = self.table();
            let array = table.state.array_of(member).cloned().filter(|_| table.ready);
            array.map(|array| {
                (table.devices.get(&array.name).map(|entry| matches!(entry.phase, Phase::Attached(_))), array)
            })
        };
        let Some((serves, array)) = found else { return };
        let done = match serves {
            // It is none yet, and the array knows whether it becomes one.
            Some(true) if array.adding.as_deref() == Some(member) => Ok(()),
            Some(true) => {
                let rejoined = self.rejoin(&array, member);
                match &rejoined {
                    // One that failed for want of this member.
                    Err(_) => self.assemble_array(&array.name, AssembleRequest::default()).map(drop).or(rejoined),
                    Ok(()) => rejoined,
                }
            }
            Some(false) => self.assemble_array(&array.name, AssembleRequest::default()).map(drop),
            // It was stopped.
            None => Ok(()),
        };
        if let Err(failure) = done {
            tracing::error!(array = array.name, member, "not a member again: {failure}");
        }
    }

    fn rejoin(&self, array: &RememberedArray, member: &str) -> Result<(), Failure> {
        let position = array.members.iter().position(|name| name == member).unwrap_or(0);
        let (handle, worker, log) = {
            let mut table = self.table();
            let worker = table.attached(member)?.worker().clone();
            let (handle, log) = table.attached_with_log(&array.name)?;
            (handle, worker, log)
        };
        wait_until_noted(&handle, position)?;
        let joined = handle.join_member(position, &worker, false, false);
        joined.map_err(|error| failure(&array.name, &array.members, &error))?;
        log.note("member-came", format!("{member} is back, and gets what it missed"));
        tracing::info!(array = array.name, member, "a member is back, and gets what it missed");
        Ok(())
    }

    /// Gives a mirror another device in the place of a member that is missing. What the mirror holds is copied to it beside requests.
    ///
    /// # Errors
    /// There is no such array or member, the member is there, or the device cannot take its place.
    pub fn replace_member(&self, name: &str, request: &ReplaceRequest) -> Result<ArrayView, Failure> {
        let ReplaceRequest { member, with, force } = request;
        let mut array = self.table().array(name)?.clone();
        let Some(position) = array.members.iter().position(|known| known == member) else {
            return Err(Failure::not_found(format!("{member} is no member of the array {name}"))
                .help(format!("its members are: {}", array.members.join(", "))));
        };
        if array.level != Level::Raid1 {
            return Err(Failure::invalid(format!("{name} is {}: nothing has what {member} held", array.level.words()))
                .help("only members of RAID 1 can be replaced"));
        }
        if member != with {
            self.may_be_members(std::slice::from_ref(with))?;
        }
        let (handle, worker, log) = {
            let mut table = self.table();
            let worker = table.attached(with)?.worker().clone();
            let (handle, log) = table.attached_with_log(name)?;
            (handle, worker, log)
        };
        let missing =
            handle.array_status()?.is_some_and(|status| status.members[position] == array::MemberState::Missing);
        if !missing {
            return Err(Failure::conflict(format!("{member} is in use by the array {name}"))
                .help(format!("detach it first: `vsl detach {member} --force`")));
        }
        wait_until_noted(&handle, position)?;
        let joined = handle.join_member(position, &worker, true, *force);
        joined.map_err(|error| failure(name, &array.members, &error))?;
        self.exports.remove(with);
        array.members[position].clone_from(with);
        log.note("member-replaced", format!("{with} takes the place of {member}"));
        {
            let mut table = self.table();
            if let Ok(entry) = table.entry(name) {
                entry.target = Target::Array(array.members.clone());
            }
            table.state.remember_array(array)?;
            table.remember_parts([with])?;
        }
        self.array(name)
    }

    /// Adds a device to an array as one more member, while the array is in use. When this returns, no power cut takes it away again. Copying
    /// to it, or laying stripes out over it, goes on beside requests.
    ///
    /// # Errors
    /// There is no such array, it does not serve, or the device cannot be its member; then nothing has changed.
    pub fn add_member(&self, name: &str, request: &AddMemberRequest) -> Result<ArrayView, Failure> {
        let AddMemberRequest { device, force } = request;
        let mut array = self.table().array(name)?.clone();
        if let Some(adding) = &array.adding {
            return Err(Failure::conflict(format!("{adding} is just being added to the array {name}")).help(format!(
                "wait for that; if it does not end: `vsl detach {name}`, then `vsl array assemble {name}`"
            )));
        }
        self.may_be_members(std::slice::from_ref(device))?;
        let (handle, worker) = {
            let mut table = self.table();
            (table.attached(name)?, table.attached(device)?.worker().clone())
        };
        let mut places = array.members.clone();
        places.push(device.clone());
        let told = |error: ArrayError| failure(name, &places, &error);
        let newcomer = handle.prepare_member(&worker, *force).map_err(told)?;
        // Should the service end in the middle, the array says at the next start whether the device is a member.
        array.adding = Some(device.clone());
        {
            let mut table = self.table();
            table.state.remember_array(array)?;
            table.remember_parts([device])?;
        }
        self.exports.remove(device);
        if let Err(error) = handle.grow(newcomer) {
            self.settle_adding(name)?;
            return Err(told(error));
        }
        let end = Instant::now() + ADDED_WITHIN;
        while handle.is_growing()? && Instant::now() < end {
            std::thread::sleep(PAUSE);
        }
        if self.settle_adding(name)? {
            return self.array(name);
        }
        let open = self.table().array(name)?.adding.is_some();
        Err(match open {
            true => Failure::failed(format!("{name}: a member failed while {device} was being added")).help(format!(
                "attach what is gone, then `vsl array assemble {name}`, which shows whether {device} is a member"
            )),
            false => {
                Failure::failed(format!("{device} did not become a member of the array {name}, and is free again"))
                    .help(format!("`vsl status {device}` and `vsl array status {name}` show how they stand"))
            }
        })
    }

    /// A device that was being added is a member, or is free again, as the array says. Whether it is one.
    fn settle_adding(&self, name: &str) -> Result<bool, Failure> {
        let (handle, log) = self.table().attached_with_log(name)?;
        let (status, growing) = (handle.array_status()?, handle.is_growing()?);
        let mut table = self.table();
        let mut array = table.array(name)?.clone();
        let Some(status) = status.filter(|status| !growing && status.condition != array::Condition::Failed) else {
            return Ok(false);
        };
        let Some(device) = array.adding.take() else { return Ok(false) };
        let is_member = status.members.len() > array.members.len();
        if is_member {
            array.members.push(device.clone());
            if let Ok(entry) = table.entry(name) {
                entry.target = Target::Array(array.members.clone());
            }
        }
        table.state.remember_array(array)?;
        let free = table.attached(&device).ok().filter(|_| !is_member);
        drop(table);
        if let Some(free) = free
            && let Err(failure) = self.exports.add(&device, &free, false)
        {
            tracing::error!(device, "not served again: {failure}");
        }
        if is_member {
            log.note("member-added", format!("{device} is one more member"));
            tracing::info!(array = name, device, "one more member");
            // From here on the log knows it by its name.
            handle.status().iter().for_each(|status| log.look(status, Some(status)));
        } else {
            log.note("member-not-added", format!("{device} did not become a member, and is free again"));
            tracing::warn!(array = name, device, "did not become a member, and is free again");
        }
        Ok(is_member)
    }

    /// Stops an array and forgets it. Its members are devices of their own again, and those of a mirror hold what it held.
    ///
    /// # Errors
    /// There is none of that name, it is not confirmed, or clients are connected and `force` is not set.
    pub fn delete_array(&self, name: &str, request: &DeleteArrayRequest) -> Result<Arrays, Failure> {
        let array = self.table().array(name)?.clone();
        if request.confirm != name {
            return Err(Failure::conflict(format!("{name}: deleting the array was not confirmed"))
                .help(format!("repeat the array's name: \"confirm\": \"{name}\"")));
        }
        let is_there = self.table().devices.contains_key(name);
        if is_there {
            match self.let_go(name, request.force) {
                Ok(()) | Err(Refused::Gone(_)) => {}
                Err(Refused::StillAttached(failure)) => return Err(failure),
            }
        }
        self.table().state.forget_array(name)?;
        for member in &array.places() {
            let found = self.table().attached(member);
            if let Ok(handle) = found
                && let Err(failure) = self.exports.add(member, &handle, false)
            {
                tracing::error!(device = member, "not served again: {failure}");
            }
        }
        Ok(self.arrays())
    }
}

/// A member that failed may come back at once; the others note first that it left.
fn wait_until_noted(handle: &Handle, position: usize) -> Result<(), Failure> {
    let end = Instant::now() + NOTED_WITHIN;
    while !handle.can_join(position)? && Instant::now() < end {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn show(view: &mut ArrayView, status: &Status) {
    view.state = status.condition.name().into();
    for (member, state) in view.members.iter_mut().zip(&status.members) {
        member.state = state.name().into();
    }
    (view.resync_percent, view.reshape_percent) = (status.resync_percent, status.reshape_percent);
    (view.dirty_regions, view.regions, view.events) = (status.dirty_regions, status.regions, status.events);
}

/// An error in which members are called by their names instead of their numbers.
fn failure(array: &str, members: &[String], error: &ArrayError) -> Failure {
    let mut said = error.to_string();
    for (number, name) in members.iter().enumerate().rev() {
        said = said.replace(&format!("member {number} "), &format!("{name} "));
        said = said.replace(&format!("member {number}:"), &format!("{name}:"));
        said = said.replace(&format!("members {number} and"), &format!("{name} and"));
        said = said.replace(&format!(" and {number} "), &format!(" and {name} "));
    }
    let said = format!("{array}: {said}");
    let (what, help) = said.split_once("; ").unwrap_or((&said, ""));
    let failure = match error {
        ArrayError::Shape(_) | ArrayError::Grow(array::GrowError::Shape(_)) | ArrayError::Unfit { .. } => {
            Failure::invalid(what)
        }
        ArrayError::Thread(_) | ArrayError::Member { .. } | ArrayError::Gone { .. } => Failure::failed(what),
        _ => Failure::conflict(what),
    };
    failure.help(help)
}
