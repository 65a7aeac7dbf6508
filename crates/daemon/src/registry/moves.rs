//! Moves of devices to other devices while clients use them: begins them, follows them, hands over, and goes on with them when the
//! service starts again.
//!
//! A device is named by its identity. The new device has one of its own until it takes the old one's with the hand-over. One change of the
//! state file says which of the two is the device: the service that dies before it starts again with the old one, and the one that
//! dies behind it with the new one. At each start the other one gives the identity up ([`Registry::settle_identities`]).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use array::{MoveCondition, MoveStatus};
use device::{AttachOptions, Info, Setting, Settings};
use export::{HandOverError, MoveError};

use super::table::{Key, Phase, Standing};
use super::{Registry, secret};
use crate::api::{CreateRequest, MoveRequest, MoveView};
use crate::clock::now_ms;
use crate::failure::Kind;
use crate::handle::{Handle, Refused, refused};
use crate::state::{MovedAway, RememberedMove};
use crate::{Failure, Target, create, names};

/// How often it is looked how far a move is.
const LOOK: Duration = Duration::from_millis(20);
/// So long requests are held back for a hand-over at most, until both devices hold the same.
const SETTLED_WITHIN: Duration = Duration::from_secs(10);
/// How long after that the next hand-over is tried.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// How often a thread that is busy is asked again.
const RETRY: Duration = Duration::from_millis(1);
/// So long what the old device has under way may take when a move ends.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

/// The moves that are under way, and the last one of each device.
pub(super) type Moves = Mutex<BTreeMap<String, Arc<Move>>>;

/// A move.
pub(super) struct Move {
    remembered: RememberedMove,
    began_ms: u64,
    sector_bytes: u32,
    cancelled: AtomicBool,
    progress: Mutex<Progress>,
}

struct Progress {
    /// How the state machine stood when somebody looked last.
    status: MoveStatus,
    handing_over: bool,
    ended: Option<(u64, Ending)>,
}

/// How a move ended.
#[derive(Clone, Debug)]
enum Ending {
    Moved,
    Cancelled,
    Failed(String),
}

