//! Once a second: asks every device what it did, keeps the history, looks at the alert rules, sees to the schedules of snapshots, and tells whoever
//! reads the live stream.
//!
//! A thread of its own, since devices and the history may keep it waiting. No request of a client waits for it: a device's thread
//! answers it between two rounds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use device::State;
use export::Look;
use telemetry::{History, Previous, Second, SeriesKey, Values};

use crate::Failure;
use crate::alerts::Alerting;
use crate::api::{DeviceEvent, DeviceSample, Sample};
use crate::clock::now_ms;
use crate::monitor::process::Process;
use crate::monitor::{Data, Monitor};
use crate::registry::Registry;
use crate::registry::observe::Seen;

/// How long devices may take to answer, all together. One that takes longer answers for two seconds at once.
const PATIENCE: Duration = Duration::from_millis(400);

/// What is remembered of a device from second to second.
#[derive(Default)]
struct Known {
    previous: Option<Previous>,
    /// Asked and not answered yet.
    asked: Option<Receiver<Look>>,
    /// The next event's number, and of which attach.
    next_event: (u64, u64),
    series: Option<SeriesKey>,
}

/// Starts the thread. It ends when `stop` is set.
///
/// # Errors
/// The operating system has no thread for us.
pub fn start(
    monitor: Arc<Monitor>,
    registry: Arc<Registry>,
    alerting: Arc<Alerting>,
    stop: Arc<AtomicBool>,
) -> Result<JoinHandle<()>, Failure> {
    let history = History::open(&monitor.history_file)?;
    std::thread::Builder::new()
        .name("monitor".into())
        .spawn(move || {
            let mut ticker = Ticker::new(monitor, registry, alerting, history);
            while !stop.load(Ordering::Relaxed) {
                // Right behind each full second.
                std::thread::sleep(Duration::from_millis(1000 - now_ms() % 1000));
                ticker.tick();
            }
            ticker.end();
        })
        .map_err(|error| Failure::failed(format!("the monitor cannot start: {error}")))
}

struct Ticker {
    monitor: Arc<Monitor>,
    registry: Arc<Registry>,
    alerting: Arc<Alerting>,
    history: History,
    process: Process,
    known: HashMap<String, Known>,
    at: u64,
    /// The last error of the history, which is logged once.
    trouble: Option<String>,
}

impl Ticker {
    fn new(monitor: Arc<Monitor>, registry: Arc<Registry>, alerting: Arc<Alerting>, history: History) -> Ticker {
        let process = Process::new();
        Ticker { monitor, registry, alerting, history, process, known: HashMap::new(), at: 0, trouble: None }
    }

    /// One second is over.
    fn tick(&mut self) {
        let now_ms = now_ms();
        self.registry.keep_schedules(now_ms / 1000);
        self.registry.look_for_stores(now_ms / 1000);
        let known = &self.known;
        let seen = self.registry.seen(|name, attach| match known.get(name) {
            Some(Known { next_event: (same, next), .. }) if *same == attach => *next,
            _ => 0,
        });
        self.forget(&seen);
        let deadline = Instant::now() + PATIENCE;
        for device in &seen {
            let known = self.known.entry(device.name.clone()).or_default();
            if known.asked.is_none() {
                known.asked = device.handle.as_ref().and_then(|handle| handle.observe().ok());
            }
        }
        let mut sample = Sample { at_ms: now_ms, ..Sample::default() };
        let mut rows = Vec::new();
        for device in &seen {
            let (shown, second) = self.look(device, deadline);
            self.alerting.look(&device.name, &shown.values, sample.at_ms, &self.monitor);
            if let (Some(second), Some(handle)) = (second, &device.handle) {
                let key = SeriesKey::device(&handle.facts().uuid);
                if let Some(known) = self.known.get_mut(&device.name) {
                    known.series = Some(key.clone());
                }
                rows.push((key, device.name.clone(), second));
            }
            sample.devices.insert(device.name.clone(), shown);
        }
        self.alerting.forget_others(|name| sample.devices.contains_key(name), sample.at_ms, &self.monitor);
        let mut service: Values = self.monitor.service_values();
        service.extend(self.process.look());
        sample.service = service.iter().map(|(name, value)| ((*name).to_string(), *value)).collect();
        rows.push((SeriesKey::service(), "service".into(), Second::of_service(service)));
        self.keep(now_ms / 1000, &rows);
        self.publish(Arc::new(sample), &seen);
    }

