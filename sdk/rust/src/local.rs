//! The thread of a device that this process has to itself.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use device::{AttachError, Background, CarriedDrills, Device, Extent, Io, SnapshotError, SnapshotId, Submitted};
use media::ring::mailbox::Mailbox;
use media::ring::{Entry, Owner, SharedRing};
use rustix::event::PollFlags;
use slab::Slab;

use crate::job::{Bytes, Job, Request};
use crate::pending::{Answer, Completer, Found};
use crate::{Capabilities, Error, OpenError};

/// How often a device that takes no more is asked again when nothing else happens.
const RETRY: Duration = Duration::from_millis(1);
/// How long nobody must ask anything before the device may tidy up, and how long between two steps of it.
const QUIET: Duration = Duration::from_millis(100);
const TIDY: Duration = Duration::from_millis(2);
/// How long a rebuild rests when it cannot go on.
const STUCK: Duration = Duration::from_secs(1);
/// How often a full store is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How close a moment of an emulated device must be for the thread to stay awake.
const POLLED: Duration = Duration::from_micros(60);
/// How long requests may take that are outstanding when the device is closed.
const CLOSING: Duration = Duration::from_secs(10);
/// Sectors that one request for ranges looks at, and ranges that it gives, at most: others wait meanwhile.
const LOOKED_AT: u64 = 1 << 18;
const RANGES: usize = 256;

/// Attaches the device: at first, and whenever its power comes back.
pub(crate) type Attach = Box<dyn FnMut(&SharedRing, &CarriedDrills) -> Result<Device, AttachError> + Send>;

pub(crate) struct Engine {
    /// Nothing while its power is cut.
    device: Option<Device>,
    /// The snapshot or clone that is shown.
    view: Option<SnapshotId>,
    carried: CarriedDrills,
    attach: Attach,
    ring: SharedRing,
    owner: Owner,
    mailbox: Mailbox<Job>,
    under_way: Slab<(Completer, Option<Vec<u8>>)>,
    /// What the device took no more of, in order.
    waiting: VecDeque<(Request, Completer)>,
    closing: Option<(Instant, Option<Completer>)>,
    /// When something was last asked.
    active: Instant,
    /// The device may have something to tidy up.
    untidy: bool,
    looked: Instant,
    next_step: Instant,
}

impl Engine {
    pub(crate) fn new(
        mut attach: Attach,
        ring: SharedRing,
        mailbox: Mailbox<Job>,
        path: &Path,
        snapshot: Option<&str>,
    ) -> Result<(Engine, Capabilities), OpenError> {
        let owner = ring.borrow_mut().register();
        let carried = CarriedDrills::default();
        let device = attach(&ring, &carried)?;
        let find = |name: &str| {
            let found = device.view_named(name);
            found.ok_or_else(|| OpenError::NoSnapshot { path: path.to_path_buf(), snapshot: name.to_string() })
        };
        let shown = snapshot.map(find).transpose()?;
        let view = shown.map(|shown| shown.id);
        let info = device.info();
        let capabilities = Capabilities {
            uuid: info.uuid.to_string(),
            sector_bytes: info.sector_bytes,
            sectors: info.sectors,
            max_write_bytes: info.max_request_bytes,
            read_only: device.is_read_only() || shown.is_some_and(|shown| !shown.is_clone),
            snapshot: view,
        };
        let now = Instant::now();
        let engine = Engine {
            device: Some(device),
            view,
            carried,
            attach,
            ring,
            owner,
            mailbox,
            under_way: Slab::new(),
            waiting: VecDeque::new(),
            closing: None,
            active: now,
            untidy: true,
            looked: now,
            next_step: now,
        };
        Ok((engine, capabilities))
    }

    /// Serves until the last handle is gone.
    pub(crate) fn run(mut self) {
        if let Err(error) = self.listen().and_then(|()| self.serve()) {
            tracing::error!(%error, "the device's thread ends");
        }
        let device = self.device.take();
        let result = device.map_or(Ok(()), Device::detach);
        if let Some((_, Some(done))) = self.closing.take() {
            done.complete(result.map(|()| Answer::Done).map_err(Error::from));
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.hear()?;
            self.ask_again();
            self.poll();
            self.notice_cut();
            if let Some((since, _)) = &self.closing {
                let idle = self.under_way.is_empty() && self.waiting.is_empty();
                if idle || self.device.is_none() || since.elapsed() > CLOSING {
                    return Ok(());
                }
            }
            self.go_on_beside();
            self.rest()?;
        }
    }

