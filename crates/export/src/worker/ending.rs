//! How a device thread ends: a detach that was asked for, a power cut, or a ring that failed.

use std::io;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use device::IoError;
use media::ring::{Owner, SharedRing};
use slab::Slab;

use super::{KIND_BITS, RECEIVED, RETRY, WRITABLE, Worker};
use crate::connection::Connection;
use crate::handle::DetachError;
use crate::jobs::Core;
use crate::recording::Recording;

/// How long clients may take to read their last answers when they are closed by force, and the kernel to let go of their buffers.
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

    pub(crate) fn begin_detach(&mut self, answer: Option<DetachAnswer>) {
        self.seats.close();
        // Whoever has it goes on without it, or not.
        self.claims.clear();
        if let Some(device) = self.core.device.device() {
            device.wait_for_no_lease();
        }
        self.detaching = Some(Detaching { answer, deadline: Instant::now() + GRACE });
        let keys: Vec<usize> = self.connections.iter().map(|(key, _)| key).collect();
        for key in keys {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.link.drain();
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
                    connection.link.break_off("did not read its answers before the detach");
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
        let Worker { name, core: Core { device, recording, .. }, connections, ring, owner, detaching, .. } = self;
        let result = device.detach();
        match &result {
            Ok(()) => tracing::info!(device = %name, "detached"),
            Err(error) => tracing::error!(device = %name, %error, "detached without a checkpoint"),
        }
        let_go(&name, &ring, owner, connections);
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
        let Worker { name, core, connections, ring, owner, detaching, on_power_cut, .. } = self;
        // Not detached: the next attach finds what lies on the medium.
        drop(core);
        let_go(&name, &ring, owner, connections);
        if let Some(cut) = &cut {
            tracing::warn!(device = %name, "the power is cut; {cut}");
        }
        match on_power_cut.zip(cut) {
            Some((call, cut)) => call(cut, recording),
            None => end_recording(&name, recording),
        }
        if let Some(answer) = detaching.and_then(|detaching| detaching.answer) {
            // An asker that went away needs no answer.
            let _ = answer.send(Err(DetachError::Io { name, error: IoError::Media }));
        }
    }

    fn break_off_all(&mut self, why: &str) {
        for (_, connection) in &mut self.connections {
            connection.link.break_off(why);
        }
    }
}

/// Forgets clients that were broken off, once the kernel has let go of their buffers: their memory would be lost otherwise.
/// Nobody else must have anything to take from the ring: it does not wait while there is.
fn let_go(name: &str, ring: &SharedRing, owner: Owner, mut connections: Slab<Connection>) {
    let deadline = Instant::now() + GRACE;
    while connections.iter().any(|(_, connection)| connection.link.receiving || connection.link.polling) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || ring.borrow_mut().wait(Some(left)).is_err() {
            tracing::warn!(device = %name, "the kernel did not let go of clients' buffers in time; their memory is lost");
            return;
        }
        loop {
            let Some(completion) = ring.borrow_mut().next(owner) else { break };
            let Some(connection) = connections.get_mut((completion.token >> KIND_BITS) as usize) else { continue };
            match completion.token & ((1 << KIND_BITS) - 1) {
                RECEIVED => connection.link.received(completion.result),
                WRITABLE => connection.link.polling = false,
                _ => {}
            }
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::worker::tests::worker_with;

    /// The turn to read is not kept for a client that was disconnected while it waited for it.
    #[test]
    fn a_client_that_is_disconnected_gives_its_turn_to_read_up() {
        let (mut worker, mut clients, _sender) = worker_with(2);
        // As many reads as the device has at once are under way.
        worker.core.reading.began(64 << 20);
        let mut request = vec![0x25, 0x60, 0x95, 0x13];
        request.resize(28, 0);
        request[26] = 0x10;
        clients[0].write_all(&request).expect("the server takes it");
        while worker.core.reading.may_begin(1, 0) {
            worker.round().expect("a round");
        }
        worker.disconnect(0);
        worker.round().expect("a round");
        assert!(worker.core.reading.may_begin(1, 0), "nobody is before the other one");
    }

    #[test]
    fn the_kernel_lets_go_of_idle_clients_before_they_are_forgotten() {
        let (mut worker, clients, sender) = worker_with(5);
        // The bell is for the receives to be armed: with nothing to do the round would wait for something.
        sender.send(Box::new(|_| ())).expect("the worker is there");
        worker.round().expect("a round");
        let receiving = |worker: &Worker| worker.connections.iter().filter(|(_, one)| one.link.receiving).count();
        assert_eq!(receiving(&worker), clients.len(), "every client is waited for");

        worker.break_off_all("the power is cut");
        let Worker { core, connections, ring, owner, .. } = worker;
        drop(core);
        let before = ring.borrow().under_way(owner) as usize;
        let_go("test", &ring, owner, connections);
        let after = ring.borrow().under_way(owner) as usize;
        assert_eq!(after + clients.len(), before, "no receive is left with the kernel");
    }
}
