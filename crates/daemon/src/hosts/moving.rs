//! Moving a device on objects from one host to another: the owner releases it, the other host attaches it where it lies, and nothing is copied.
//!
//! A target that refuses costs the device nothing: the source attaches it again by its old journal, which is still the owner's.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{Method, header};
use hyper::body::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fleet::settle_owners;
use super::watch::{get, take};
use super::{Hosts, Way};
use crate::access::ROLE;
use crate::api::{
    AttachRequest, DetachRequest, DeviceView, FleetDevice, FleetMove, FleetMoveRequest, FromStore, HERE, LookRequest,
    ObjectsDevice, Owner, PREFIX, Role,
};
use crate::clock::now_ms;
use crate::registry::Registry;
use crate::registry::objects::look;
use crate::{Failure, Kind};

/// Moves that are remembered.
const REMEMBERED: usize = 100;
/// How long a host may take to detach a device, whose last writes go to the store first, or to attach one.
const PATIENCE: Duration = Duration::from_secs(180);

/// The moves, the oldest first.
pub type Moves = Mutex<Vec<FleetMove>>;

/// A host that has a part in a move.
enum Side {
    /// This one.
    Here(Arc<Registry>, Role),
    /// One that is watched.
    There(String, Arc<Way>, Role),
}

impl Side {
    fn name(&self) -> &str {
        match self {
            Side::Here(..) => HERE,
            Side::There(name, ..) => name,
        }
    }

    async fn here<T: Send + 'static>(
        registry: &Arc<Registry>,
        work: impl FnOnce(&Arc<Registry>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let registry = Arc::clone(registry);
        let done = tokio::task::spawn_blocking(move || work(&registry)).await;
        done.unwrap_or_else(|error| Err(Failure::failed(format!("the service made a mistake: {error}"))))
    }

    async fn post<T: DeserializeOwned>(
        (way, role): (&Way, Role),
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| Failure::failed(format!("the request: {error}")))?;
        let headers = [
            (header::AUTHORIZATION.to_string(), format!("Bearer {}", way.key)),
            (header::CONTENT_TYPE.to_string(), "application/json".into()),
            (ROLE.to_string(), role.name().to_string()),
        ];
        let path = format!("{PREFIX}{path}");
        take(way.remote.send_within(PATIENCE, Method::POST, &path, &headers, Bytes::from(body)).await?).await
    }

    /// Whether a device in a store can be seen from there: the program is new enough, and has credentials.
    async fn look(&self, request: LookRequest) -> Result<Owner, Failure> {
        match self {
            Side::Here(registry, _) => Side::here(registry, move |_| look(&request)).await,
            Side::There(_, way, role) => Side::post((way, *role), "/objects/look", &request).await,
        }
    }

    async fn device(&self, name: String) -> Result<DeviceView, Failure> {
        match self {
            Side::Here(registry, _) => Side::here(registry, move |registry| registry.view(&name)).await,
            Side::There(_, way, _) => get(way, &format!("/devices/{name}")).await,
        }
    }

    async fn detach(&self, name: String, force: bool) -> Result<(), Failure> {
        match self {
            Side::Here(registry, _) => Side::here(registry, move |registry| registry.detach(&name, force)).await,
            Side::There(_, way, role) => {
                let done: Result<Value, Failure> =
                    Side::post((way, *role), &format!("/devices/{name}/detach"), &DetachRequest { force }).await;
                done.map(drop)
            }
        }
    }

    async fn attach(&self, request: AttachRequest) -> Result<DeviceView, Failure> {
        match self {
            Side::Here(registry, role) => {
                let anywhere = *role == Role::Administrator;
                let attach = move |registry: &Arc<Registry>| match request.objects {
                    None => registry.attach(&request),
                    Some(_) => {
                        let path = registry.journal(&request.path, anywhere)?;
                        registry.attach(&AttachRequest { path, ..request })
                    }
                };
                Side::here(registry, attach).await
            }
            Side::There(_, way, role) => Side::post((way, *role), "/devices", &request).await,
        }
    }
}

/// A move that is about to begin.
pub struct Plan {
    from: Side,
    to: Side,
    request: FleetMoveRequest,
    store: LookRequest,
    /// Attached again by this journal if the other host refuses the device.
    old_journal: String,
    journal: String,
}