    fn listen(&mut self) -> io::Result<()> {
        let entry = Entry::Poll { fd: self.mailbox.bell().as_raw_fd(), events: PollFlags::IN, multi: true };
        // SAFETY: the entry points to nothing; the mailbox keeps the descriptor, and outlives the ring's use of it.
        unsafe { self.ring.borrow_mut().push(self.owner, 0, entry) }
    }

    fn hear(&mut self) -> io::Result<()> {
        loop {
            let Some(bell) = self.ring.borrow_mut().next(self.owner) else { break };
            if !bell.more {
                self.listen()?;
            }
            self.mailbox.answer_bell();
        }
        while self.closing.is_none() {
            match self.mailbox.receive() {
                Ok(Some(job)) => self.take(job),
                Ok(None) => break,
                Err(_) => self.closing = Some((Instant::now(), None)),
            }
        }
        Ok(())
    }

    fn take(&mut self, job: Job) {
        self.notice_cut();
        self.active = Instant::now();
        match (job, &mut self.device) {
            (Job::Close(done), _) => self.closing = Some((Instant::now(), Some(done))),
            (Job::PowerOn(done), None) => done.complete(self.power_on()),
            (Job::PowerOn(done), Some(_)) => done.complete(Ok(Answer::Done)),
            (Job::Io(_, done) | Job::Drill(_, done) | Job::UndoDrill(_, done), None) => {
                done.complete(Err(Error::PowerOff));
            }
            (Job::Io(request, done), Some(_)) => self.waiting.push_back((request, done)),
            (Job::Drill(drill, done), Some(device)) => {
                done.complete(device.drill(drill).map(Answer::Said).map_err(Error::from));
            }
            (Job::UndoDrill(name, done), Some(device)) => {
                done.complete(device.undo_drill(&name).map(|_| Answer::Done).map_err(Error::from));
            }
        }
    }

    /// Puts to the device what waits, in order, until it takes no more.
    fn ask_again(&mut self) {
        let Some(device) = &mut self.device else { return };
        while device.power_cut().is_none()
            && let Some((mut request, done)) = self.waiting.pop_front()
        {
            let io = match &mut request {
                Request::Ranges { lba, end, since } => {
                    done.complete(ranges(device, self.view, *lba..*end, *since).map_err(|_| Error::NoSnapshot));
                    continue;
                }
                Request::Read { lba, buf } => {
                    let (lba, buf) = (*lba, std::mem::take(buf));
                    match self.view {
                        None => Io::Read { lba, buf },
                        Some(id) => Io::ReadSnapshot { id, lba, buf },
                    }
                }
                // The data are copied before `submit` returns.
                Request::Write { lba, data, durable } => Io::Write { lba: *lba, data: data.as_slice(), fua: *durable },
                Request::Trim { lba, count, durable } => Io::Trim { lba: *lba, count: *count, fua: *durable },
                Request::Flush => Io::Flush,
                Request::Batch { ops, data, durable } => Io::Batch { ops, data, fua: *durable },
            };
            self.untidy = true;
            match device.submit_in(self.view, self.under_way.vacant_key() as u64, io) {
                Submitted::Busy(io) => {
                    let back = match io {
                        Io::Read { buf, .. } | Io::ReadSnapshot { buf, .. } => Some(buf),
                        _ => None,
                    };
                    if let (Some(back), Request::Read { buf, .. }) = (back, &mut request) {
                        *buf = back;
                    }
                    return self.waiting.push_front((request, done));
                }
                Submitted::Done(result) => done.complete(answer(result, given_back(request))),
                Submitted::Pending => drop(self.under_way.insert((done, given_back(request)))),
            }
        }
    }

