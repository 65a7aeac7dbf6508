//! SQLite's five locking levels, among the connections of this process.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi::{
    SQLITE_LOCK_EXCLUSIVE, SQLITE_LOCK_NONE, SQLITE_LOCK_PENDING, SQLITE_LOCK_RESERVED, SQLITE_LOCK_SHARED,
};

/// The locks of a file.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Connections with any lock, whoever has more included.
    shared: usize,
    /// The level of the one connection that has more than a shared lock.
    more: c_int,
}

impl Locks {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises a connection from one level to another; false where others are in the way. `from` is the level that it has afterwards.
    pub(super) fn raise(&self, from: &mut c_int, to: c_int) -> bool {
        let mut held = self.held();
        if *from >= to {
            return true;
        }
        if *from == SQLITE_LOCK_NONE {
            if held.more >= SQLITE_LOCK_PENDING {
                return false;
            }
            held.shared += 1;
            *from = SQLITE_LOCK_SHARED;
        }
        if to == SQLITE_LOCK_SHARED {
            return true;
        }
        if *from == SQLITE_LOCK_SHARED && held.more > SQLITE_LOCK_NONE {
            return false;
        }
        // Whoever wants to write alone waits for the readers, and lets no more of them in.
        let got = if to == SQLITE_LOCK_EXCLUSIVE && held.shared > 1 { SQLITE_LOCK_PENDING } else { to };
        held.more = got;
        *from = got;
        got == to
    }

    /// Lowers a connection to a shared lock, or to none.
    pub(super) fn lower(&self, from: &mut c_int, to: c_int) {
        let mut held = self.held();
        if *from > SQLITE_LOCK_SHARED && to <= SQLITE_LOCK_SHARED {
            held.more = SQLITE_LOCK_NONE;
            *from = SQLITE_LOCK_SHARED;
        }
        if *from == SQLITE_LOCK_SHARED && to == SQLITE_LOCK_NONE {
            held.shared -= 1;
            *from = SQLITE_LOCK_NONE;
        }
    }

    /// Whether somebody is going to write.
    pub(super) fn reserved(&self) -> bool {
        self.held().more >= SQLITE_LOCK_RESERVED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writes_alone_once_the_readers_are_gone() {
        let locks = Locks::default();
        let (mut one, mut two, mut three) = (0, 0, 0);
        assert!(locks.raise(&mut one, SQLITE_LOCK_SHARED) && locks.raise(&mut two, SQLITE_LOCK_SHARED));
        assert!(locks.raise(&mut one, SQLITE_LOCK_RESERVED) && locks.reserved());
        assert!(!locks.raise(&mut two, SQLITE_LOCK_RESERVED), "one at a time");
        assert!(!locks.raise(&mut one, SQLITE_LOCK_EXCLUSIVE), "the other still reads");
        assert!(!locks.raise(&mut three, SQLITE_LOCK_SHARED), "no new readers");
        locks.lower(&mut two, SQLITE_LOCK_NONE);
        assert!(locks.raise(&mut one, SQLITE_LOCK_EXCLUSIVE));
        assert!(!locks.raise(&mut two, SQLITE_LOCK_SHARED));
        locks.lower(&mut one, SQLITE_LOCK_SHARED);
        assert!(locks.raise(&mut two, SQLITE_LOCK_SHARED) && !locks.reserved());
        locks.lower(&mut one, SQLITE_LOCK_NONE);
        assert!(locks.raise(&mut two, SQLITE_LOCK_EXCLUSIVE));
    }
}
