//! One controller: its properties, features, events and errors, and its admin commands.

use std::collections::VecDeque;

use crate::command::{admin, fabrics};
use crate::discovery::Directory;
use crate::fabrics::Connect;
use crate::feature::{Features, Unsupported};
use crate::identify::{ERROR_ENTRIES, EVENT_REQUESTS, Identity, identify, identify_discovery};
use crate::log::{self, Failure, Wanted, page};
use crate::namespace::{Subject, warning};
use crate::placement::{self, Events};
use crate::property::{self, configuration, status};
use crate::{Cqe, Sqe, Status};

/// The largest part of a log page in one command, bytes.
const LOG_PART: u32 = 1 << 20;

/// What stands behind a controller.
pub enum Behind<'a> {
    /// A device, and the events of its placement.
    Device(&'a dyn Subject, &'a mut Events),
    /// The list of devices: a discovery controller.
    Directory(&'a Directory),
}

/// What becomes of an admin command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What goes back; nothing yet for a request to be told of events.
    pub answer: Option<Cqe>,
    /// Data for the host, before the answer.
    pub data: Vec<u8>,
    /// What whoever has the connections does besides.
    pub then: Then,
}

/// What an admin command sets off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing.
    Nothing,
    /// Everything answered so far is to be made durable, and [`Controller::shut_down`] told: the host switches off.
    Flush,
    /// The controller's I/O queues are closed: the host resets it.
    CloseQueues,
    /// This request to be told of events is answered as aborted.
    Abort(u16),
}

/// A kind of event that a host is told of (Base Specification 2.0, 5.2, figures 146 to 151).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A critical warning of the health log came up.
    Health(u8),
    /// The namespace's attributes changed.
    NamespaceChanged,
    /// The discovery log changed.
    DiscoveryChanged,
}

impl Event {
    /// Type in bits 2:0, what it is in bits 15:8, the log page to read in bits 23:16.
    fn encode(self) -> u64 {
        match self {
            Event::Health(bit) if bit == warning::SPARE => 0x02_02_01,
            Event::Health(bit) if bit == warning::TEMPERATURE => 0x02_01_01,
            Event::Health(_) => 0x02_00_01,
            Event::NamespaceChanged => 0x04_00_02,
            Event::DiscoveryChanged => 0x70_f0_02,
        }
    }

    /// The bit of the features by which a host asks for it.
    fn wanted_by(self) -> u32 {
        match self {
            Event::Health(bit) => u32::from(bit),
            Event::NamespaceChanged => 1 << 8,
            Event::DiscoveryChanged => 1 << 31,
        }
    }

    /// Whether both are told of by one page: no second is sent before that page was read.
    fn same_page(self, other: Event) -> bool {
        self.encode() >> 16 == other.encode() >> 16
    }
}

/// A host's controller.
#[derive(Debug)]
pub struct Controller {
    /// Its number within the subsystem.
    pub id: u16,
    /// The host's name.
    pub host: String,
    /// The host's identifier.
    pub host_id: [u8; 16],
    /// The subsystem's name that it asked for.
    pub subsystem: String,
    /// Where the host reached us.
    pub at: String,
    /// The snapshot or clone that it shows.
    pub snapshot: Option<u64>,
    /// How often it was reset.
    pub resets: u32,
    configuration: u32,
    status: u32,
    features: Features,
    /// Identifiers of requests to be told of events.
    requests: VecDeque<u16>,
    events: VecDeque<Event>,
    /// Sent, and their page was not read since.
    told: Vec<Event>,
    /// Warnings of the health log when it was looked at last.
    warnings: u8,
    errors: VecDeque<Failure>,
    failures: u64,
    changed: bool,
    /// When the host was heard last, milliseconds.
    heard_ms: u64,
}

impl Controller {
    /// For a host that has connected its admin queue.
    pub fn new(id: u16, connect: &Connect, now_ms: u64) -> Controller {
        Controller {
            id,
            host: connect.host.clone(),
            host_id: connect.host_id,
            subsystem: connect.subsystem.clone(),
            at: String::new(),
            snapshot: None,
            resets: 0,
            configuration: 0,
            status: 0,
            features: Features::new(connect.keep_alive_ms),
            requests: VecDeque::new(),
            events: VecDeque::new(),
            told: Vec::new(),
            warnings: 0,
            errors: VecDeque::new(),
            failures: 0,
            changed: false,
            heard_ms: now_ms,
        }
    }

    /// Whether it takes I/O.
    pub fn is_ready(&self) -> bool {
        self.status & status::READY != 0
    }

