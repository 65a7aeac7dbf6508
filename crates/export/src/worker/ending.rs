//! How a device thread ends: a detach that was asked for, a power cut, or a ring that failed.

use std::io;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use device::IoError;

use super::{RETRY, Worker};
use crate::handle::DetachError;
use crate::jobs::Core;
use crate::recording::Recording;

/// How long clients may take to read their last answers when they are closed by force.
const GRACE: Duration = Duration::from_secs(2);

type DetachAnswer = SyncSender<Result<(), DetachError>>;

/// A detach under way.
pub(super) struct Detaching {
    answer: Option<DetachAnswer>,
    deadline: Instant,
}

impl Detaching {
    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(RETRY)
    }
}

impl Worker {
    pub(crate) fn detach(&mut self, force: bool, answer: DetachAnswer) {
        let name = self.name.clone();
        let refusal = if self.detaching.is_some() {
            Some(DetachError::Underway { name })
        } else if force {
            None
        } else {
            self.seats.close_if_free().err().map(|clients| DetachError::Clients { name, clients })
        };
        match refusal {
            // An asker that went away needs no answer.
            Some(error) => drop(answer.send(Err(error))),
            None => self.begin_detach(Some(answer)),
        }
    }

    pub(super) fn begin_detach(&mut self, answer: Option<DetachAnswer>) {
        self.seats.close();
        self.detaching = Some(Detaching { answer, deadline: Instant::now() + GRACE });
        let keys: Vec<usize> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.drain();
            }
            self.make_ready(key);
        }
    }

    /// Whether a detach has nothing left to wait for.
    pub(super) fn detached(&mut self) -> bool {
        let Some(detaching) = &self.detaching else { return false };
        if Instant::now() >= detaching.deadline {
            let keys: Vec<usize> = self.connections.iter().map(|(key, _)| key).collect();
            for key in keys {
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.break_off("did not read its answers before the detach");
                }
                self.settle(key);
            }
        }
        self.connections.is_empty() && self.core.jobs.is_empty() && self.flushes.is_empty()
    }

    /// The end of a detach, or of a thread whose ring failed.
    pub(super) fn close(mut self, failure: Option<io::Error>) {
        self.seats.close();
        if let Some(error) = failure {
            tracing::error!(device = %self.name, %error, "the ring failed");
            self.break_off_all("the device's thread failed");
        }
        let Worker { name, core: Core { device, recording, .. }, connections, detaching, .. } = self;
        let result = device.detach();
        match &result {
            Ok(()) => tracing::info!(device = %name, "detached"),
            Err(error) => tracing::error!(device = %name, %error, "detached without a checkpoint"),
        }
        drop(connections);
        end_recording(&name, recording);
        if let Some(answer) = detaching.and_then(|detaching| detaching.answer) {
            // An asker that went away needs no answer.
            let _ = answer.send(result.map_err(|error| DetachError::Io { name, error }));
        }
    }

    /// A drill cut the power: every client loses its connection, and what is in memory is gone.
    pub(super) fn power_off(mut self) {
        self.seats.close();
        let cut = self.core.device.power_cut().cloned();
        self.break_off_all("the power is cut");
        let recording = self.core.recording.take();
        let Worker { name, core, connections, detaching, on_power_cut, .. } = self;
        // Not detached: the next attach finds what lies on the medium.
        drop(core);
        drop(connections);
        end_recording(&name, recording);
        if let Some(cut) = cut {
            tracing::warn!(device = %name, "the power is cut; {cut}");
            if let Some(call) = on_power_cut {
                call(cut);
            }
        }
        if let Some(answer) = detaching.and_then(|detaching| detaching.answer) {
            // An asker that went away needs no answer.
            let _ = answer.send(Err(DetachError::Io { name, error: IoError::Media }));
        }
    }

    fn break_off_all(&mut self, why: &str) {
        for (_, connection) in &mut self.connections {
            connection.break_off(why);
        }
    }
}

/// Everything that was recorded is in its file when whoever waits for the device's end is answered.
fn end_recording(name: &str, recording: Option<Recording>) {
    let Some(recording) = recording else { return };
    let path = recording.status().path;
    match recording.stop() {
        Ok(status) => {
            let (written, dropped) = (status.written, status.dropped);
            tracing::info!(device = %name, path = %path.display(), written, dropped, "recorded until the device went");
        }
        Err(error) => tracing::error!(device = %name, %error, "the recording was cut off"),
    }
}
