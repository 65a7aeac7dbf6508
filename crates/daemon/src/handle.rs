//! A device thread, as the service holds it: [`WorkerHandle`], with what is known of the device without asking, and with failures that
//! say what to do.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use device::{AttachOptions, Device, FormatError, PowerCut, SnapshotChange};
use export::{
    ArrayError, ArrayMember, ArrayPlan, Behind, CacheError, CachePlan, DetachError, FlushError, Gone, Recording,
    Worker, WorkerHandle,
};
use uuid::Uuid;

use crate::{Failure, Target};

/// What to do where a device cannot be detached because of its clients.
pub const CLIENTS_HINDER: &str =
    "disconnect them first, or add --force to close their connections once what they asked for is done";

/// So long a superblock may take on its way to the backing store.
const SAVED_WITHIN: Duration = Duration::from_secs(10);
/// How often a device that was not ready is asked again.
pub const RETRY: Duration = Duration::from_millis(1);

/// A device thread.
#[derive(Clone)]
pub struct Handle {
    worker: WorkerHandle,
    facts: Arc<Facts>,
    power_cut: Arc<OnceLock<PowerCut>>,
}

/// What does not change while a device is attached.
#[derive(Debug)]
pub struct Facts {
    /// Of its format.
    pub uuid: String,
    /// It was not detached cleanly before.
    pub unclean: bool,
}

impl std::ops::Deref for Handle {
    type Target = WorkerHandle;

    fn deref(&self) -> &WorkerHandle {
        &self.worker
    }
}

impl Handle {
    /// Starts a device thread and attaches the device there.
    ///
    /// # Errors
    /// It cannot be attached.
    pub fn start(name: &str, target: Target, options: AttachOptions) -> Result<Handle, Failure> {
        // Afterwards nothing says it any more. What cannot be read is not attached either.
        let first = target.paths().and_then(|paths| paths.first());
        let before = first.and_then(|path| device::inspect(path).ok());
        let worker = Worker::spawn(name, move |ring| target.attach(&options, ring))?;
        let unclean = before.is_some_and(|before| !before.clean && before.attaches > 0);
        let facts = Facts { uuid: worker.info()?.uuid.to_string(), unclean };
        Ok(Handle { worker, facts: Arc::new(facts), power_cut: Arc::default() })
    }

    /// Starts an array's thread, and makes or assembles the array there.
    ///
    /// # Errors
    /// It cannot be made or assembled.
    pub fn start_array(
        name: &str,
        members: Vec<ArrayMember>,
        plan: ArrayPlan,
        uuid: Uuid,
    ) -> Result<Handle, ArrayError> {
        let worker = Worker::spawn_array(name, members, plan)?;
        let facts = Facts { uuid: uuid.to_string(), unclean: false };
        Ok(Handle { worker, facts: Arc::new(facts), power_cut: Arc::default() })
    }

