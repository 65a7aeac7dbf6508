//! What the rest of a program holds of a device thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, SystemTime};

use device::{Device, Figures, Info, IoError, PowerCut, Settings, Status};
use media::ring::mailbox::Sender;

use crate::array::ArrayError;
use crate::array::Claimant;
use crate::composite::Composite;
use crate::connection::NewConnection;
use crate::nvme::Joined;
use crate::observe::Observed;
use crate::recording::Recording;
use crate::seats::{Seat, Seats};
use crate::served::Served;
use crate::worker::Worker;

/// How often a thread is asked whether it has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// There is no such device: it was detached, its thread failed, or what is served has no device of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// The device thread has ended: the device was detached, or its thread failed.
    #[error("{name}: not attached any more; attach it again")]
    Ended {
        /// The device's name.
        name: String,
    },
    /// What was asked is about a device.
    #[error("{name}: is {kind}, which has none of this; ask its members {members}")]
    Composite {
        /// Its name.
        name: String,
        /// What it is: an array, or a cached volume.
        kind: &'static str,
        /// Its members, with commas in between.
        members: String,
    },
}

/// Why a device was not detached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DetachError {
    /// Clients are connected.
    #[error("{name}: {clients} client(s) connected; disconnect them first, or detach by force")]
    Clients {
        /// The device's name.
        name: String,
        /// How many.
        clients: usize,
    },
    /// Somebody else is detaching it.
    #[error("{name}: is being detached already")]
    Underway {
        /// The device's name.
        name: String,
    },
    /// It was detached, but its checkpoint could not be written.
    #[error("{name}: detached, but its checkpoint was not written ({error}); the next attach takes longer")]
    Io {
        /// The device's name.
        name: String,
        /// Why.
        error: IoError,
    },
    /// There is nothing to detach.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// Why a flush failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// The device could not make its content durable.
    #[error("{name}: {error}")]
    Io {
        /// The device's name.
        name: String,
        /// Why.
        error: IoError,
    },
    /// There is no device any more.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// A connected client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// Its number on this device; a later client may get it again.
    pub id: usize,
    /// The protocol that it speaks: `nbd` or `vhost`.
    pub protocol: &'static str,
    /// Where it comes from.
    pub peer: String,
    /// The export it chose.
    pub export: String,
    /// Whether it uses TLS.
    pub tls: bool,
    /// When its handshake was done.
    pub since: SystemTime,
    /// Requests since then.
    pub requests: u64,
    /// Bytes read since then.
    pub read_bytes: u64,
    /// Bytes written since then.
    pub written_bytes: u64,
    /// Requests under way.
    pub in_flight: u32,
    /// Over NVMe: the host, its queue and how it is set up.
    pub nvme: Option<NvmeInfo>,
    /// How the last of its requests that failed ended, in the protocol's numbers.
    pub last_error: Option<u16>,
    /// Memory that it takes: what it sent, what it asked for and has not got yet, bytes.
    pub memory_bytes: u64,
}

/// A queue of an NVMe host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmeInfo {
    /// The host's name.
    pub host: String,
    /// Its controller.
    pub controller: u16,
    /// The queue; 0 is the admin queue.
    pub queue: u16,
    /// Headers carry a digest.
    pub header_digest: bool,
    /// Data carry a digest.
    pub data_digest: bool,
}

/// What a device thread says once a second.
#[derive(Debug)]
pub struct Look {
    /// What clients asked since the last look.
    pub observed: Observed,
    /// Every figure.
    pub figures: Figures,
    /// The same in words, while something is wrong.
    pub status: Option<Status>,
}

/// What is shown of a device, all of one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Every figure.
    pub status: Status,
    /// What it is.
    pub info: Info,
    /// Its settings.
    pub settings: Settings,
    /// Who is connected.
    pub clients: Vec<ClientInfo>,
}

/// The part of [`Info`] that a handshake needs. Nothing of it changes while the device is attached, but its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Host capacity, bytes.
    pub bytes: u64,
    /// Sector size, bytes.
    pub sector_bytes: u32,
    /// Largest request, bytes.
    pub max_request_bytes: u32,
    /// The device takes no writes.
    pub read_only: bool,
}

pub(crate) type Call = Box<dyn FnOnce(&mut Worker) + Send>;

