//! Another size of a device, on its thread: clients learn of it as far as their protocols can.

use std::sync::atomic::Ordering;

use ::nvme::controller::Event;

use super::Worker;
use super::hosts::queues;

impl Worker {
    /// Tells clients, where the device has another host capacity than they know of.
    #[inline]
    pub(super) fn look_at_size(&mut self) {
        let bytes = self.core.device.info().bytes();
        if bytes != self.told_bytes.load(Ordering::Relaxed) {
            self.size_changed(bytes);
        }
    }

    #[cold]
    fn size_changed(&mut self, bytes: u64) {
        self.told_bytes.store(bytes, Ordering::Relaxed);
        self.connections.iter_mut().for_each(|(_, connection)| connection.resized(bytes));
        self.core.nvme.controllers().for_each(|controller| controller.raise(Event::NamespaceChanged));
        queues(&self.connections, |queue| queue.queue == 0).into_iter().for_each(|key| self.make_ready(key));
    }
}