    /// Whether its host wants written data to be durable when they are answered: it switched the cache off.
    #[inline]
    pub fn writes_through(&self) -> bool {
        !self.features.write_cache
    }

    /// Its host was heard.
    #[inline]
    pub fn heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    /// Whether its host was silent for too long. Any command counts (keep alive by traffic), and a command may be just behind
    /// the last look: hence twice the time.
    pub fn is_silent(&self, now_ms: u64) -> bool {
        let timeout = u64::from(self.features.keep_alive_ms);
        timeout > 0 && now_ms.saturating_sub(self.heard_ms) > 2 * timeout
    }

    /// A command failed.
    pub fn note_failure(&mut self, queue: u16, cid: u16, status: Status, lba: u64) {
        self.failures += 1;
        if self.errors.len() == usize::from(ERROR_ENTRIES) {
            self.errors.pop_back();
        }
        self.errors.push_front(Failure { number: self.failures, queue, cid, status, lba });
    }

    /// Looks whether warnings came up since the last look.
    pub fn look_at_health(&mut self, warnings: u8) {
        let fresh = warnings & !self.warnings;
        self.warnings = warnings;
        (0..8).map(|bit| 1 << bit).filter(|bit| fresh & bit != 0).for_each(|bit| self.raise(Event::Health(bit)));
    }

    /// Something happened.
    pub fn raise(&mut self, event: Event) {
        self.changed |= event == Event::NamespaceChanged;
        let known = self.events.iter().chain(&self.told).any(|other| event.same_page(*other));
        if self.features.events & event.wanted_by() != 0 && !known {
            self.events.push_back(event);
        }
    }

    /// The answer to a request to be told of events, if there is one of each.
    pub fn next_event(&mut self) -> Option<Cqe> {
        if self.events.is_empty() || self.requests.is_empty() {
            return None;
        }
        let (event, cid) = (self.events.pop_front()?, self.requests.pop_front()?);
        self.told.push(event);
        Some(Cqe { result: event.encode(), ..Cqe::new(cid, Status::SUCCESS) })
    }

    /// What was to be made durable before the host switches off is durable.
    pub fn shut_down(&mut self) {
        self.status = self.status & !status::SHUTDOWN_MASK | status::SHUTDOWN_DONE;
    }

    /// The same where nothing is to be made durable.
    pub fn shut_down_if_asked(&mut self) {
        if self.status & status::SHUTDOWN_MASK == status::SHUTDOWN_OCCURS {
            self.shut_down();
        }
    }

    /// Carries out a command of the admin queue, with the data in its capsule.
    pub fn admin(&mut self, (entry, data): (&Sqe, &[u8]), subsystem: &str, mut behind: Behind<'_>) -> Outcome {
        let outcome = self.carry_out((entry, data), subsystem, &mut behind).unwrap_or_else(|status| {
            self.note_failure(0, entry.cid(), status, 0);
            answered(Cqe::new(entry.cid(), status))
        });
        debug_assert!(outcome.data.is_empty() || outcome.answer.is_some());
        outcome
    }