/// A handle on a device thread. Calls wait for the thread's answer; when the last handle goes, the device is detached.
#[derive(Clone)]
pub struct WorkerHandle {
    name: Arc<str>,
    shape: Shape,
    bytes: Arc<AtomicU64>,
    sender: Sender<Call>,
    seats: Seats,
}

/// A device that was claimed to become one more member of an array, and holds nothing. It is given back where nothing comes of it.
pub struct Newcomer(Option<Claimant>);

impl Drop for Newcomer {
    fn drop(&mut self) {
        if let Some(claimant) = &self.0 {
            claimant.lane.close();
        }
    }
}

impl WorkerHandle {
    /// `bytes` is the host capacity as the thread keeps it up to date.
    pub(crate) fn new(
        name: &str,
        (shape, bytes): (Shape, Arc<AtomicU64>),
        sender: Sender<Call>,
        seats: Seats,
    ) -> WorkerHandle {
        WorkerHandle { name: name.into(), shape, bytes, sender, seats }
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a handshake needs; known without asking the thread.
    pub fn shape(&self) -> Shape {
        Shape { bytes: self.bytes.load(Ordering::Relaxed), ..self.shape }
    }

    fn gone(&self) -> Gone {
        Gone::Ended { name: self.name.to_string() }
    }

    /// How the array stands that is served; nothing of a device.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn array_status(&self) -> Result<Option<array::Status>, Gone> {
        self.ask(|worker| worker.served().composite().and_then(|one| one.array_status()))
    }

