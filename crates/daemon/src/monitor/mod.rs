//! What is measured: the last second, the history, and the live stream, for whoever asks. The ticker fills it.

pub mod process;
mod refusals;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use telemetry::History;
use tokio::sync::broadcast;

use crate::Failure;
use crate::api::Sample;
use refusals::Refusals;

/// Messages that a slow reader of the stream may be behind before it misses some.
const BEHIND: usize = 256;
/// Readers of the stream that one account may have at once: so many pages of the console.
pub const STREAMS: u64 = 32;

/// Something for the live stream.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its event's name.
    pub event: &'static str,
    /// Its data as JSON; for samples the sample itself, since a reader may want some devices only.
    pub data: Data,
}

/// A message's data.
#[derive(Clone, Debug)]
pub enum Data {
    /// One second.
    Sample(Arc<Sample>),
    /// Anything else, as JSON.
    Json(Arc<str>),
}

/// What the monitor knows, for those who ask.
pub struct Monitor {
    latest: RwLock<Arc<Sample>>,
    /// For questions; the monitor's thread has a connection of its own.
    history: Mutex<History>,
    pub history_file: std::path::PathBuf,
    messages: broadcast::Sender<Message>,
    /// Readers of the stream by their account.
    streams: Mutex<BTreeMap<String, u64>>,
    requests: AtomicU64,
    refusals: Refusals,
}

impl Monitor {
    /// With the history in a file. One that is damaged is put aside.
    ///
    /// # Errors
    /// It can be neither opened nor made.
    pub fn open(history_file: &Path) -> Result<Monitor, Failure> {
        let failed = |error: telemetry::Error| {
            Failure::failed(format!("the history: {error}"))
                .help("see that it is the service's own file and that its disk has room")
        };
        let history = match History::open(history_file) {
            Ok(history) => history,
            // What cannot be opened for another reason is whole, and stays where it is.
            Err(error) if !error.damaged => return Err(failed(error)),
            Err(error) => {
                let aside = history_file.with_extension("damaged.db");
                tracing::error!("the history: {error}; it goes to {} and a new one begins", aside.display());
                std::fs::rename(history_file, &aside).map_err(|error| Failure::io(history_file, &error))?;
                for end in ["-wal", "-shm"] {
                    let mut beside = history_file.as_os_str().to_owned();
                    beside.push(end);
                    // Only what a crash left; where there is none, that is as well.
                    let _ = std::fs::remove_file(beside);
                }
                History::open(history_file).map_err(failed)?
            }
        };
        let (messages, _) = broadcast::channel(BEHIND);
        Ok(Monitor {
            latest: RwLock::default(),
            history: Mutex::new(history),
            history_file: history_file.into(),
            messages,
            streams: Mutex::default(),
            requests: AtomicU64::new(0),
            refusals: Refusals::default(),
        })
    }

    /// The last second.
    pub fn latest(&self) -> Arc<Sample> {
        Arc::clone(&self.latest.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_latest(&self, sample: Arc<Sample>) {
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = sample;
    }

    /// The history, for a question. Only where waiting is allowed.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever reads the stream.
    pub fn tell(&self, event: &'static str, data: &impl serde::Serialize) {
        if self.messages.receiver_count() == 0 {
            return;
        }
        match serde_json::to_string(data) {
            Ok(text) => self.send(event, Data::Json(text.into())),
            Err(error) => tracing::error!("the stream's {event}: {error}"),
        }
    }

    pub fn send(&self, event: &'static str, data: Data) {
        // Nobody reads: nothing is lost.
        let _ = self.messages.send(Message { event, data });
    }

    /// Reads the stream from now on for an account; nothing where it reads too many already.
    pub fn subscribe(self: &Arc<Monitor>, account: &str) -> Option<Subscription> {
        let mut streams = self.streams();
        let count = streams.entry(account.into()).or_default();
        if *count >= STREAMS {
            return None;
        }
        *count += 1;
        let (monitor, messages) = (Arc::clone(self), self.messages.subscribe());
        Some(Subscription { monitor, messages, account: account.into() })
    }

    fn streams(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        // Whole between any two statements.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more request to the API.
    pub fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// One more request that would have changed something, of nobody who has signed in, was refused.
    pub fn count_refused(&self) {
        self.refusals.note();
    }

    pub fn service_values(&self) -> BTreeMap<&'static str, f64> {
        [
            ("streams", self.streams().values().sum::<u64>() as f64),
            ("requests", self.requests.swap(0, Ordering::Relaxed) as f64),
            ("refused", self.refusals.take() as f64),
        ]
        .into()
    }
}

/// A reader of the stream.
pub struct Subscription {
    monitor: Arc<Monitor>,
    messages: broadcast::Receiver<Message>,
    account: String,
}

impl Subscription {
    /// The next message. Those that it was too slow for are left out. Nothing once the service stops.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match self.messages.recv().await {
                Ok(message) => return Some(message),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut streams = self.monitor.streams();
        if let Some(count) = streams.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_damaged_history_is_put_aside() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("history.db");
        std::fs::create_dir(&path).expect("made");
        let failure = Monitor::open(&path).err().expect("a directory is no history");
        assert!(failure.error.contains("history.db"), "{failure}");
        assert!(path.is_dir() && !directory.path().join("history.damaged.db").exists(), "it was put aside");
        std::fs::remove_dir(&path).expect("removed");
        std::fs::write(&path, "no database at all, only a text that is long enough".repeat(40)).expect("written");
        assert!(Monitor::open(&path).is_ok());
        assert!(directory.path().join("history.damaged.db").exists(), "what was there is gone");
    }
}