    fn carry_out(
        &mut self,
        (entry, data): (&Sqe, &[u8]),
        subsystem: &str,
        behind: &mut Behind<'_>,
    ) -> Result<Outcome, Status> {
        let cid = entry.cid();
        let who = Identity { controller: self.id, subsystem };
        let opcode = entry.opcode();
        if opcode == admin::FABRICS {
            let zoned = matches!(behind, Behind::Device(subject, _) if subject.namespace().zones.is_some());
            return self.fabrics(entry, zoned);
        }
        // Until it is enabled, only properties are there.
        if !self.is_ready() {
            return Err(Status::SEQUENCE_ERROR);
        }
        match opcode {
            admin::KEEP_ALIVE => Ok(answered(Cqe::new(cid, Status::SUCCESS))),
            admin::IDENTIFY => {
                let page = match behind {
                    Behind::Device(subject, _) => identify(entry, who, &subject.namespace())?,
                    Behind::Directory(directory) => identify_discovery(entry, who, &directory.firmware)?,
                };
                fits(entry, page.len())?;
                Ok(with_data(cid, page.to_vec()))
            }
            admin::GET_LOG_PAGE => {
                let wanted = Wanted::decode(entry)?;
                fits(entry, wanted.len as usize)?;
                let part = self.log_page(&wanted, behind)?;
                Ok(with_data(cid, part))
            }
            admin::GET_FEATURES => {
                let placed = match behind {
                    Behind::Device(subject, events) => placement::value(entry, &subject.namespace(), events),
                    Behind::Directory(_) => None,
                };
                let answer = placed.unwrap_or_else(|| self.features.get(entry).map_err(Unsupported::status))?;
                fits(entry, answer.data.len())?;
                let mut outcome = with_data(cid, answer.data);
                if let Some(answered) = &mut outcome.answer {
                    answered.result = u64::from(answer.result);
                }
                Ok(outcome)
            }
            admin::SET_FEATURES => {
                let placed = match behind {
                    Behind::Device(subject, events) => placement::set((entry, data), &subject.namespace(), events),
                    Behind::Directory(_) => None,
                };
                let result = placed.unwrap_or_else(|| self.features.set(entry).map_err(Unsupported::status))?;
                Ok(answered(Cqe { result: u64::from(result), ..Cqe::new(cid, Status::SUCCESS) }))
            }
            admin::ASYNC_EVENT_REQUEST => {
                if self.requests.len() >= usize::from(EVENT_REQUESTS) {
                    return Err(Status::EVENT_LIMIT);
                }
                self.requests.push_back(cid);
                Ok(Outcome { answer: None, data: Vec::new(), then: Then::Nothing })
            }
            admin::ABORT => self.abort(entry),
            admin::DIRECTIVE_RECEIVE => {
                let Behind::Device(subject, _) = behind else { return Err(Status::INVALID_OPCODE) };
                let mut page = placement::directives(entry, &subject.namespace())?;
                page.truncate(4 * (entry.dword(10) as usize).saturating_add(1).min(page.len() / 4));
                fits(entry, page.len())?;
                Ok(with_data(cid, page))
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn abort(&mut self, entry: &Sqe) -> Result<Outcome, Status> {
        let (queue, aborted) = ((entry.dword(10) & 0xffff) as u16, (entry.dword(10) >> 16) as u16);
        // Bit 0 of the result: not aborted. What the device has, or is about to have, goes its way, as the specification allows:
        // only requests for events wait for long.
        let found = queue == 0 && self.requests.contains(&aborted);
        if found {
            self.requests.retain(|cid| *cid != aborted);
        }
        let answer = Cqe { result: u64::from(!found), ..Cqe::new(entry.cid(), Status::SUCCESS) };
        let then = if found { Then::Abort(aborted) } else { Then::Nothing };
        Ok(Outcome { answer: Some(answer), data: Vec::new(), then })
    }

    fn fabrics(&mut self, entry: &Sqe, zoned: bool) -> Result<Outcome, Status> {
        let (cid, wide, offset) = (entry.cid(), entry.dword(10) & 7 == 1, entry.dword(11));
        let value = |result: u64| Ok(answered(Cqe { result, ..Cqe::new(cid, Status::SUCCESS) }));
        match (entry.function(), offset, wide) {
            (fabrics::PROPERTY_GET, property::CAP, true) => value(property::capabilities(zoned)),
            (fabrics::PROPERTY_GET, property::VS, false) => value(u64::from(property::VERSION)),
            (fabrics::PROPERTY_GET, property::CC, false) => value(u64::from(self.configuration)),
            (fabrics::PROPERTY_GET, property::CSTS, false) => value(u64::from(self.status)),
            (fabrics::PROPERTY_SET, property::CC, false) => {
                let then = self.configure(entry.dword(12), zoned);
                Ok(Outcome { then, ..answered(Cqe::new(cid, Status::SUCCESS)) })
            }
            (fabrics::PROPERTY_GET | fabrics::PROPERTY_SET, ..) => Err(Status::INVALID_FIELD),
            // A second Connect on a queue, or an authentication that nobody asked for.
            (fabrics::CONNECT | fabrics::AUTHENTICATION_SEND | fabrics::AUTHENTICATION_RECEIVE, ..) => {
                Err(Status::SEQUENCE_ERROR)
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn configure(&mut self, wanted: u32, zoned: bool) -> Then {
        let before = std::mem::replace(&mut self.configuration, wanted);
        let enabled = |configuration: u32| configuration & configuration::ENABLE != 0;
        let shutdown = |configuration: u32| configuration & configuration::SHUTDOWN_MASK != 0;
        if enabled(wanted) && !enabled(before) {
            let sets = wanted & configuration::COMMAND_SET_MASK;
            let known = sets == 0 || zoned && sets == configuration::ALL_COMMAND_SETS;
            // What we do not have stays not ready, and says so.
            let sound = known && wanted & configuration::PAGE_SIZE_MASK == 0;
            self.status = if sound { status::READY } else { status::FATAL };
        }
        if shutdown(wanted) && !shutdown(before) {
            self.status = self.status & !status::SHUTDOWN_MASK | status::SHUTDOWN_OCCURS;
            return Then::Flush;
        }
        if !enabled(wanted) && enabled(before) {
            self.status = 0;
            self.resets = self.resets.wrapping_add(1);
            self.requests.clear();
            self.events.clear();
            self.told.clear();
            self.features = Features::new(self.features.keep_alive_ms);
            return Then::CloseQueues;
        }
        Then::Nothing
    }

    fn log_page(&mut self, wanted: &Wanted, behind: &Behind<'_>) -> Result<Vec<u8>, Status> {
        let part = match (wanted.page, behind) {
            (page::ERRORS, _) => {
                let mut log: Vec<u8> = self.errors.iter().flat_map(|failure| failure.encode()).collect();
                log.resize(usize::from(ERROR_ENTRIES) * log::ERROR_BYTES, 0);
                wanted.cut(&log, LOG_PART)?
            }
            (page::DISCOVERY, Behind::Directory(directory)) => wanted.cut(&directory.page(), LOG_PART)?,
            (_, Behind::Directory(_)) => return Err(Status::INVALID_LOG_PAGE),
            (page::HEALTH, Behind::Device(subject, _)) => {
                wanted.cut(&log::health(&subject.health(), self.failures), LOG_PART)?
            }
            (page::FIRMWARE, Behind::Device(subject, _)) => {
                wanted.cut(&log::firmware(&subject.namespace()), LOG_PART)?
            }
            (page::CHANGED_NAMESPACES, Behind::Device(..)) => {
                let mut list = vec![0; 4096];
                list[0] = u8::from(std::mem::take(&mut self.changed));
                wanted.cut(&list, LOG_PART)?
            }
            (page::EFFECTS, Behind::Device(..)) => wanted.cut(&log::effects(wanted.command_set), LOG_PART)?,
            (page::ENDURANCE, Behind::Device(subject, _)) => {
                wanted.cut(&log::endurance(wanted.subject, &subject.health(), self.failures)?, LOG_PART)?
            }
            (page::WEAR, Behind::Device(subject, _)) => wanted.cut(&log::wear(&subject.wear()), LOG_PART)?,
            (_, Behind::Device(subject, events)) => {
                let figures = (&subject.health(), &subject.wear());
                let log = placement::log(wanted, &subject.namespace(), figures, events)?;
                wanted.cut(&log.ok_or(Status::INVALID_LOG_PAGE)?, LOG_PART)?
            }
        };
        if wanted.clears_event {
            self.told.retain(|event| event.encode() >> 16 != u64::from(wanted.page));
        }
        Ok(part)
    }
}

/// Whether the host has room for so many bytes.
fn fits(entry: &Sqe, bytes: usize) -> Result<(), Status> {
    if (entry.data()?.len() as usize) < bytes { Err(Status::SGL_LENGTH_INVALID) } else { Ok(()) }
}

fn answered(answer: Cqe) -> Outcome {
    Outcome { answer: Some(answer), data: Vec::new(), then: Then::Nothing }
}

fn with_data(cid: u16, data: Vec<u8>) -> Outcome {
    Outcome { data, ..answered(Cqe::new(cid, Status::SUCCESS)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Data;
    use crate::identify::tests::namespace;
    use crate::namespace::{Health, Namespace, Wear};

    struct Device(Health);

    impl Subject for Device {
        fn namespace(&self) -> Namespace {
            namespace()
        }

        fn health(&self) -> Health {
            self.0
        }

        fn wear(&self) -> Wear {
            Wear::default()
        }
    }

    const DEVICE: Device = Device(Health {
        warnings: 0,
        kelvin: 300,
        spare_percent: 100,
        spare_threshold: 10,
        used_percent: 3,
        read_bytes: 0,
        written_bytes: 0,
        media_written_bytes: 0,
        reads: 0,
        writes: 0,
        power_cycles: 1,
        power_on_hours: 0,
        unsafe_shutdowns: 0,
        media_errors: 0,
    });

    fn connect() -> Connect {
        Connect {
            queue: 0,
            entries: 32,
            attributes: 0,
            keep_alive_ms: 5000,
            host_id: [1; 16],
            controller: crate::fabrics::ANY_CONTROLLER,
            subsystem: "nqn.s".into(),
            host: "nqn.h".into(),
        }
    }

    fn ask(controller: &mut Controller, entry: Sqe) -> Outcome {
        controller.admin((&entry, &[]), "nqn.s", Behind::Device(&DEVICE, &mut Events::default()))
    }

    fn set(controller: &mut Controller, value: u32) -> Then {
        let entry = Sqe::fabrics(fabrics::PROPERTY_SET, 1).with(11, property::CC).with(12, value);
        ask(controller, entry).then
    }

    fn get(controller: &mut Controller, offset: u32) -> u64 {
        ask(controller, Sqe::fabrics(fabrics::PROPERTY_GET, 1).with(11, offset)).answer.expect("at once").result
    }

    fn enabled() -> Controller {
        let mut controller = Controller::new(1, &connect(), 0);
        assert_eq!(set(&mut controller, configuration::ENABLE | configuration::ENTRY_SIZES), Then::Nothing);
        controller
    }

    fn status_of(outcome: &Outcome) -> Status {
        outcome.answer.expect("at once").status
    }

    #[test]
    fn it_is_ready_once_enabled_and_flushes_before_it_is_shut_down() {
        let mut controller = Controller::new(1, &connect(), 0);
        let identify = Sqe::new(admin::IDENTIFY, 1, 0).with(10, 1).with_data(Data::Transport(4096));
        assert_eq!(status_of(&ask(&mut controller, identify)), Status::SEQUENCE_ERROR);
        assert_eq!(get(&mut controller, property::CSTS), 0);
        let mut controller = enabled();
        assert_eq!(get(&mut controller, property::CSTS), 1);
        assert_eq!(ask(&mut controller, identify).data.len(), 4096);
        let on = configuration::ENABLE | configuration::SHUTDOWN_NORMAL;
        assert_eq!(set(&mut controller, on), Then::Flush);
        assert_eq!(get(&mut controller, property::CSTS), 0b0101);
        controller.shut_down();
        assert_eq!(get(&mut controller, property::CSTS), 0b1001);
        assert_eq!(set(&mut controller, 0), Then::CloseQueues);
        assert_eq!(get(&mut controller, property::CSTS), 0);
    }

    #[test]
    fn a_command_set_that_it_lacks_is_fatal() {
        let mut controller = Controller::new(1, &connect(), 0);
        set(&mut controller, configuration::ENABLE | 6 << 4);
        assert_eq!(get(&mut controller, property::CSTS), u64::from(status::FATAL));
    }

    #[test]
    fn a_warning_is_told_once_until_its_page_is_read() {
        let mut controller = enabled();
        let request = |cid| Sqe::new(admin::ASYNC_EVENT_REQUEST, cid, 0);
        assert_eq!(ask(&mut controller, request(7)).answer, None);
        controller.look_at_health(warning::DEGRADED);
        assert_eq!(controller.next_event().map(|told| (told.cid, told.result)), Some((7, 0x02_00_01)));
        ask(&mut controller, request(8));
        controller.look_at_health(warning::DEGRADED | warning::SPARE);
        assert_eq!(controller.next_event(), None, "the page was not read yet");
        let read = Sqe::new(admin::GET_LOG_PAGE, 9, 0).with(10, 2 | 127 << 16).with_data(Data::Transport(512));
        assert_eq!(ask(&mut controller, read).data.len(), 512);
        controller.look_at_health(0);
        controller.look_at_health(warning::SPARE);
        assert_eq!(controller.next_event().map(|told| told.cid), Some(8));
        for cid in 0..u16::from(EVENT_REQUESTS) {
            assert_eq!(ask(&mut controller, request(cid)).answer, None);
        }
        assert_eq!(status_of(&ask(&mut controller, request(99))), Status::EVENT_LIMIT);
        assert_eq!(
            ask(&mut controller, Sqe::new(admin::ABORT, 10, 0).with(10, 2 << 16)).answer.map(|a| a.result),
            Some(0)
        );
        assert_eq!(ask(&mut controller, request(99)).answer, None);
    }

    #[test]
    fn a_host_that_is_silent_for_too_long_is_gone() {
        let mut controller = enabled();
        controller.heard(1000);
        assert!(!controller.is_silent(11_000));
        assert!(controller.is_silent(11_001));
    }

    #[test]
    fn failures_stand_in_the_error_log_the_newest_first() {
        let mut controller = enabled();
        assert_eq!(status_of(&ask(&mut controller, Sqe::new(0xc5, 3, 0))), Status::INVALID_OPCODE);
        controller.note_failure(2, 4, Status::READ_ERROR, 77);
        let read = Sqe::new(admin::GET_LOG_PAGE, 9, 0).with(10, 1 | 31 << 16).with_data(Data::Transport(128));
        let log = ask(&mut controller, read).data;
        assert_eq!((log[0], log[8], log[10], log[16]), (2, 2, 4, 77));
        assert_eq!((log[64], log[64 + 10]), (1, 3));
        let small = read.with_data(Data::Transport(64));
        assert_eq!(status_of(&ask(&mut controller, small)), Status::SGL_LENGTH_INVALID);
    }
}
