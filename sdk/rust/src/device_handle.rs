//! A handle on a device.

use std::fmt;
use std::io;
use std::ops::{Bound, Range, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use device::{AttachError, AttachOptions, CarriedDrills, FormatError, Secret};
use media::ring::mailbox::{Mailbox, Sender, mailbox};
use media::ring::{Ring, SharedRing};

use crate::connect::Dial;
use crate::job::{Bytes, Job, Lent, Request};
use crate::local::Attach;
use crate::pending::{Answer, failed, pending};
use crate::{Address, Changes, ConnectOptions, Error, OpenError, Pending, Ranges, connect, local, remote};

/// Submissions between two system calls.
const RING_ENTRIES: u32 = 256;

/// How a device is opened in this process.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Take no writes.
    pub read_only: bool,
    /// Go on without files that parity makes up for.
    pub degraded: bool,
    /// What opens it, where it is encrypted.
    pub secret: Option<Secret>,
    /// Show this snapshot or clone of it, by its name, instead of what it holds now; a snapshot takes no writes.
    pub snapshot: Option<String>,
    /// A directory in memory (`/dev/shm`) where page buffers outlive the process: then what is answered survives its death,
    /// flushed or not. The next to open the device has to name the same directory.
    pub staging: Option<PathBuf>,
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// What it is known by.
    pub uuid: String,
    /// Bytes of a sector, the unit of every address and length.
    pub sector_bytes: u32,
    /// How many sectors it has.
    pub sectors: u64,
    /// The largest write, and the largest read, bytes. A write is atomic up to this size.
    pub max_write_bytes: u32,
    /// It takes no writes.
    pub read_only: bool,
    /// The number of the snapshot or clone that is shown, which is no other one's on the device; nothing for the device as it is.
    pub snapshot: Option<u64>,
}

/// A device that is open: in this process, or in a service.
///
/// It is a handle that can be cloned and shared between threads. See [the crate's page](crate) for what a request promises.
#[derive(Clone)]
pub struct Device(Arc<Handle>);

struct Handle {
    capabilities: Capabilities,
    /// Gone once the handle is being dropped.
    sender: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.0.capabilities.uuid).finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.sender = None;
        // A waker may own the last handle; the device's thread cannot wait for itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // That it panicked was said already.
            let _ = thread.join();
        }
    }
}

impl Device {
    /// Opens the device in a file. This process has it alone; `vsl attach` refuses it meanwhile.
    ///
    /// # Errors
    /// The file is no device, or somebody has it.
    pub fn open(path: impl AsRef<Path>) -> Result<Device, OpenError> {
        Device::open_with(&[path.as_ref()], &OpenOptions::default())
    }