    /// Starts a cached volume's thread, and makes or opens the volume there.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub fn start_cached(
        name: &str,
        cache: WorkerHandle,
        behind: Behind,
        plan: CachePlan,
    ) -> Result<Handle, CacheError> {
        let uuid = plan.uuid.to_string();
        let worker = Worker::spawn_cached(name, cache, behind, plan)?;
        Ok(Handle { worker, facts: Arc::new(Facts { uuid, unclean: false }), power_cut: Arc::default() })
    }

    /// The thread, for whoever serves the device.
    pub fn worker(&self) -> &WorkerHandle {
        &self.worker
    }

    /// What does not change while it is attached.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// Has the device's thread carry out what the device may refuse.
    ///
    /// # Errors
    /// The device refuses, or the thread has ended.
    pub fn ask<R: Send + 'static, E: Into<Failure> + Send + 'static>(
        &self,
        call: impl FnOnce(&mut Device) -> Result<R, E> + Send + 'static,
    ) -> Result<R, Failure> {
        self.worker.with_device(call)?.map_err(Into::into)
    }

    /// How many clients are connected.
    pub fn client_count(&self) -> usize {
        self.worker.clients().map_or(0, |clients| clients.len())
    }

    /// Waits until what was set lies on the device, so that no power cut takes it back.
    ///
    /// # Errors
    /// It cannot be written, or does not come to it.
    pub fn wait_saved(&self) -> Result<(), Failure> {
        let end = Instant::now() + SAVED_WITHIN;
        let unsaved = |why: &str| {
            Failure::failed(format!("{}: it holds now, and is not on the device: {why}", self.name()))
                .help("look at `vsl status`: its backing store may have failed")
        };
        loop {
            match self.with_device(|device| device.is_saved())? {
                Ok(true) => return Ok(()),
                Err(error) => return Err(unsaved(&error.to_string())),
                Ok(false) if Instant::now() >= end => return Err(unsaved("its backing store does not answer")),
                Ok(false) => std::thread::sleep(RETRY),
            }
        }
    }

    /// Changes the snapshots of a device or an array, durably. Its clients are served meanwhile.
    ///
    /// # Errors
    /// It cannot be done, or the thread has ended.
    pub fn change_snapshots(&self, change: &SnapshotChange) -> Result<(), Failure> {
        loop {
            let change = change.clone();
            match self.worker.with_served(move |served| served.begin_snapshot_change(&change))?? {
                true => return Ok(self.worker.flush()?),
                false => std::thread::sleep(RETRY),
            }
        }
    }

    /// Has `call` run when a drill cuts the power, with what was being recorded.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn on_power_cut(
        &self,
        call: impl FnOnce(&PowerCut, Option<Recording>) + Send + 'static,
    ) -> Result<(), Failure> {
        let power_cut = Arc::clone(&self.power_cut);
        let call = move |cut, recording| {
            call(&cut, recording);
            // The power goes once: its thread ends with it.
            let _ = power_cut.set(cut);
        };
        Ok(self.worker.on_power_cut(call)?)
    }

    /// How a drill cut the power, once it has; then the thread is gone.
    pub fn power_cut(&self) -> Option<&PowerCut> {
        self.power_cut.get()
    }

    /// Detaches once what is under way is done.
    ///
    /// # Errors
    /// Clients are connected and `force` is not set; or it was detached and the checkpoint failed.
    pub fn detach(&self, force: bool) -> Result<(), Refused> {
        self.worker.detach(force).map_err(|error| match error {
            DetachError::Clients { .. } => Refused::StillAttached(
                Failure::conflict(error.to_string().split("; ").next().unwrap_or_default()).help(CLIENTS_HINDER),
            ),
            DetachError::Underway { .. } => {
                Refused::StillAttached(Failure::conflict(error.to_string()).help("wait until it is done"))
            }
            DetachError::Io { .. } | DetachError::Gone(_) => Refused::Gone(Failure::failed(error.to_string())),
        })
    }
}

/// How a detach failed.
#[derive(Debug)]
pub enum Refused {
    /// The device goes on as before.
    StillAttached(Failure),
    /// It is detached all the same.
    Gone(Failure),
}

/// Without the advice for a format: it was a request that cannot be.
pub fn refused(error: FormatError) -> Failure {
    match error {
        FormatError::Invalid { .. } => Failure::invalid(error.to_string()),
        error => error.into(),
    }
}

impl From<Gone> for Failure {
    fn from(error: Gone) -> Failure {
        match error {
            Gone::Ended { name } => Failure::failed(format!("{name}: its thread has ended"))
                .help("the service's log says why; detach it and attach it again"),
            Gone::Composite { name, kind, members } => {
                Failure::conflict(format!("{name} is {kind}, which has none of this"))
                    .help(format!("ask its members: {members}"))
            }
        }
    }
}

impl From<FlushError> for Failure {
    fn from(error: FlushError) -> Failure {
        Failure::failed(error.to_string())
    }
}
