//! A host, and the controllers that it is connected to.

use std::io::{Read, Write};
use std::time::Duration;

use super::authentication::authenticate;
use super::describe::DISCOVERY_BYTES;
use super::{Command, ControllerInfo, DiscoveryLog, Error, IoQueue, Link, LogPage, MAX_DEPTH, Namespace, QueueOptions};
use crate::auth::{Failure, Keys, Names, Policy};
use crate::fabrics::{ANY_CONTROLLER, AUTHENTICATION_REQUIRED, Connect, DISABLE_FLOW_CONTROL, is_name};
use crate::feature;
use crate::identify::cns;
use crate::log::page;
use crate::pdu::{ADMIN_IN_CAPSULE_BYTES, Digests};
use crate::property::{self, configuration, status};

/// Commands of the NVM command set, enabled.
const ENABLE: u32 = configuration::ENTRY_SIZES | configuration::ENABLE;

/// How long a property is left alone between two looks at it.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of the page of SMART and health information.
const SMART_BYTES: u32 = 512;
/// Entries of a discovery log that are read at most.
const MAX_ENTRIES: u64 = 1024;
/// What is read of it at a time, bytes: every controller transfers as much.
const DISCOVERY_PIECE: u64 = 4096;

/// A host: who it says it is.
#[derive(Clone, Debug)]
pub struct Host {
    nqn: String,
    id: [u8; 16],
    keys: Option<(Keys, Policy)>,
}

/// How to connect to a controller.
#[derive(Clone, Copy, Debug)]
pub struct ConnectOptions {
    /// Admin commands outstanding at most.
    pub depth: u16,
    /// Digests of all queues.
    pub digests: Digests,
    /// After this many ms without a command the controller gives the host up; 0 is never.
    pub keep_alive_ms: u32,
    /// Whether the controller reports how far it has taken commands.
    pub flow_control: bool,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions { depth: 31, digests: Digests::default(), keep_alive_ms: 0, flow_control: true }
    }
}

impl Host {
    /// A host of a name (NQN) and an identifier.
    pub fn new(nqn: &str, id: [u8; 16]) -> Host {
        Host { nqn: nqn.to_string(), id, keys: None }
    }

    /// The same host, which proves who it is where a controller asks for it.
    #[must_use]
    pub fn with_keys(self, keys: Keys, policy: Policy) -> Host {
        Host { keys: Some((keys, policy)), ..self }
    }

    /// Connects a queue, without using it yet: returns it with the controller's identifier.
    fn queue<S: Read + Write>(
        &self,
        stream: S,
        subsystem: &str,
        options: &ConnectOptions,
        (cntlid, qid, depth): (u16, u16, u16),
    ) -> Result<(Link<S>, u16), Error> {
        for name in [subsystem, &self.nqn] {
            if !is_name(name) {
                return Err(Error::Name(name.to_string()));
            }
        }
        let depth = depth.clamp(1, MAX_DEPTH);
        let in_capsule = ADMIN_IN_CAPSULE_BYTES;
        let mut link = Link::connect(stream, &QueueOptions { depth, digests: options.digests, in_capsule })?;
        let connect = Connect {
            queue: qid,
            // One entry of a ring stays free.
            entries: u32::from(depth) + 1,
            attributes: if options.flow_control { 0 } else { DISABLE_FLOW_CONTROL },
            keep_alive_ms: if qid == 0 { options.keep_alive_ms } else { 0 },
            host_id: self.id,
            controller: cntlid,
            subsystem: subsystem.to_string(),
            host: self.nqn.clone(),
        };
        let done = link.succeed("Connect", Command::connect(&connect))?;
        if done.result & AUTHENTICATION_REQUIRED != 0 {
            let names = Names { host: self.nqn.clone(), subsystem: subsystem.to_string() };
            let keys = self.keys.clone().ok_or(Error::Unauthenticated(Failure::Failed))?;
            authenticate(&mut link, names, keys)?;
        }
        Ok((link, done.result as u16))
    }