    /// How the cached volume stands that is served, and bytes of its sectors; nothing of a device.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn cache_status(&self) -> Result<Option<(cache::Status, u32)>, Gone> {
        self.ask(|worker| {
            let sector_bytes = worker.served().info().sector_bytes;
            worker.served().composite().and_then(|one| one.cache_status()).map(|status| (status, sector_bytes))
        })
    }

    /// What the cached volume that is served would do with other caches; nothing of a device.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn cache_estimates(&self) -> Result<Option<cache::Estimates>, Gone> {
        self.ask(|worker| worker.served().composite().and_then(|one| one.cache_estimates()))
    }

    /// Has a cached volume write everything behind as soon as may be.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn write_back(&self) -> Result<(), Gone> {
        self.ask(|worker| worker.served().composite().map(Composite::write_back)).map(drop)
    }

    /// Whether a member may come to the array in this place now.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn can_join(&self, position: usize) -> Result<bool, Gone> {
        self.ask(move |worker| worker.served().composite().is_some_and(|one| one.can_join(position)))
    }

    pub(crate) fn sender(&self) -> &Sender<Call> {
        &self.sender
    }

    /// Gives an array a member in the place of one that left: one that comes back, or with `fresh` a new one that gets everything.
    /// What a new one holds is destroyed with `force`.
    ///
    /// # Errors
    /// It cannot be a member, or not in this place.
    pub fn join_member(
        &self,
        position: usize,
        member: &WorkerHandle,
        fresh: bool,
        force: bool,
    ) -> Result<(), ArrayError> {
        let name = member.name().to_owned();
        let claimant = Claimant::claim(self.name(), &name, member, &self.sender)?;
        let give_up = |error: ArrayError| {
            claimant.lane.close();
            error
        };
        let sector = if fresh {
            if !force && !claimant.is_empty().map_err(give_up)? {
                return Err(give_up(ArrayError::NotEmpty { member: name }));
            }
            claimant.clear().map_err(give_up)?;
            None
        } else {
            Some(claimant.superblock().map_err(give_up)?)
        };
        let snapshots = claimant.snapshots().map_err(give_up)?;
        let (lane, shape) = (std::sync::Arc::clone(&claimant.lane), claimant.member);
        let gone = self.array_gone();
        let joined = self.ask(move |worker| match worker.served().composite() {
            Some(one) => one.join(position, (name, lane), shape, (sector.as_deref(), &snapshots)),
            None => Err(array::Damage::Foreign(position)),
        });
        joined.map_err(|_| give_up(gone))?.map_err(|damage| give_up(damage.into()))
    }

    /// Claims a device that is to be one more member of the array, and empties it. What it holds is destroyed with `force`. See
    /// [`WorkerHandle::grow`].
    ///
    /// # Errors
    /// It cannot be a member. Nothing was changed.
    pub fn prepare_member(&self, member: &WorkerHandle, force: bool) -> Result<Newcomer, ArrayError> {
        let newcomer = Newcomer(Some(Claimant::claim(self.name(), member.name(), member, &self.sender)?));
        let Newcomer(Some(claimant)) = &newcomer else { return Err(self.array_gone()) };
        let shape = claimant.member;
        let fits = self.ask(move |worker| match worker.served().composite() {
            Some(one) => one.can_grow(&shape),
            None => Err(array::GrowError::NotServing),
        });
        fits.map_err(|_| self.array_gone())??;
        if !force && !claimant.is_empty()? {
            return Err(ArrayError::NotEmpty { member: member.name().to_owned() });
        }
        claimant.clear()?;
        Ok(newcomer)
    }

    /// Adds a device that was prepared. It is a member, or was given back, as soon as [`WorkerHandle::is_growing`] says no.
    ///
    /// # Errors
    /// It cannot be a member any more. Nothing was changed.
    pub fn grow(&self, mut newcomer: Newcomer) -> Result<(), ArrayError> {
        let Some(claimant) = &newcomer.0 else { return Err(self.array_gone()) };
        let (name, lane, shape) = (claimant.name.clone(), std::sync::Arc::clone(&claimant.lane), claimant.member);
        let grows = self.ask(move |worker| match worker.served().composite() {
            Some(one) => one.grow((name, lane), shape),
            None => Err(array::GrowError::NotServing),
        });
        grows.map_err(|_| self.array_gone())??;
        newcomer.0 = None;
        Ok(())
    }

    /// Whether a device is just being added to the array.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn is_growing(&self) -> Result<bool, Gone> {
        self.ask(|worker| worker.served().composite().is_some_and(|one| one.is_growing()))
    }

    fn array_gone(&self) -> ArrayError {
        ArrayError::Gone { member: self.name.to_string() }
    }

    pub(crate) fn ask<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        self.begin_to_ask(call)?.recv().map_err(|_| self.gone())
    }

    fn begin_to_ask<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<Receiver<R>, Gone> {
        let (answer, wait) = sync_channel(1);
        // An asker that went away needs no answer.
        let call: Call = Box::new(move |worker| drop(answer.send(call(worker))));
        self.sender.send(call).map_err(|_| self.gone())?;
        Ok(wait)
    }

    /// Runs `call` on the device thread: for what has no call of its own here.
    /// Requests of clients wait meanwhile.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn with_device<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Device) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        self.ask(move |worker| worker.device().map(call))?
    }

    /// As [`WorkerHandle::with_device`], for what an array or a cached volume can be asked as well.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn with_served<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Served) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        self.ask(move |worker| call(worker.served()))
    }

    /// As [`WorkerHandle::with_served`], for who does not wait: the answer comes when the thread gets to it.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn begin<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Served) -> R + Send + 'static,
    ) -> Result<Receiver<R>, Gone> {
        self.begin_to_ask(move |worker| call(worker.served()))
    }

    /// Has `call` run on the device's thread when a drill cuts the power, once every connection is closed and the medium is let go. It is given what was
    /// being recorded, to be stopped.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn on_power_cut(&self, call: impl FnOnce(PowerCut, Option<Recording>) + Send + 'static) -> Result<(), Gone> {
        self.ask(move |worker| worker.on_power_cut(Box::new(call)))
    }

    /// Waits until the thread has ended, or ends.
    pub fn wait_until_gone(&self) {
        // Each call is answered with the next round; the last one is not.
        while self.ask(|_| ()).is_ok() {
            std::thread::sleep(PAUSE);
        }
    }

    /// Begins to record what clients ask. If that is going on already, the new recording is given back.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn begin_recording(&self, recording: Recording) -> Result<Result<(), Recording>, Gone> {
        self.ask(move |worker| match worker.recording() {
            Some(_) => Err(recording),
            none => {
                *none = Some(recording);
                Ok(())
            }
        })
    }

    /// Takes the recording from the device, which records no more. To stop it waits for its file, and is for the asker's thread.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn end_recording(&self) -> Result<Option<Recording>, Gone> {
        self.ask(|worker| worker.recording().take())
    }

    /// How a recording stands, if there is one.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn recording(&self) -> Result<Option<trace::recorder::Status>, Gone> {
        self.ask(|worker| worker.recording().as_ref().map(Recording::status))
    }

    /// Every figure of the device.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn status(&self) -> Result<Status, Gone> {
        self.ask(|worker| worker.status())
    }

    /// Asks what clients asked since the last look, and for every figure, without waiting; in words too while something is wrong. There is one such look at a time: each
    /// begins where the last one ended.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn observe(&self) -> Result<Receiver<Look>, Gone> {
        let fresh = Observed::default();
        self.begin_to_ask(move |worker| {
            worker.served().look_at_store();
            let observed = worker.observe(fresh);
            let (figures, status) = worker.figures();
            Look { observed, figures, status }
        })
    }

    /// What is shown of the device: one call instead of one for each part.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn view(&self) -> Result<View, Gone> {
        self.ask(|worker| {
            let (clients, status) = (worker.clients(), worker.status());
            let device = worker.served();
            View { status, info: device.info().clone(), settings: device.settings(), clients }
        })
    }

    /// What the device is.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn info(&self) -> Result<Info, Gone> {
        self.ask(|worker| worker.served().info().clone())
    }

    /// Who is connected.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn clients(&self) -> Result<Vec<ClientInfo>, Gone> {
        self.ask(|worker| worker.clients())
    }

    /// Makes everything durable that was answered before this call.
    ///
    /// # Errors
    /// The device failed, or the thread is gone.
    pub fn flush(&self) -> Result<(), FlushError> {
        let (answer, wait) = sync_channel(1);
        self.sender.send(Box::new(move |worker| worker.flush(answer))).map_err(|_| self.gone())?;
        let name = || self.name.to_string();
        wait.recv().map_err(|_| self.gone())?.map_err(|error| FlushError::Io { name: name(), error })
    }

    /// A seat for a client that is about to be told that it may begin: from here on it counts as connected,
    /// so that no detach slips in between the promise and [`WorkerHandle::add_connection`].
    ///
    /// # Errors
    /// The device is being detached, or is gone.
    pub fn reserve(&self) -> Result<Seat, Gone> {
        self.seats.take().ok_or_else(|| self.gone())
    }

    /// Asks for a queue of NVMe to be let in, by a host that reached us at `at`. The admin queue of a host that comes again at
    /// the same place ends its association before: nothing of that is carried out any more when this returns.
    ///
    /// # Errors
    /// The thread is gone.
    pub(crate) fn join(
        &self,
        cid: u16,
        connect: nvme::fabrics::Connect,
        read_only: bool,
        at: String,
    ) -> Result<Result<Joined, nvme::Cqe>, Gone> {
        self.ask(move |worker| worker.join(cid, &connect, read_only, &at))
    }

    /// A controller's admin queue was let in and did not come after all.
    pub(crate) fn leave(&self, controller: u16) {
        // With the thread the controller is gone, too.
        let _ = self.sender.send(Box::new(move |worker| worker.leave(controller)));
    }

    /// Hands over a client that came out of the handshake.
    ///
    /// # Errors
    /// The thread is gone; the connection is closed.
    pub fn add_connection(&self, connection: NewConnection) -> Result<(), Gone> {
        self.sender.send(Box::new(move |worker| worker.add_connection(connection))).map_err(|_| self.gone())
    }

    /// Closes one client's connection at once. False when there is no such client.
    ///
    /// # Errors
    /// The thread is gone.
    pub fn disconnect(&self, client: usize) -> Result<bool, Gone> {
        self.ask(move |worker| worker.disconnect(client))
    }

    /// Detaches: waits for what is under way, writes the checkpoint, ends the thread.
    /// With clients connected it refuses, unless `force`: then nothing more is read from them, what is under way
    /// is answered, and they are closed.
    ///
    /// # Errors
    /// See [`DetachError`].
    pub fn detach(&self, force: bool) -> Result<(), DetachError> {
        let (answer, wait) = sync_channel(1);
        self.sender.send(Box::new(move |worker| worker.detach(force, answer))).map_err(|_| self.gone())?;
        wait.recv().map_err(|_| self.gone())?
    }
}
