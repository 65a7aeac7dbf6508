//! Which host has which device on objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Hosts;
use crate::api::{FleetDevice, HERE, LookRequest, ObjectsDevice, Owner};
use crate::registry::objects::look;
use crate::{Failure, Kind};

/// How long what a store said counts.
const FRESH: Duration = Duration::from_secs(10);
/// Stores that are asked at once, at most: which ones there are follows from what hosts say.
const MOST: usize = 16;

/// A device by where it lies: address and endpoint.
type At = (String, String);

/// What stores said lately.
pub type Looks = Mutex<BTreeMap<At, (Instant, Result<Owner, Failure>)>>;

fn at(device: &ObjectsDevice) -> At {
    (device.address.clone(), device.endpoint.clone().unwrap_or_default())
}

/// A host that was taken over from says that it is the owner until it writes its next anchor: the newest owner epoch counts.
pub fn settle_owners(all: &mut [FleetDevice]) {
    let mut newest: BTreeMap<At, u32> = BTreeMap::new();
    for one in all.iter().filter(|one| one.device.role == "owner") {
        let known = newest.entry(at(&one.device)).or_default();
        *known = one.device.epoch.unwrap_or_default().max(*known);
    }
    for one in all.iter_mut().filter(|one| one.device.role == "owner") {
        if let Some(newest) =
            newest.get(&at(&one.device)).filter(|newest| one.device.epoch.unwrap_or_default() < **newest)
        {
            one.device.role = "outdated".into();
            one.device.health =
                format!("taken over by owner {newest}, which this host learns with its next write to the store");
        }
    }
}

impl Hosts {
    /// Every device on objects: ours, those of the hosts that are watched, and those that one of them knows and none has. May wait for stores.
    pub fn fleet(&self, ours: Vec<ObjectsDevice>) -> Vec<FleetDevice> {
        let of = |host: String| move |device| FleetDevice { host: Some(host.clone()), device };
        let mut all: Vec<FleetDevice> = ours.into_iter().map(of(HERE.into())).collect();
        for host in self.views().into_iter().filter(|host| host.reachable) {
            all.extend(host.objects.unwrap_or_default().into_iter().map(of(host.name)));
        }
        settle_owners(&mut all);
        let owned: BTreeSet<At> =
            all.iter().filter(|one| one.device.role == "owner").map(|one| at(&one.device)).collect();
        let mut lost: BTreeMap<At, String> = BTreeMap::new();
        for one in all.iter().filter(|one| !owned.contains(&at(&one.device))) {
            lost.entry(at(&one.device)).or_insert_with(|| one.device.name.clone());
        }
        let lost: Vec<(At, String)> = lost.into_iter().take(MOST).collect();
        let said: Vec<FleetDevice> = std::thread::scope(|scope| {
            let asked: Vec<_> = lost.iter().map(|(at, name)| scope.spawn(|| self.elsewhere(at, name))).collect();
            asked.into_iter().filter_map(|one| one.join().ok()).collect()
        });
        all.extend(said);
        all.sort_by(|a, b| {
            let key = |one: &FleetDevice| (one.device.address.clone(), one.device.role != "owner", one.host.clone());
            key(a).cmp(&key(b))
        });
        all
    }

    /// Who has a device that no watched host has, as far as its store says.
    fn elsewhere(&self, at: &At, name: &str) -> FleetDevice {
        let (address, endpoint) = at.clone();
        let endpoint = Some(endpoint).filter(|endpoint| !endpoint.is_empty());
        let said = self.looked(at, &LookRequest { address: address.clone(), endpoint: endpoint.clone() });
        let device = ObjectsDevice { name: name.into(), address, endpoint, ..ObjectsDevice::default() };
        let device = match said {
            Ok(owner) => {
                let (role, health) = match owner.released {
                    true => ("released", format!("host `{}` has released it: any host may attach it", owner.host)),
                    false => (
                        "elsewhere",
                        format!("host `{}` has it, which is not watched or has no service now", owner.host),
                    ),
                };
                let (epoch, lease_s) = (Some(owner.epoch), Some(owner.lease_s));
                ObjectsDevice { role: role.into(), epoch, lease_s, health, ..device }
            }
            Err(failure) if failure.kind == Kind::NotFound => {
                ObjectsDevice { role: "unknown".into(), health: "there is no device in the store".into(), ..device }
            }
            Err(failure) => ObjectsDevice { role: "unknown".into(), health: failure.error, ..device },
        };
        FleetDevice { host: None, device }
    }

    fn looked(&self, at: &At, request: &LookRequest) -> Result<Owner, Failure> {
        let known = |looks: &Looks| {
            let mut looks = looks.lock().unwrap_or_else(PoisonError::into_inner);
            looks.retain(|_, (when, _)| when.elapsed() < FRESH);
            looks.get(at).map(|(_, said)| said.clone())
        };
        if let Some(said) = known(&self.looks) {
            return said;
        }
        let said = look(request);
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.insert(at.clone(), (Instant::now(), said.clone()));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_owner_counts() {
        let owner = |host: &str, address: &str, epoch| {
            let (address, role) = (address.into(), "owner".into());
            let device = ObjectsDevice { address, role, epoch: Some(epoch), ..ObjectsDevice::default() };
            FleetDevice { host: Some(host.into()), device }
        };
        let mut all = [owner("one", "s3://b/db", 3), owner("two", "s3://b/db", 4), owner("one", "s3://b/web", 2)];
        settle_owners(&mut all);
        assert_eq!(all.map(|one| one.device.role), ["outdated", "owner", "owner"]);
    }
}