impl Move {
    fn new(remembered: RememberedMove, info: &Info) -> Move {
        let (sectors, condition) = (info.sectors, MoveCondition::Copying);
        let status = MoveStatus { condition, at: 0, sectors, copied: 0, unmapped: 0 };
        Move {
            remembered,
            began_ms: now_ms(),
            sector_bytes: info.sector_bytes,
            cancelled: AtomicBool::new(false),
            progress: Mutex::new(Progress { status, handing_over: false, ended: None }),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Whole between any two statements.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.progress().ended.is_some()
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn ends(&self, how: Ending) {
        let mut progress = self.progress();
        if let Ending::Moved = how {
            progress.status.at = progress.status.sectors;
        }
        progress.ended = Some((now_ms(), how));
    }

    fn view(&self) -> MoveView {
        let RememberedMove { device, from, to, target, .. } = self.remembered.clone();
        let progress = self.progress();
        let bytes = |sectors: u64| sectors * u64::from(self.sector_bytes);
        let (ended_ms, state, error) = match &progress.ended {
            None if progress.handing_over => (None, "handing-over", None),
            None => (None, "copying", None),
            Some((at, Ending::Moved)) => (Some(*at), "moved", None),
            Some((at, Ending::Cancelled)) => (Some(*at), "cancelled", None),
            Some((at, Ending::Failed(why))) => (Some(*at), "failed", Some(why.clone())),
        };
        let status = progress.status;
        MoveView {
            device,
            from,
            to,
            target,
            state: state.into(),
            percent: status.percent(),
            bytes: bytes(status.sectors),
            done_bytes: bytes(status.at),
            copied_bytes: bytes(status.copied),
            unmapped_bytes: bytes(status.unmapped),
            began_ms: self.began_ms,
            ended_ms,
            error,
        }
    }

    /// The new device's files.
    fn new_target(&self) -> Result<Target, Failure> {
        Target::parse(&self.remembered.to)
    }
}

/// What is known of a device that is to move, or to be moved to.
struct Half {
    handle: Handle,
    info: Info,
    target: Target,
    key: Key,
}

/// The new device of a move that is about to begin.
struct Goal {
    name: String,
    target: Target,
    key: Key,
    identity: uuid::Uuid,
    made: bool,
}

impl Registry {
    fn moves(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Move>>> {
        // Whole between any two statements.
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The move of a device that is under way, or its last one.
    ///
    /// # Errors
    /// There is no such device, or it was not moved since the service was started.
    pub fn device_move(&self, name: &str) -> Result<MoveView, Failure> {
        if let Some(one) = self.moves().get(name) {
            return Ok(one.view());
        }
        self.table().entry(name)?;
        Err(Failure::not_found(format!("{name} is not being moved")).help(format!("`vsl migrate {name} TO` moves it")))
    }

    /// A move under way, for people.
    pub(super) fn move_in_words(&self, name: &str) -> Option<String> {
        let view = self.moves().get(name).filter(|one| !one.is_over())?.view();
        Some(format!("being moved to {}, {} % done", view.to, view.percent))
    }

    /// Begins to move a device to another one, while its clients use it.
    ///
    /// # Errors
    /// Either cannot be used for that; nothing has changed then.
    pub fn migrate(self: &Arc<Self>, name: &str, request: &MoveRequest) -> Result<MoveView, Failure> {
        if self.table().state.arrays().iter().any(|array| array.name == name) {
            return Err(Failure::invalid(format!("{name} is an array, which is not moved as a whole"))
                .help(format!("give a mirror another member: `vsl array replace {name} MEMBER --with DEVICE`")));
        }
        let old = self.half(name)?;
        let goal = match (&request.target, &request.path) {
            (Some(target), None) => self.attached_goal(name, &old, target, request)?,
            (None, Some(path)) => self.made_goal(name, &old, path.clone(), request)?,
            _ => {
                return Err(Failure::invalid("one of path and target says where a device goes, and no other")
                    .help("choose one of them"));
            }
        };
        let remembered = RememberedMove {
            device: name.into(),
            identity: old.info.uuid,
            from: old.target.to_string(),
            target: goal.name.clone(),
            to: goal.target.to_string(),
            to_identity: goal.identity,
            to_key_file: goal.key.file.clone(),
            made: goal.made,
        };
        let one = Arc::new(Move::new(remembered, &old.info));
        self.begin(&one, &old.handle, &goal, request.force).inspect_err(|_| {
            if goal.made {
                remove_made(&goal.target);
            }
        })?;
        Ok(one.view())
    }

    /// A device that may have a part in a move.
    fn half(&self, name: &str) -> Result<Half, Failure> {
        let (handle, target, key, read_only, witness) = {
            let mut table = self.table();
            let handle = table.free(name)?;
            let entry = table.entry(name)?;
            (handle, entry.target.clone(), entry.key.clone(), entry.read_only, entry.witness.is_some())
        };
        let seen = handle.view()?;
        let figures = &seen.status.figures;
        let refuse = |what: &str, help: &str| Err(Failure::conflict(format!("{name} {what}")).help(help));
        if target.paths().is_none() {
            return refuse("lives in memory", "only devices that lie on files or block devices are moved");
        }
        if read_only || figures.state != device::State::Attached {
            return refuse("takes no writes", "attach it for writing first");
        }
        if witness {
            return refuse("has a witness, which knows the old device only", "detach it and attach it without one");
        }
        if figures.objects.is_some() {
            return refuse("lies in an object store", "another host attaches it where it is");
        }
        if figures.snapshots + figures.clones > 0 {
            let help =
                format!("a move leaves snapshots behind; `vsl snapshot list {name}` shows which to delete first");
            let (snapshots, clones) = (figures.snapshots, figures.clones);
            return refuse(&format!("has {snapshots} snapshot(s) and {clones} clone(s)"), &help);
        }
        if key.typed {
            let help =
                "give it a key file with `vsl key add`, and attach it with --key-file: a move opens it by itself";
            return refuse("was opened with a passphrase, which is kept nowhere", help);
        }
        Ok(Half { handle, info: seen.info, target, key })
    }

    /// An attached device as the new one.
    fn attached_goal(&self, name: &str, old: &Half, target: &str, request: &MoveRequest) -> Result<Goal, Failure> {
        if target == name {
            return Err(
                Failure::invalid(format!("{name}: a device cannot be moved to itself")).help("name another one")
            );
        }
        if request.encrypt.is_some() {
            return Err(Failure::invalid("encrypt goes with a path: an attached device is encrypted or is not")
                .help("leave encrypt out"));
        }
        if self.table().state.arrays().iter().any(|array| array.name == target) {
            return Err(Failure::invalid(format!("{target} is an array, which cannot take a device's place"))
                .help("name a device"));
        }
        let new = self.half(target)?;
        stays_encrypted(name, old, new.info.encryption.is_some(), request.plain)?;
        let (name, identity) = (target.to_owned(), new.info.uuid);
        Ok(Goal { name, target: new.target, key: new.key, identity, made: false })
    }

    /// Makes the new device.
    fn made_goal(&self, name: &str, old: &Half, path: PathBuf, request: &MoveRequest) -> Result<Goal, Failure> {
        if path.is_relative() || path.to_string_lossy().contains([',', '\0']) {
            return Err(Failure::invalid(format!("{}: expected an absolute path without commas", path.display()))
                .help("the service has another working directory than its clients"));
        }
        if request.force {
            return Err(Failure::invalid("force goes with an attached device: nothing is written over a file")
                .help("leave force out, or attach the device and name it"));
        }
        if request.encrypt.as_ref().is_some_and(|opener| opener.passphrase.is_some()) {
            return Err(Failure::invalid("a new device with a passphrase could not be opened by the service alone")
                .help("give it a key file; `vsl key` adds a passphrase later"));
        }
        stays_encrypted(name, old, request.encrypt.is_some(), request.plain)?;
        let opener = request.encrypt.clone();
        let secret = opener.as_ref().map(crate::api::Opener::secret).transpose()?;
        let info = &old.info;
        let wanted = CreateRequest {
            paths: vec![path],
            size_bytes: Some(info.advertised_bytes),
            raw_bytes: Some(info.raw_bytes).filter(|raw| *raw >= info.advertised_bytes),
            sector_bytes: Some(info.sector_bytes),
            capacity: Some(info.bytes().to_string()),
            label: Some(info.label.clone()),
            ..CreateRequest::default()
        };
        let made = create::create(&wanted, secret.as_ref(), None, &|_| {})?;
        let Some(made) = made.into_iter().next() else {
            return Err(Failure::failed("no device was made").help("please report it"));
        };
        let target = Target::Files(made.paths.clone()).absolute()?;
        let name = {
            let table = self.table();
            let stem: String = name.chars().take(names::LONGEST - 6).collect();
            let mut names = std::iter::once(format!("{stem}-new")).chain((2..).map(|n| format!("{stem}-new{n}")));
            let is_free = |name: &String| !table.devices.contains_key(name) && !table.state.remembers(name);
            names.find(is_free).unwrap_or(stem)
        };
        Ok(Goal { name, target, key: Key::of(opener.as_ref()), identity: made.uuid, made: true })
    }

    /// Notes the move, claims the new device and begins to copy.
    fn begin(self: &Arc<Self>, one: &Arc<Move>, old: &Handle, goal: &Goal, force: bool) -> Result<(), Failure> {
        let name = &one.remembered.device;
        {
            let mut table = self.table();
            table.free(name)?;
            table.not_a_member(&goal.name)?;
            table.state.move_begins(one.remembered.clone())?;
        }
        let begun = self.claim_goal(one, old, goal, force);
        if let Err(failure) = begun {
            let is_there = goal.made && self.table().devices.contains_key(&goal.name);
            if is_there
                && let Err(Refused::StillAttached(second) | Refused::Gone(second)) = self.let_go(&goal.name, true)
            {
                tracing::warn!(device = goal.name, "{second}");
            }
            if let Err(second) = self.table().state.move_ends(name) {
                tracing::error!("{second}");
            }
            return Err(failure);
        }
        self.exports.remove(&goal.name);
        self.note(name, "move-begins", format!("to {}", one.remembered.to));
        tracing::info!(device = name, to = one.remembered.to, "being moved");
        self.follow(one);
        Ok(())
    }

    fn claim_goal(&self, one: &Arc<Move>, old: &Handle, goal: &Goal, force: bool) -> Result<(), Failure> {
        if goal.made {
            let secret = secret(None, goal.key.file.as_deref())?;
            let options = AttachOptions { secret, ..AttachOptions::default() };
            self.attach_target(&goal.name, goal.target.clone(), options, goal.key.clone())?;
        }
        let new = self.table().attached(&goal.name)?;
        if new.facts().uuid != one.remembered.to_identity.to_string() {
            return Err(Failure::conflict(format!("{}: another device than the one that was chosen", goal.name))
                .help("attach the right one, and begin again"));
        }
        old.begin_move(new.worker(), force).map_err(failure)
    }

    /// Follows a move on a thread of its own, up to its end.
    fn follow(self: &Arc<Self>, one: &Arc<Move>) {
        self.moves().insert(one.remembered.device.clone(), Arc::clone(one));
        let (registry, moved) = (Arc::clone(self), Arc::clone(one));
        let thread = std::thread::Builder::new().name("move".into()).spawn(move || registry.run(&moved));
        if let Err(error) = thread {
            self.comes_to_nothing(one, Ending::Failed(format!("no thread for the move: {error}")));
        }
    }

    fn run(self: &Arc<Self>, one: &Move) {
        let name = &one.remembered.device;
        let mut not_before = Instant::now();
        loop {
            let handle = {
                let mut table = self.table();
                if table.closing {
                    // It goes on when the service starts again.
                    return;
                }
                table.attached(name)
            };
            let status = handle.and_then(|handle| Ok((handle.move_status()?, handle)));
            let ending = match status {
                Err(failure) => Some(Ending::Failed(failure.error)),
                _ if one.is_cancelled() => Some(Ending::Cancelled),
                Ok((None, _)) => Some(Ending::Failed(format!("{name} was attached anew"))),
                Ok((Some(status), handle)) => {
                    one.progress().status = status;
                    match status.condition {
                        MoveCondition::Failed(why) => Some(Ending::Failed(why.to_string())),
                        MoveCondition::InSync if Instant::now() >= not_before => match self.hand_over(one, &handle) {
                            Ok(true) => return,
                            Ok(false) => {
                                not_before = Instant::now() + TRY_AGAIN;
                                None
                            }
                            Err(failure) => Some(Ending::Failed(failure.error)),
                        },
                        _ => None,
                    }
                }
            };
            if let Some(ending) = ending {
                if self.table().closing {
                    return;
                }
                return self.comes_to_nothing(one, ending);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Lets the new device serve. False where it must be tried again.
    fn hand_over(self: &Arc<Self>, one: &Move, old: &Handle) -> Result<bool, Failure> {
        let RememberedMove { device: name, target: goal, identity, .. } = &one.remembered;
        let (new, new_key) = {
            let mut table = self.table();
            (table.attached(goal)?, table.entry(goal)?.key.clone())
        };
        old.settle_move()?;
        if !is_settled(one, old)? {
            old.release_move()?;
            return Ok(false);
        }
        one.progress().handing_over = true;
        // Everything that may fail without harm comes before the new device is detached.
        let ready = (|| {
            is_as_it_was(one, old)?;
            let settings = old.with_device(|device| device.settings())?;
            take_settings(&new, &settings)?;
            let (old_target, old_key) = {
                let mut table = self.table();
                let entry = table.entry(name)?;
                (entry.target.clone(), entry.key.clone())
            };
            let secrets = (secret(None, old_key.file.as_deref())?, secret(None, new_key.file.as_deref())?);
            Ok((old_target, secrets, one.new_target()?))
        })();
        let (old_target, (old_secret, new_secret), new_target) = match ready {
            Ok(ready) => ready,
            Err(failure) => {
                old.release_move()?;
                return Err(failure);
            }
        };
        match self.let_go(goal, true) {
            Ok(()) => {}
            Err(Refused::StillAttached(failure) | Refused::Gone(failure)) => return Err(failure),
        }
        let staging = self.staging.clone();
        let options = AttachOptions {
            identity: Some(*identity),
            secret: new_secret,
            staging: staging.clone(),
            ..AttachOptions::default()
        };
        let back = AttachOptions { secret: old_secret, staging, degraded: true, ..AttachOptions::default() };
        let target = new_target.clone();
        let attach = move |ring: &media::ring::SharedRing| target.attach(&options, ring);
        let attach_again = move |ring: &media::ring::SharedRing| old_target.attach(&back, ring);
        let (registry, remembered) = (Arc::clone(self), one.remembered.clone());
        let commit = move || registry.commit(&remembered, new_target, new_key);
        match old.hand_over(attach, commit, attach_again)? {
            Ok(()) => {}
            Err(HandOverError::Commit(failure)) => return Err(failure),
            Err(HandOverError::Attach(error)) => return Err(error.into()),
            Err(error) => return Err(Failure::failed(error.to_string())),
        }
        let RememberedMove { from, to, .. } = &one.remembered;
        self.note(name, "moved", format!("from {from} to {to}; the old device is detached"));
        tracing::info!(device = name, from, to, "moved");
        self.mark_moved_away();
        one.ends(Ending::Moved);
        Ok(true)
    }

    /// From here on the new device is the device, also when the service starts again.
    fn commit(&self, done: &RememberedMove, target: Target, key: Key) -> Result<(), Failure> {
        let mut table = self.table();
        let name = &done.device;
        let entry = table.entry(name)?;
        let (old_target, old_key) =
            (std::mem::replace(&mut entry.target, target), std::mem::replace(&mut entry.key, key));
        let remembered = entry.remembered(name);
        let remembered = table.state.remembers(name).then_some(remembered);
        let result = table.state.hand_over(done, remembered);
        if result.is_err()
            && let Ok(entry) = table.entry(name)
        {
            (entry.target, entry.key) = (old_target, old_key);
        }
        result
    }

    /// A move ends without a hand-over: the old device goes on alone, and the new one is what it was before.
    fn comes_to_nothing(&self, one: &Move, ending: Ending) {
        let RememberedMove { device: name, target: goal, to, identity, to_identity, made, .. } = &one.remembered;
        let end = Instant::now() + ENDED_WITHIN;
        let handle = self.table().attached(name);
        while let Ok(handle) = &handle
            && handle.end_move() == Ok(false)
            && Instant::now() < end
        {
            std::thread::sleep(RETRY);
        }
        let target = one.new_target();
        let is_attached = self.table().devices.contains_key(goal);
        if *made && is_attached {
            match self.let_go(goal, true) {
                Ok(()) => {}
                Err(Refused::StillAttached(failure) | Refused::Gone(failure)) => tracing::warn!("{failure}"),
            }
        }
        if !is_attached
            && let Ok(Target::Files(paths)) = &target
            && let Err(error) = device::give_up_identity(paths, *identity, Some(*to_identity))
        {
            tracing::error!(device = name, "{error}");
        }
        if let Err(failure) = self.table().state.move_ends(name) {
            tracing::error!(device = name, "{failure}");
        }
        if let Ok(target) = target {
            match (*made, is_attached) {
                (true, _) => remove_made(&target),
                (false, true) => self.serve_again(goal),
                (false, false) => {
                    let key = Key { file: one.remembered.to_key_file.clone(), typed: false };
                    let attached = secret(None, key.file.as_deref()).and_then(|secret| {
                        let options = AttachOptions { secret, ..AttachOptions::default() };
                        self.attach_target(goal, target, options, key)
                    });
                    if let Err(failure) = attached {
                        tracing::error!(device = goal, "{failure}");
                    }
                }
            }
        }
        match &ending {
            Ending::Failed(why) => {
                self.note(name, "move-failed", format!("to {to}: {why}"));
                tracing::error!(device = name, to, "not moved: {why}");
            }
            _ => {
                self.note(name, "move-cancelled", format!("to {to}"));
                tracing::info!(device = name, to, "the move is cancelled");
            }
        }
        one.ends(ending);
    }

    /// A device that was to be the new one is served to clients again.
    fn serve_again(&self, name: &str) {
        let handle = self.table().attached(name);
        if let Err(failure) = handle.and_then(|handle| self.exports.add(name, &handle, false)) {
            tracing::error!(device = name, "{failure}");
        }
    }

    /// Cancels a move, and waits until it has ended: the device stays where it is.
    ///
    /// # Errors
    /// Nothing is being moved, or it is too late.
    pub fn cancel_move(&self, name: &str) -> Result<MoveView, Failure> {
        self.device_move(name)?;
        let one = self.moves().get(name).filter(|one| !one.is_over()).cloned();
        let Some(one) = one else {
            return Err(Failure::conflict(format!("{name} is not being moved any more"))
                .help(format!("`vsl migrate {name}` shows how its move ended")));
        };
        one.cancelled.store(true, Ordering::Relaxed);
        while !one.is_over() {
            if self.table().closing {
                return Err(Failure::conflict("the service is stopping").help("cancel the move when it is up again"));
            }
            std::thread::sleep(LOOK);
        }
        let view = one.view();
        if view.state == "moved" {
            return Err(Failure::conflict(format!("{name} lies on {} already: it was too late to cancel", view.to))
                .help(format!("move it back: `vsl migrate {name} TO`")));
        }
        Ok(view)
    }

    fn note(&self, name: &str, event: &str, what: String) {
        if let Ok((_, log)) = self.table().attached_with_log(name) {
            log.note(event, what);
        }
    }

    /// Of the two devices of each move that was cut, one has the identity: the one that the state file names.
    pub(super) fn settle_identities(&self) {
        self.mark_moved_away();
        let moves = self.table().state.moves().to_vec();
        for RememberedMove { device: name, identity, to, to_identity, .. } in moves {
            let given = Target::parse(&to).and_then(|target| match target.paths() {
                Some(paths) => Ok(device::give_up_identity(paths, identity, Some(to_identity))?),
                None => Ok(false),
            });
            match given {
                Ok(true) => tracing::info!(device = name, to, "the hand-over was cut, and is taken back"),
                Ok(false) => {}
                Err(failure) => tracing::warn!(device = name, "{failure}"),
            }
        }
    }

    /// Devices that were moved away say so on their files, so that nobody takes them for what they were.
    fn mark_moved_away(&self) {
        let unmarked: Vec<MovedAway> = self.table().state.moved_away().to_vec();
        for one in unmarked {
            let marked = Target::parse(&one.path).and_then(|target| match target.paths() {
                Some(paths) => Ok(device::give_up_identity(paths, one.identity, None).map(drop)?),
                None => Ok(()),
            });
            let result = marked.and_then(|()| self.table().state.is_marked(&one));
            if let Err(failure) = result {
                tracing::error!("{}: is not marked as moved away yet: {failure}", one.path);
            }
        }
    }

    /// Refuses a device that was moved away, also where it could not be marked as such.
    pub(super) fn not_moved_away(&self, target: &Target) -> Result<(), Failure> {
        if self.table().state.moved_away().is_empty() {
            return Ok(());
        }
        self.mark_moved_away();
        let paths = target.paths().unwrap_or_default();
        let table = self.table();
        let is_it = |one: &MovedAway| {
            let theirs = Target::parse(&one.path);
            theirs.is_ok_and(|theirs| theirs.paths().unwrap_or_default().iter().any(|path| paths.contains(path)))
        };
        match table.state.moved_away().iter().any(is_it) {
            false => Ok(()),
            true => Err(Failure::conflict(format!("{target}: what it held was moved to another device"))
                .help("it cannot be marked as such, see the service's log; format it to use it again")),
        }
    }

    /// Goes on with the moves that the service was in the middle of when it ended, from their beginning.
    pub(super) fn go_on_with_moves(self: &Arc<Self>) {
        let moves = self.table().state.moves().to_vec();
        for remembered in moves {
            let (name, goal) = (remembered.device.clone(), remembered.target.clone());
            let handle = self.table().attached(&name);
            let handle = handle.and_then(|handle| match handle.facts().uuid == remembered.identity.to_string() {
                true => Ok((handle.info()?, handle)),
                false => Err(Failure::conflict(format!("{name} is another device now"))),
            });
            let begun = handle.and_then(|(info, handle)| {
                let key = Key { file: remembered.to_key_file.clone(), typed: false };
                let (target, identity) = (Target::parse(&remembered.to)?, remembered.to_identity);
                let here =
                    self.table().devices.get(&goal).is_some_and(|entry| matches!(entry.phase, Phase::Attached(_)));
                // One that was attached by itself was not made by the move.
                let goal = Goal { name: goal.clone(), target, key, identity, made: !here };
                let one = Arc::new(Move::new(remembered.clone(), &info));
                self.claim_goal(&one, &handle, &goal, true)?;
                Ok(one)
            });
            match begun {
                Ok(one) => {
                    self.note(&name, "move-goes-on", format!("to {}, from the beginning", remembered.to));
                    tracing::info!(device = name, to = remembered.to, "being moved, from the beginning");
                    self.follow(&one);
                }
                Err(failure) => self.cannot_go_on(&remembered, &failure),
            }
        }
    }

    /// A move that cannot go on after a restart is over. What it made stays, since nobody asked to cancel it.
    fn cannot_go_on(&self, remembered: &RememberedMove, failure: &Failure) {
        let RememberedMove { device: name, target: goal, to, made, .. } = remembered;
        tracing::error!(device = name, to, "the move does not go on: {failure}");
        self.note(name, "move-failed", format!("to {to}: {}", failure.error));
        let is_attached = {
            let table = self.table();
            table.devices.get(goal).is_some_and(|entry| matches!(entry.standing(), Standing::Attached(_)))
        };
        if *made
            && is_attached
            && let Err(Refused::StillAttached(second) | Refused::Gone(second)) = self.let_go(goal, true)
        {
            tracing::warn!(device = goal, "{second}");
        }
        if let Err(second) = self.table().state.move_ends(name) {
            tracing::error!(device = name, "{second}");
        }
        if !*made && is_attached {
            self.serve_again(goal);
        }
    }
}

/// Whether both devices hold the same, and nothing is under way. Clients' requests are held back meanwhile.
fn is_settled(one: &Move, old: &Handle) -> Result<bool, Failure> {
    let end = Instant::now() + SETTLED_WITHIN;
    while let Some(status) = old.move_status()? {
        one.progress().status = status;
        match status.condition {
            MoveCondition::Settled => return Ok(!one.is_cancelled()),
            MoveCondition::Settling if Instant::now() < end && !one.is_cancelled() => std::thread::sleep(RETRY),
            _ => break,
        }
    }
    Ok(false)
}

/// Refuses a hand-over that would lose what was begun just before the move.
fn is_as_it_was(one: &Move, old: &Handle) -> Result<(), Failure> {
    let seen = old.view()?;
    let figures = &seen.status.figures;
    if figures.snapshots + figures.clones > 0 {
        return Err(Failure::conflict("it has snapshots, which a move would leave behind"));
    }
    match seen.info.sectors == one.progress().status.sectors {
        true => Ok(()),
        false => Err(Failure::conflict("it has another size than when the move began")),
    }
}

/// What clients and operators know of the old device holds for the new one, too.
fn take_settings(new: &Handle, settings: &Settings) -> Result<(), Failure> {
    let own = new.with_device(|device| device.settings())?;
    let Settings { label, trim, beacon, durability, nvme_block_bytes, queue_depth, page_file, .. } = settings.clone();
    let mut promised = vec![Setting::Label(label), Setting::Trim(trim), Setting::Beacon(beacon)];
    promised.extend([Setting::NvmeBlock(nvme_block_bytes), Setting::QueueDepth(queue_depth)]);
    promised.extend(durability.filter(|_| own.durability.is_some()).map(Setting::Durability));
    promised.extend(page_file.then_some(Setting::PageFile(true)));
    new.ask(move |device| device.set(&promised).map_err(refused))?;
    // How it works inside is as on the old one where it can be.
    for setting in
        [Setting::Groomer(settings.groomer.clone()), Setting::CheckpointInterval(settings.checkpoint_interval_bytes)]
    {
        if let Err(error) = new.with_device(move |device| device.set(&[setting]))? {
            tracing::debug!("the new device keeps its own setting: {error}");
        }
    }
    new.wait_saved()
}

/// Refuses to store what was encrypted as it is, unless that was asked for.
fn stays_encrypted(name: &str, old: &Half, is_new_encrypted: bool, plain: bool) -> Result<(), Failure> {
    match (old.info.encryption.is_some(), is_new_encrypted) {
        (true, false) if !plain => Err(Failure::conflict(format!("{name} is encrypted, and the new device is not"))
            .help("encrypt the new device too, or say plain to store what comes as it is")),
        _ => Ok(()),
    }
}

/// Removes the file that a move made; a block device stays.
fn remove_made(target: &Target) {
    for path in target.paths().unwrap_or_default() {
        let is_file = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if is_file && let Err(error) = std::fs::remove_file(path) {
            tracing::warn!("{}: cannot be removed: {error}", path.display());
        }
    }
}

fn failure(error: MoveError) -> Failure {
    let kind = match &error {
        MoveError::Gone(gone) => return gone.clone().into(),
        MoveError::Target { .. } => Kind::Failed,
        MoveError::Sectors { .. } | MoveError::Size { .. } | MoveError::Requests { .. } => Kind::Invalid,
        _ => Kind::Conflict,
    };
    Failure::split(kind, &error.to_string())
}

#[cfg(test)]
mod tests;