    /// What a device did in this second.
    fn look(&mut self, device: &Seen, deadline: Instant) -> (DeviceSample, Option<Second>) {
        let mut shown =
            DeviceSample { state: device.state.name().into(), health: device.health.clone(), values: BTreeMap::new() };
        let flag = |on: bool| f64::from(u8::from(on));
        let Some(handle) = &device.handle else {
            shown.values.insert("failed".into(), flag(device.state == State::Error));
            return (shown, None);
        };
        let Some(known) = self.known.get_mut(&device.name) else { return (shown, None) };
        let answer =
            known.asked.as_ref().map(|asked| asked.recv_timeout(deadline.saturating_duration_since(Instant::now())));
        let Look { observed, figures, status } = match answer {
            Some(Ok(answer)) => answer,
            Some(Err(RecvTimeoutError::Timeout)) => return (shown, None),
            Some(Err(RecvTimeoutError::Disconnected)) | None => {
                // It went just now.
                known.asked = None;
                return (shown, None);
            }
        };
        known.asked = None;
        self.registry.look(&device.name, device.attach, &figures, status.as_ref());
        let unclean = handle.facts().unclean;
        let second = Second::of_device(observed, &figures, unclean, &mut known.previous);
        shown.state = figures.state.name().into();
        shown.health = status.map_or_else(|| "healthy".into(), |status| status.health);
        shown.values = second.values.iter().map(|(name, value)| ((*name).to_string(), *value)).collect();
        (shown, Some(second))
    }

    /// Lets go of what is known of devices that are gone, or attached anew.
    fn forget(&mut self, seen: &[Seen]) {
        let history = &mut self.history;
        self.known.retain(|name, known| {
            let device = seen.iter().find(|device| device.name == *name);
            let uuid = device.and_then(|device| device.handle.as_ref()).map(|handle| handle.facts().uuid.as_str());
            if uuid.is_none() || known.series.as_ref().is_some_and(|key| Some(key.uuid.as_str()) != uuid) {
                known.previous = None;
                known.asked = None;
                if let Some(key) = known.series.take()
                    && let Err(error) = history.end(&key)
                {
                    tracing::warn!("the history: {error}");
                }
            }
            device.is_some()
        });
    }

    fn keep(&mut self, now: u64, rows: &[(SeriesKey, String, Second)]) {
        let at = second_that_is_over(now, self.at);
        self.at = at;
        match (self.history.add(at, rows), &self.trouble) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => {
                tracing::info!("the history is written again");
                self.trouble = None;
            }
            (Err(error), trouble) => {
                let words = error.to_string();
                if trouble.as_ref() != Some(&words) {
                    tracing::error!("the history: {words}");
                }
                self.trouble = Some(words);
            }
        }
    }

    fn publish(&mut self, sample: Arc<Sample>, seen: &[Seen]) {
        self.monitor.set_latest(Arc::clone(&sample));
        self.monitor.send("sample", Data::Sample(sample));
        for device in seen {
            let Some(known) = self.known.get_mut(&device.name) else { continue };
            for event in &device.events {
                known.next_event = (device.attach, event.number + 1);
                self.monitor.tell("event", &DeviceEvent { device: device.name.clone(), event: event.clone() });
            }
        }
    }

    /// The service stops.
    fn end(self) {
        if let Err(error) = self.history.close() {
            tracing::warn!("the history: {error}");
        }
    }
}

/// Which second is over, after `last` was; none twice, even where the clock was set back a little.
fn second_that_is_over(now: u64, last: u64) -> u64 {
    let at = now.saturating_sub(1);
    if at <= last && at + 5 > last { last + 1 } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_comes_twice() {
        assert_eq!(second_that_is_over(100, 0), 99);
        assert_eq!(second_that_is_over(101, 99), 100);
        // The clock was set back a little, or two ticks fell into one second.
        assert_eq!(second_that_is_over(101, 100), 101);
        assert_eq!(second_that_is_over(98, 100), 101);
        // An hour back: that hour comes again, and what is kept of it is replaced.
        assert_eq!(second_that_is_over(1_000, 4_600), 999);
        assert_eq!(second_that_is_over(0, 0), 1);
    }
}
