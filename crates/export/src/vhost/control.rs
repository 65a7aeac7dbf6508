//! What a front end says on its socket: one thread a front end, which may wait for the device's thread but never the other way
//! round.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use rustix::fs::OFlags;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight, VhostUserLog,
    VhostUserMemoryRegion, VhostUserShMemConfig, VhostUserSharedMsg, VhostUserSingleMemoryRegion,
    VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{
    Error, GpuBackend, Result, VhostUserBackendReqHandlerMut, VhostUserProtocolFeatures as Protocol,
};

use super::config::{Facts, MAX_QUEUES, WRITE_BACK_AT};
use super::inflight::Inflight;
use super::memory::{MAX_REGIONS, Memory};
use super::ring::Places;
use super::session::{Refused, Session};
use crate::WorkerHandle;

/// Where the back end maps a region; only postcopy asks.
type Base = u64;

/// The protocol features that are offered. Not among them: dirty logging, so a guest cannot migrate while it runs.
const PROTOCOL: Protocol = Protocol::MQ
    .union(Protocol::CONFIG)
    .union(Protocol::BACKEND_REQ)
    .union(Protocol::INFLIGHT_SHMFD)
    .union(Protocol::CONFIGURE_MEM_SLOTS)
    .union(Protocol::REPLY_ACK);

/// A front end's side of a session.
pub struct Control {
    device: WorkerHandle,
    session: u64,
    facts: Facts,
    memory: Arc<Memory>,
}

/// An error that closes the connection, in the words of the crate.
fn wrong(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::ReqHandlerError(io::Error::other(what))
}

impl Control {
    /// Speaks for a session of a device's thread.
    pub fn new(device: WorkerHandle, session: u64, facts: Facts) -> Control {
        Control { device, session, facts, memory: Arc::new(Memory::empty()) }
    }

    /// Does something with the session, on the device's thread.
    fn with<R: Send + 'static>(&self, call: impl FnOnce(&mut Session) -> R + Send + 'static) -> Result<R> {
        let session = self.session;
        let done = self.device.ask(move |worker| worker.with_vhost(session, call)).map_err(wrong)?;
        done.ok_or_else(|| wrong("the connection is closed"))
    }

    /// The same with something that the session may refuse.
    fn tell(&self, call: impl FnOnce(&mut Session) -> std::result::Result<(), Refused> + Send + 'static) -> Result<()> {
        self.with(call)?.map_err(wrong)
    }

    fn set_memory(&mut self, memory: Memory) -> Result<()> {
        tracing::debug!(device = self.device.name(), bytes = memory.bytes(), "vhost: the guest's memory is mapped");
        let memory = Arc::new(memory);
        self.memory = Arc::clone(&memory);
        // The old one is given back to be unmapped here, which takes its time.
        self.with(move |session| session.set_memory(memory))?.map(drop).map_err(wrong)
    }
}

/// An eventfd that never blocks whoever writes to it. Anything else could hold the device's thread up.
fn eventfd(file: File) -> Result<OwnedFd> {
    let fd = OwnedFd::from(file);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
    let link = std::fs::read_link(path).map_err(Error::ReqHandlerError)?;
    if link.as_os_str() != "anon_inode:[eventfd]" {
        return Err(wrong(format!("{}: expected an eventfd", link.display())));
    }
    let refused = |errno: rustix::io::Errno| Error::ReqHandlerError(errno.into());
    let flags = rustix::fs::fcntl_getfl(fd.as_fd()).map_err(refused)?;
    rustix::fs::fcntl_setfl(fd.as_fd(), flags | OFlags::NONBLOCK).map_err(refused)?;
    Ok(fd)
}

impl VhostUserBackendReqHandlerMut for Control {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    /// Obsolete: front ends stop each queue instead.
    fn reset_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        Err(Error::InvalidOperation("RESET_DEVICE was not offered"))
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.facts.features())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !self.facts.features() != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.with(move |session| session.set_features(features))
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<Base>>> {
        self.set_memory(Memory::map(regions, files).map_err(wrong)?)?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        self.tell(move |session| session.set_size(index, num))
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _: u64,
    ) -> Result<()> {
        self.tell(move |session| session.set_places(index, Places { descriptors, available, used }))
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.tell(move |session| session.set_base(index, base))
    }

    /// Waits until everything that the queue asked for is answered.
    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let (answer, wait) = sync_channel(1);
        self.tell(move |session| session.stop(index, answer))?;
        let base = wait.recv().map_err(|_| wrong("the connection is closed"))?;
        Ok(VhostUserVringState::new(index, base.into()))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let file =
            file.ok_or_else(|| wrong("a queue without kicks would have to be polled, which this back end does not"))?;
        let fd = eventfd(file)?;
        self.tell(move |session| session.set_kick(index.into(), fd))
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let fd = file.map(eventfd).transpose()?;
        self.tell(move |session| session.set_call(index.into(), fd, false))
    }

    fn set_vring_err(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let fd = file.map(eventfd).transpose()?;
        self.tell(move |session| session.set_call(index.into(), fd, true))
    }

    fn get_protocol_features(&mut self) -> Result<Protocol> {
        Ok(PROTOCOL)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        if features & !PROTOCOL.bits() != 0 { Err(Error::FeatureMismatch) } else { Ok(()) }
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(MAX_QUEUES.into())
    }

    fn set_vring_enable(&mut self, index: u32, on: bool) -> Result<()> {
        self.tell(move |session| session.enable(index, on))
    }

    /// A front end may know of a longer configuration space: the rest is zero.
    fn get_config(&mut self, offset: u32, size: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let config = self.with(|session| session.config())?;
        let mut bytes = vec![0; size as usize];
        let there = config.iter().skip(offset as usize);
        bytes.iter_mut().zip(there).for_each(|(to, from)| *to = *from);
        Ok(bytes)
    }

    /// All that a driver may change is whether there is a write cache.
    fn set_config(&mut self, offset: u32, bytes: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        let at = WRITE_BACK_AT.checked_sub(offset).and_then(|at| bytes.get(at as usize));
        match at.copied() {
            Some(on) => self.with(move |session| session.set_write_back(on != 0)),
            None => Ok(()),
        }
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        Err(Error::InvalidOperation("this is a disk"))
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidOperation("SHARED_OBJECT was not offered"))
    }

    fn get_inflight_fd(&mut self, asked: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        Inflight::create(asked.num_queues, asked.queue_size).map_err(wrong)
    }

    fn set_inflight_fd(&mut self, said: &VhostUserInflight, file: File) -> Result<()> {
        let region = Arc::new(Inflight::map(said, file).map_err(wrong)?);
        self.with(move |session| session.set_region(region))
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(MAX_REGIONS as u64)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _: Option<bool>,
    ) -> Result<Option<Base>> {
        self.set_memory(self.memory.with(region, file).map_err(wrong)?)?;
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        self.set_memory(self.memory.without(region.guest_phys_addr, region.memory_size).map_err(wrong)?)
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidOperation("DEVICE_STATE was not offered"))
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(Error::InvalidOperation("DEVICE_STATE was not offered"))
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidOperation("SHMEM was not offered"))
    }

    fn set_log_base(&mut self, _: &VhostUserLog, _: File) -> Result<()> {
        Err(Error::InvalidOperation("LOG_SHMFD was not offered"))
    }
}