    fn poll(&mut self) {
        let Some(device) = &mut self.device else { return };
        while let Some(completion) = device.poll() {
            if let Some((done, owned)) = self.under_way.try_remove(completion.tag as usize) {
                done.complete(answer(completion.result, owned));
            }
        }
    }

    /// Where the power is cut, nothing that was outstanding is answered with success.
    fn notice_cut(&mut self) {
        let Some(device) = self.device.take_if(|device| device.power_cut().is_some()) else { return };
        self.carried = device.power_cut().map(|cut| cut.drills.clone()).unwrap_or_default();
        // What is on the files now is all that there is.
        drop(device);
        let under_way = self.under_way.drain().map(|(done, _)| done);
        for done in under_way.chain(self.waiting.drain(..).map(|(_, done)| done)) {
            done.complete(Err(Error::PowerOff));
        }
    }

    fn power_on(&mut self) -> Result<Answer, Error> {
        let device = (self.attach)(&self.ring, &self.carried);
        self.device = Some(device.map_err(|error| Error::Recovery { why: error.to_string() })?);
        self.untidy = true;
        Ok(Answer::Done)
    }

    /// Rebuilds, scrubs and tidies up while nobody asks anything.
    fn go_on_beside(&mut self) {
        let Some(device) = &mut self.device else { return };
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            device.look_at_store();
        }
        if device.has_background() && Instant::now() >= self.next_step {
            let pause = match device.background() {
                Background::Stuck => STUCK,
                Background::Slowly(pause) => pause,
                _ => Duration::ZERO,
            };
            self.next_step = Instant::now() + pause;
        }
        if self.untidy && self.under_way.is_empty() && self.active.elapsed() >= QUIET {
            self.untidy = device.idle();
        }
    }

    /// Hands everything to the kernel; waits when there is nothing to do.
    fn rest(&mut self) -> io::Result<()> {
        let mut ring = self.ring.borrow_mut();
        let Some(device) = &mut self.device else { return ring.wait(None) };
        let left = device.time_left();
        if device.can_go_on() || left.is_some_and(|left| left < POLLED) {
            return ring.submit();
        }
        let asked = !self.waiting.is_empty() || !self.under_way.is_empty();
        // What the medium has under way is announced by a completion of the ring; nothing else is.
        let retry = (!self.waiting.is_empty() || (asked && device.is_idle())).then_some(RETRY);
        let step = device.has_background().then(|| self.next_step.saturating_duration_since(Instant::now()).max(RETRY));
        let tidy = (self.untidy && !asked).then(|| QUIET.saturating_sub(self.active.elapsed()).max(TIDY));
        let closing = self.closing.is_some().then_some(RETRY);
        ring.wait([left, retry, step, tidy, closing].into_iter().flatten().min())
    }
}

/// The buffer of a request that was taken, for its answer.
fn given_back(request: Request) -> Option<Vec<u8>> {
    match request {
        Request::Write { data: Bytes::Owned(data), .. } => Some(data),
        _ => None,
    }
}

fn answer(result: Result<Option<Vec<u8>>, device::IoError>, owned: Option<Vec<u8>>) -> Result<Answer, Error> {
    Ok(result?.or(owned).map_or(Answer::Done, Answer::Buffer))
}

/// Ranges of mapped sectors, or of those that differ from a snapshot, and where to go on.
fn ranges(
    device: &Device,
    view: Option<SnapshotId>,
    within: Range<u64>,
    since: Option<SnapshotId>,
) -> Result<Answer, SnapshotError> {
    let mut found: Vec<Found> = Vec::new();
    let (mut lba, end) = (within.start, within.end);
    let stop = end.min(lba.saturating_add(LOOKED_AT));
    while lba < stop && found.len() < RANGES {
        let (count, holds) = match since {
            Some(_) => device.compare(since, view, lba, end - lba)?,
            None => {
                let Extent { count, mapped } = device.extent_in(view, lba, end - lba)?;
                (count, mapped.then_some(true))
            }
        };
        if let Some(holds) = holds {
            found.push((lba..lba + count, holds));
        }
        lba += count.max(1);
    }
    Ok(Answer::Ranges(found, lba))
}