impl Hosts {
    fn moves(&self) -> MutexGuard<'_, Vec<FleetMove>> {
        // Whole between any two statements.
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The moves, the newest first.
    pub fn moves_so_far(&self) -> Vec<FleetMove> {
        self.moves().iter().rev().cloned().collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn move_of(&self, id: u64) -> Result<FleetMove, Failure> {
        let found = self.moves().iter().find(|one| one.id == id).cloned();
        found.ok_or_else(|| Failure::not_found(format!("there is no move {id}")).help("`GET /fleet/moves` lists them"))
    }

    fn side(&self, name: &str, registry: &Arc<Registry>, role: Role) -> Result<Side, Failure> {
        if name == HERE {
            return Ok(Side::Here(Arc::clone(registry), role));
        }
        Ok(Side::There(name.into(), self.way(name)?, role))
    }

    /// Looks whether a device can be moved; nothing is changed.
    ///
    /// # Errors
    /// It is not known which host has it, it is no device on objects, or the other host cannot see it.
    pub async fn plan_move(
        &self,
        registry: &Arc<Registry>,
        role: Role,
        request: FleetMoveRequest,
    ) -> Result<Plan, Failure> {
        let name = request.device.clone();
        let from = match &request.from {
            Some(from) => from.clone(),
            None => {
                let hosts = self.fleet_of(registry).await?;
                owner_of(&hosts, &name)?
            }
        };
        if from == request.to {
            return Err(Failure::invalid(format!("{name}: {from} has it already")).help("name another host with --to"));
        }
        if request.path.as_ref().is_some_and(|path| path.to_str().is_none()) {
            return Err(Failure::invalid("path: expected a path in UTF-8"));
        }
        let (from, to) = (self.side(&from, registry, role)?, self.side(&request.to, registry, role)?);
        let view = from.device(name.clone()).await?;
        let (address, path) = (view.text("objects_address").to_owned(), view.text("path").to_owned());
        if address.is_empty() || view.field::<u64>("objects_owner").is_none() {
            return Err(Failure::conflict(format!("{name} on {} is no attached device on objects", from.name()))
                .help("only a device whose data lies in an object store goes to another host without a copy; `vsl migrate` and `vsl backup` copy"));
        }
        let endpoint = Some(view.text("objects_endpoint").to_owned()).filter(|endpoint| !endpoint.is_empty());
        let store = LookRequest { address, endpoint };
        let seen = to.look(store.clone()).await.map_err(|failure| {
            let host = to.name();
            match failure.kind {
                Kind::NotFound => Failure::conflict(format!(
                    "{host} runs an older program, which takes no device from a store, or sees no device there: {}",
                    failure.error
                ))
                .help("update that host first; nothing was changed"),
                _ => Failure { error: format!("{host}: {}", failure.error), ..failure },
            }
        })?;
        let journal = match &request.path {
            Some(path) => path.display().to_string(),
            // Unique as far as the device goes: owner epochs only grow.
            None => format!("{name}-{}.vsl", seen.epoch + 1),
        };
        Ok(Plan { from, to, request, store, old_journal: path, journal })
    }

    async fn fleet_of(&self, registry: &Arc<Registry>) -> Result<Vec<FleetDevice>, Failure> {
        let ours = Side::here(registry, |registry| Ok(registry.on_objects())).await?;
        let host = |host: &str, device: ObjectsDevice| FleetDevice { host: Some(host.into()), device };
        let mut all: Vec<FleetDevice> = ours.into_iter().map(|device| host(HERE, device)).collect();
        for view in self.views().into_iter().filter(|view| view.reachable) {
            all.extend(view.objects.unwrap_or_default().into_iter().map(|device| host(&view.name, device)));
        }
        settle_owners(&mut all);
        Ok(all)
    }

    /// Notes a move that begins.
    pub fn begin_move(&self, plan: &Plan) -> FleetMove {
        let mut moves = self.moves();
        let one = FleetMove {
            id: moves.last().map_or(1, |last| last.id + 1),
            device: plan.request.device.clone(),
            address: plan.store.address.clone(),
            from: plan.from.name().into(),
            to: plan.to.name().into(),
            old_journal: plan.old_journal.clone(),
            journal: plan.journal.clone(),
            state: "detaching".into(),
            began_ms: now_ms(),
            ..FleetMove::default()
        };
        if moves.len() >= REMEMBERED {
            moves.remove(0);
        }
        moves.push(one.clone());
        one
    }

    fn state(&self, id: u64, state: &str) {
        if let Some(one) = self.moves().iter_mut().find(|one| one.id == id) {
            one.state = state.into();
        }
    }

    /// Carries a move out, and gives how it ended.
    pub async fn carry_out(&self, id: u64, plan: Plan) -> FleetMove {
        let (device, from, to) = (plan.request.device.clone(), plan.from.name().to_owned(), plan.to.name().to_owned());
        let ended = self.go(id, plan).await;
        if ended.is_ok() {
            // That host is asked every few seconds only.
            self.found(&from, |view| {
                view.objects.iter_mut().for_each(|objects| objects.retain(|one| one.name != device));
            });
        }
        let mut moves = self.moves();
        let Some(one) = moves.iter_mut().find(|one| one.id == id) else { return FleetMove::default() };
        one.ended_ms = Some(now_ms());
        match ended {
            Ok(journal) => {
                tracing::info!(device, from, to, "moved to another host");
                (one.state, one.journal) = ("moved".into(), journal);
            }
            Err(why) => {
                tracing::error!(device, from, to, "not moved to another host: {why}");
                (one.state, one.error) = ("failed".into(), Some(why));
            }
        }
        one.clone()
    }

    async fn go(&self, id: u64, plan: Plan) -> Result<String, String> {
        let Plan { from, to, request, store, old_journal, journal } = plan;
        let name = &request.device;
        if let Err(failure) = from.detach(name.clone(), request.force).await {
            // It may be detached all the same, such as without its last checkpoint; or that host answers no more.
            let gone = from.device(name.clone()).await.is_err_and(|failure| failure.kind == Kind::NotFound);
            if !gone {
                return Err(format!("{} did not detach {name}: {failure}", from.name()));
            }
        }
        self.state(id, "attaching");
        let attach = AttachRequest {
            name: Some(name.clone()),
            remember: true,
            passphrase: request.passphrase.clone(),
            key_file: request.key_file.clone(),
            ..AttachRequest::default()
        };
        let place = FromStore { address: store.address, endpoint: store.endpoint, ..FromStore::default() };
        let there = AttachRequest { path: journal, objects: Some(place), ..attach.clone() };
        let refusal = match to.attach(there).await {
            Ok(view) => return Ok(view.text("path").to_owned()),
            Err(failure) => failure,
        };
        self.state(id, "going-back");
        let (from, to) = (from, to.name());
        match from.attach(AttachRequest { path: old_journal.clone(), ..attach }).await {
            Ok(_) => Err(format!("{to} did not attach {name}: {refusal}; {} has attached it again", from.name())),
            Err(failure) => Err(format!(
                "{to} did not attach {name}: {refusal}; {} could not attach it again by {old_journal}: {failure}; `vsl objects` says who has it",
                from.name()
            )),
        }
    }
}

/// The host that has a device of this name.
fn owner_of(all: &[FleetDevice], name: &str) -> Result<String, Failure> {
    let owners: Vec<&str> = all
        .iter()
        .filter(|one| one.device.name == name && one.device.role == "owner")
        .filter_map(|one| one.host.as_deref())
        .collect();
    match owners.as_slice() {
        [owner] => Ok((*owner).into()),
        [] => Err(Failure::not_found(format!("no watched host has an attached device on objects called '{name}'"))
            .help("`vsl hosts` shows which host has which device")),
        several => {
            Err(Failure::conflict(format!("several hosts have a device called '{name}': {}", several.join(", ")))
                .help("say which with --from"))
        }
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} from {} to {}", self.request.device, self.from.name(), self.to.name())
    }
}

/// A path that only an administrator may choose.
pub fn is_anywhere(path: Option<&PathBuf>) -> bool {
    path.is_some_and(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(host: &str, name: &str, role: &str) -> FleetDevice {
        let device = ObjectsDevice { name: name.into(), role: role.into(), ..ObjectsDevice::default() };
        FleetDevice { host: Some(host.into()), device }
    }

    #[test]
    fn the_owner_is_found_or_asked_for() {
        let all = [
            device(HERE, "db", "stand-by"),
            device("one", "db", "owner"),
            device("two", "db", "fenced"),
            device("one", "web", "owner"),
            device("two", "web", "owner"),
        ];
        assert_eq!(owner_of(&all, "db"), Ok("one".into()));
        assert!(owner_of(&all, "web").is_err_and(|failure| failure.error.contains("one, two")));
        assert!(owner_of(&all, "none").is_err_and(|failure| failure.kind == Kind::NotFound));
    }
}
