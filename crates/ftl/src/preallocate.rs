//! Memory for the worst case, taken beforehand: for devices on which the memory of others is paged out, where asking for more while a write is
//! under way could wait for that very write.

use crate::layer::Ftl;

impl Ftl {
    /// Takes all memory that grows with what is written now, for the worst case, and locks it: map, live slots, and what the groomer's policy
    /// knows of each sector.
    ///
    /// # Errors
    /// There is not so much memory, or the process may not lock it; then memory goes on following what is written.
    pub fn preallocate(&mut self) -> std::io::Result<()> {
        let result = self.map.preallocate().and_then(|()| self.lebs.preallocate());
        match result {
            Ok(()) => self.groomer.preallocate(),
            Err(_) => self.release_memory(),
        }
        result
    }

    /// About how much [`Ftl::preallocate`] takes, bytes.
    pub fn worst_memory(&self) -> u64 {
        let geometry = &self.config.geometry;
        self.map.sectors() * size_of::<crate::Slot>() as u64 + geometry.slots() / 8 + self.map.sectors()
    }

    /// Memory follows what is written again.
    pub fn release_memory(&mut self) {
        self.map.release();
        self.lebs.release();
    }
}