    /// Connects to a controller of a subsystem over a stream, enables it, and asks what it is.
    ///
    /// # Errors
    /// The stream fails, or the controller refuses the host or does not become ready.
    pub fn connect<S: Read + Write>(
        &self,
        stream: S,
        subsystem: &str,
        options: &ConnectOptions,
    ) -> Result<Controller<S>, Error> {
        let (mut link, cntlid) = self.queue(stream, subsystem, options, (ANY_CONTROLLER, 0, options.depth))?;
        let get = link.succeed("Property Get", Command::property_get(property::CAP, true))?;
        let max_depth = (get.result as u16).clamp(1, MAX_DEPTH);
        let patience = Duration::from_millis(500 * (get.result >> 24 & 0xff).max(1));
        let info = ControllerInfo::decode(&[]);
        let (host, subsystem, options) = (self.clone(), subsystem.to_string(), *options);
        let mut controller = Controller { link, host, subsystem, options, cntlid, max_depth, patience, info };
        controller.configure(ENABLE, status::READY, status::READY)?;
        let identity = controller.link.succeed("Identify", Command::identify(cns::CONTROLLER, 0))?;
        controller.info = ControllerInfo::decode(&identity.data);
        Ok(controller)
    }
}

/// A controller that a host is connected to, over its admin queue.
pub struct Controller<S> {
    link: Link<S>,
    host: Host,
    subsystem: String,
    options: ConnectOptions,
    cntlid: u16,
    max_depth: u16,
    patience: Duration,
    info: ControllerInfo,
}

impl<S: Read + Write> Controller<S> {
    /// Its identifier.
    pub fn cntlid(&self) -> u16 {
        self.cntlid
    }

    /// What it says of itself.
    pub fn info(&self) -> &ControllerInfo {
        &self.info
    }

    /// The admin queue, for any command, and for many at a time.
    pub fn link(&mut self) -> &mut Link<S> {
        &mut self.link
    }

    /// Writes the configuration and waits until the status is as it should be.
    fn configure(&mut self, configuration: u32, mask: u32, wanted: u32) -> Result<(), Error> {
        self.link.succeed("Property Set", Command::property_set(property::CC, configuration))?;
        let mut waited = Duration::ZERO;
        loop {
            let state = self.property(property::CSTS, false)? as u32;
            if state & mask == wanted {
                return Ok(());
            }
            if state & status::FATAL != 0 {
                return Err(Error::Answer("the controller reports a fatal status"));
            }
            if waited > self.patience {
                return Err(Error::Answer("the controller needs longer than it announced to change its state"));
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// A property.
    ///
    /// # Errors
    /// As [`Link::execute`], or there is no such property.
    pub fn property(&mut self, offset: u32, is_wide: bool) -> Result<u64, Error> {
        Ok(self.link.succeed("Property Get", Command::property_get(offset, is_wide))?.result)
    }

    /// Asks for so many I/O queues, and tells how many there may be.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn request_queues(&mut self, count: u16) -> Result<u16, Error> {
        let wanted = u32::from(count.max(1) - 1);
        let granted = self.set_feature(feature::id::QUEUES, wanted << 16 | wanted)?;
        let (submission, completion) = (granted as u16, (granted >> 16) as u16);
        Ok(submission.min(completion).saturating_add(1))
    }

    /// Connects an I/O queue, numbered from 1, over a stream of its own.
    ///
    /// # Errors
    /// The stream fails, or the controller refuses.
    pub fn io_queue<T: Read + Write>(&mut self, stream: T, qid: u16, depth: u16) -> Result<IoQueue<T>, Error> {
        let place = (self.cntlid, qid, depth.min(self.max_depth));
        let (mut link, _) = self.host.queue(stream, &self.subsystem, &self.options, place)?;
        link.queue_mut().set_in_capsule(self.info.in_capsule_bytes);
        Ok(IoQueue::new(link))
    }

    /// What Identify gives back for a kind of structure: 4,096 bytes.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn identify(&mut self, cns: u8, nsid: u32) -> Result<Vec<u8>, Error> {
        Ok(self.link.succeed("Identify", Command::identify(cns, nsid))?.data)
    }

    /// A namespace.
    ///
    /// # Errors
    /// As [`Link::execute`], or there is no such namespace.
    pub fn namespace(&mut self, nsid: u32) -> Result<Namespace, Error> {
        let bytes = self.identify(cns::NAMESPACE, nsid)?;
        Namespace::decode(nsid, &bytes).ok_or(Error::Answer("no namespace, or blocks of an impossible size"))
    }

    /// The numbers of the active namespaces, up to 1,024.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn namespaces(&mut self) -> Result<Vec<u32>, Error> {
        let bytes = self.identify(cns::ACTIVE_NAMESPACES, 0)?;
        let numbers = bytes.chunks_exact(4).map(|number| crate::bytes::u32_at(number, 0));
        Ok(numbers.take_while(|nsid| *nsid != 0).collect())
    }