    /// Like [`Device::open`], for a device on several files, or with options.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn open_with<P: AsRef<Path>>(paths: &[P], options: &OpenOptions) -> Result<Device, OpenError> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| path.as_ref().to_path_buf()).collect();
        let snapshot = options.snapshot.clone();
        let options = AttachOptions {
            read_only: options.read_only,
            degraded: options.degraded,
            secret: options.secret.clone(),
            staging: options.staging.clone(),
            ..AttachOptions::default()
        };
        let name = paths.first().cloned().unwrap_or_default();
        let attach = move |ring: &SharedRing, drills: &CarriedDrills| {
            let options = AttachOptions { drills: drills.clone(), ..options.clone() };
            device::Device::attach(&paths, &options, ring)
        };
        Device::start(name, snapshot, Box::new(attach))
    }

    /// A throw-away device in memory, for tests.
    ///
    /// # Errors
    /// The sizes do not fit.
    ///
    /// ```
    /// let device = openvsl::Device::memory(64 << 20, 4096)?;
    /// assert_eq!(device.capabilities().sectors, 16384);
    /// # Ok::<(), openvsl::OpenError>(())
    /// ```
    pub fn memory(bytes: u64, sector_bytes: u32) -> Result<Device, OpenError> {
        let attach = move |_: &SharedRing, _: &CarriedDrills| {
            device::Device::memory(bytes, sector_bytes).map_err(|error| match error {
                FormatError::Attach(error) => error,
                error => AttachError::Media { path: "memory".into(), what: error.to_string() },
            })
        };
        Device::start("memory".into(), None, Box::new(attach))
    }

    fn start(name: PathBuf, snapshot: Option<String>, attach: Attach) -> Result<Device, OpenError> {
        let (answer, wait) = sync_channel(1);
        let failed = |error| OpenError::System { path: name.clone(), error };
        let (sender, mailbox) = mailbox().map_err(failed)?;
        let path = name.clone();
        let thread = spawn(move || {
            let engine = Ring::new(RING_ENTRIES)
                .map_err(|error| OpenError::System { path: path.clone(), error })
                .and_then(|ring| local::Engine::new(attach, ring, mailbox, &path, snapshot.as_deref()));
            match engine {
                Ok((engine, capabilities)) => {
                    // The opening thread waits for this answer.
                    let _ = answer.send(Ok(capabilities));
                    engine.run();
                }
                Err(error) => drop(answer.send(Err(error))),
            }
        })
        .map_err(failed)?;
        let ended = || failed(io::Error::other("the device's thread failed"));
        let capabilities = wait.recv().map_err(|_| ended())??;
        Ok(Device(Arc::new(Handle { capabilities, sender: Some(sender), thread: Some(thread) })))
    }

    /// Connects to a device of a service, which others may use at the same time. [`Address`] says what an address is.
    ///
    /// A connection that ends is not made anew: requests fail with [`Error::Disconnected`] from then on.
    /// [`ConnectOptions::reconnect`] changes that.
    ///
    /// # Errors
    /// Nobody serves there, or the service refuses.
    ///
    /// ```no_run
    /// let device = openvsl::Device::connect("nvme+tcp://localhost:4420")?;
    /// device.flush()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(address: &str) -> Result<Device, OpenError> {
        Device::connect_with(&address.parse()?, &ConnectOptions::default())
    }

    /// Like [`Device::connect`], as a host that the service knows.
    ///
    /// # Errors
    /// As [`Device::connect`].
    pub fn connect_with(address: &Address, options: &ConnectOptions) -> Result<Device, OpenError> {
        let dial = Dial::new(address, options);
        let connected = connect::connect(&dial)?;
        let failed = |error| OpenError::System { path: address.to_string().into(), error };
        let capabilities = connected.capabilities.clone();
        let (sender, mailbox): (_, Mailbox<Job>) = mailbox().map_err(failed)?;
        let thread = spawn(move || remote::Engine::new(dial, connected, mailbox).run()).map_err(failed)?;
        Ok(Device(Arc::new(Handle { capabilities, sender: Some(sender), thread: Some(thread) })))
    }

    /// What the device is.
    pub fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    /// Reads sectors.
    ///
    /// # Errors
    /// They do not lie on the device, are more than one request takes, or cannot be read.
    pub fn read(&self, lba: u64, sectors: u32) -> Result<Vec<u8>, Error> {
        self.begin_read(lba, sectors).wait()
    }

    /// Reads sectors into memory that is there already; this copies once more than [`Device::read`].
    ///
    /// # Errors
    /// As [`Device::read`]; or the buffer has no room for whole sectors.
    pub fn read_into(&self, lba: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let sectors = self.whole(buffer.len())?;
        let data = self.read(lba, u32::try_from(sectors).unwrap_or(u32::MAX))?;
        buffer.copy_from_slice(&data);
        Ok(())
    }

    /// Begins to read sectors.
    pub fn begin_read(&self, lba: u64, sectors: u32) -> Pending<Vec<u8>> {
        let bytes = u64::from(sectors) * u64::from(self.0.capabilities.sector_bytes);
        match self.check(lba, sectors.into(), Some(bytes)) {
            Ok(()) => self.begin(Request::Read { lba, buf: vec![0; bytes as usize] }, Answer::buffer),
            Err(error) => failed(error, Answer::buffer),
        }
    }

    /// Writes whole sectors, atomically.
    ///
    /// # Errors
    /// The data are no whole sectors, or more than one request takes; they do not lie on the device; it takes no writes, has no
    /// space, or fails.
    pub fn write(&self, lba: u64, data: &[u8]) -> Result<(), Error> {
        self.write_with(lba, data, false)
    }

    /// Like [`Device::write`], and durable when it returns.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn write_durable(&self, lba: u64, data: &[u8]) -> Result<(), Error> {
        self.write_with(lba, data, true)
    }

    fn write_with(&self, lba: u64, data: &[u8], durable: bool) -> Result<(), Error> {
        self.check_write(lba, data.len())?;
        // SAFETY: `wait` returns once the request's completer has completed or is gone, and the data are borrowed until then.
        let data = Bytes::Lent(unsafe { Lent::new(data) });
        self.begin(Request::Write { lba, data, durable }, Answer::nothing).wait()
    }

    /// Begins to write whole sectors. The answer has the data again, for the next write.
    pub fn begin_write(&self, lba: u64, data: Vec<u8>) -> Pending<Vec<u8>> {
        self.begin_write_with(lba, data, false)
    }

    /// Begins a write that is durable when it is answered.
    pub fn begin_write_durable(&self, lba: u64, data: Vec<u8>) -> Pending<Vec<u8>> {
        self.begin_write_with(lba, data, true)
    }

    fn begin_write_with(&self, lba: u64, data: Vec<u8>, durable: bool) -> Pending<Vec<u8>> {
        match self.check_write(lba, data.len()) {
            Ok(()) => self.begin(Request::Write { lba, data: Bytes::Owned(data), durable }, Answer::buffer),
            Err(error) => failed(error, Answer::buffer),
        }
    }

    /// Forgets sectors: they read as zeros, and do not exist. A device whose setting `trim` is off keeps them.
    ///
    /// # Errors
    /// They do not lie on the device; it takes no writes, or fails.
    pub fn trim(&self, lba: u64, sectors: u64) -> Result<(), Error> {
        self.begin_trim(lba, sectors).wait()
    }

    /// Like [`Device::trim`], and durable when it returns.
    ///
    /// # Errors
    /// As [`Device::trim`].
    pub fn trim_durable(&self, lba: u64, sectors: u64) -> Result<(), Error> {
        self.begin_trim_with(lba, sectors, true).wait()
    }

    /// Begins to forget sectors.
    pub fn begin_trim(&self, lba: u64, sectors: u64) -> Pending<()> {
        self.begin_trim_with(lba, sectors, false)
    }

    fn begin_trim_with(&self, lba: u64, count: u64, durable: bool) -> Pending<()> {
        let checked = self.check(lba, count, None).and_then(|()| self.check_writable());
        match checked {
            Ok(()) => self.begin(Request::Trim { lba, count, durable }, Answer::nothing),
            Err(error) => failed(error, Answer::nothing),
        }
    }

    /// Makes everything durable that was answered before.
    ///
    /// # Errors
    /// The device failed: what was written since the last flush is in doubt.
    pub fn flush(&self) -> Result<(), Error> {
        self.begin_flush().wait()
    }

    /// Begins to make everything durable that was answered before.
    pub fn begin_flush(&self) -> Pending<()> {
        self.begin(Request::Flush, Answer::nothing)
    }

    /// Whether a sector was written, and not trimmed since.
    ///
    /// # Errors
    /// It does not lie on the device.
    pub fn exists(&self, lba: u64) -> Result<bool, Error> {
        self.check(lba, 1, None)?;
        let request = Request::Ranges { lba, end: lba + 1, since: None };
        let (found, _) = self.begin(request, Answer::ranges).wait()?;
        Ok(!found.is_empty())
    }

    /// The ranges of sectors that were written, and not trimmed since, in order.
    ///
    /// ```
    /// # let device = openvsl::Device::memory(64 << 20, 4096)?;
    /// device.write(3, &[1; 8192])?;
    /// device.write(9, &[1; 4096])?;
    /// assert_eq!(device.ranges(4..).collect::<Result<Vec<_>, _>>()?, [4..5, 9..10]);
    /// assert_eq!(device.ranges(5..9).next(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ranges(&self, within: impl RangeBounds<u64>) -> Ranges {
        Ranges::new(self.clone(), self.within(within))
    }

    /// The ranges of sectors that differ from a snapshot of the device, in order, each with whether it holds data now, or in the snapshot that is
    /// shown. `since` is [`Capabilities::snapshot`] of a handle that shows the older one. What was overwritten with the same bytes differs, too.
    pub fn changes(&self, since: u64, within: impl RangeBounds<u64>) -> Changes {
        Changes::new(self.clone(), Some(since), self.within(within))
    }

    fn within(&self, within: impl RangeBounds<u64>) -> Range<u64> {
        let sectors = self.0.capabilities.sectors;
        let start = match within.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match within.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => sectors,
        };
        Range { start, end: end.min(sectors) }
    }

    /// Closes the device for every handle, once what is outstanding is answered: detaches it, or hangs up.
    ///
    /// # Errors
    /// The last checkpoint could not be written; what was flushed is safe all the same.
    pub fn close(self) -> Result<(), Error> {
        self.ask(Job::Close, Answer::nothing).wait()
    }

    /// Asks for a request that was checked.
    pub(crate) fn begin<T>(&self, request: Request, take: fn(Answer) -> T) -> Pending<T> {
        self.ask(|done| Job::Io(request, done), take)
    }

    /// Asks the device's thread for something.
    pub(crate) fn ask<T>(
        &self,
        job: impl FnOnce(crate::pending::Completer) -> Job,
        take: fn(Answer) -> T,
    ) -> Pending<T> {
        let (done, pending) = pending(take);
        if let Some(sender) = &self.0.sender {
            // A thread that is gone drops what it is sent, and the request's completer with it.
            let _ = sender.send(job(done));
        }
        pending
    }

    pub(crate) fn whole(&self, bytes: usize) -> Result<u64, Error> {
        let sector_bytes = self.0.capabilities.sector_bytes;
        match (bytes as u64).is_multiple_of(sector_bytes.into()) {
            true => Ok(bytes as u64 / u64::from(sector_bytes)),
            false => Err(Error::Misaligned { bytes, sector_bytes }),
        }
    }

    fn check(&self, lba: u64, count: u64, bytes: Option<u64>) -> Result<(), Error> {
        let Capabilities { sectors, max_write_bytes, .. } = self.0.capabilities;
        let end = lba.saturating_add(count);
        if end > sectors {
            return Err(Error::OutOfRange { lba, end, sectors });
        }
        match bytes {
            Some(bytes) if bytes > max_write_bytes.into() => {
                Err(Error::TooLarge { bytes, max: max_write_bytes.into() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.0.capabilities.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    fn check_write(&self, lba: u64, bytes: usize) -> Result<(), Error> {
        self.check_writable()?;
        self.check(lba, self.whole(bytes)?, Some(bytes as u64))
    }
}

fn spawn(run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("openvsl".into()).spawn(run)
}