    /// A part of a log page.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn log_page(&mut self, page: &LogPage) -> Result<Vec<u8>, Error> {
        Ok(self.link.succeed("Get Log Page", Command::get_log_page(page))?.data)
    }

    /// The page of SMART and health information: 512 bytes.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn smart(&mut self) -> Result<Vec<u8>, Error> {
        self.log_page(&LogPage::new(page::HEALTH, SMART_BYTES))
    }

    /// What a discovery controller lists, up to 1,024 subsystems.
    ///
    /// # Errors
    /// As [`Link::execute`], or the list does not stop changing.
    pub fn discover(&mut self) -> Result<DiscoveryLog, Error> {
        let page = |offset, len| LogPage { nsid: 0, offset, ..LogPage::new(page::DISCOVERY, len) };
        for _ in 0..10 {
            let mut bytes = self.log_page(&page(0, DISCOVERY_BYTES as u32))?;
            let entries = crate::bytes::u64_at(&bytes, 8).min(MAX_ENTRIES);
            let end = (entries + 1) * DISCOVERY_BYTES as u64;
            while (bytes.len() as u64) < end {
                let offset = bytes.len() as u64;
                bytes.extend(self.log_page(&page(offset, DISCOVERY_PIECE.min(end - offset) as u32))?);
            }
            let log = DiscoveryLog::decode(&bytes);
            let header = self.log_page(&page(0, DISCOVERY_BYTES as u32))?;
            if log.generation == crate::bytes::u64_at(&header, 0) {
                return Ok(log);
            }
        }
        Err(Error::Answer("the discovery log changes each time it is read"))
    }

    /// Sets a feature of the controller, and returns what that gives back.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn set_feature(&mut self, feature: u8, value: u32) -> Result<u32, Error> {
        Ok(self.link.succeed("Set Features", Command::set_features(feature, 0, value))?.result as u32)
    }

    /// The current value of a feature of the controller.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn feature(&mut self, feature: u8) -> Result<u32, Error> {
        Ok(self.link.succeed("Get Features", Command::get_features(feature, 0, 0))?.result as u32)
    }

    /// Tells the controller that the host is still there.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn keep_alive(&mut self) -> Result<(), Error> {
        self.link.succeed("Keep Alive", Command::keep_alive()).map(drop)
    }

    /// Asks to be told of the next event; [`Controller::event`] waits for it by the identifier.
    ///
    /// # Errors
    /// The queue has no room.
    pub fn request_event(&mut self) -> Result<u16, Error> {
        let cid = self.link.submit(Command::async_event_request())?;
        self.link.send()?;
        Ok(cid)
    }

    /// Waits for the event that [`Controller::request_event`] asked for: type in bits 2:0, information in 15:8, log page in 23:16.
    ///
    /// # Errors
    /// As [`Link::wait`], or the controller refuses.
    pub fn event(&mut self, cid: u16) -> Result<u32, Error> {
        Ok(self.link.wait_for(&[cid])?.succeeded("Asynchronous Event Request")?.result as u32)
    }

    /// Asks for the abort of a command, and tells whether it was aborted.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller refuses.
    pub fn abort(&mut self, qid: u16, cid: u16) -> Result<bool, Error> {
        Ok(self.link.succeed("Abort", Command::abort(qid, cid))?.result & 1 == 0)
    }

    /// Shuts the controller down and hangs up. I/O queues are to be closed before.
    ///
    /// # Errors
    /// As [`Link::execute`], or the controller does not shut down.
    pub fn disconnect(mut self) -> Result<(), Error> {
        self.configure(ENABLE | configuration::SHUTDOWN_NORMAL, status::SHUTDOWN_MASK, status::SHUTDOWN_DONE)
    }
}
