//! Where an emulated device has the time from.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A clock that only goes forward.
pub trait Clock {
    /// Nanoseconds since some moment.
    fn now(&self) -> u64;

    /// Lets so much time pass.
    fn wait(&self, nanos: u64);
}

/// The wall's clock.
#[derive(Debug)]
pub struct WallClock(Instant);

impl Default for WallClock {
    /// Begins at 0 now.
    fn default() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Clock for WallClock {
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn wait(&self, nanos: u64) {
        std::thread::sleep(Duration::from_nanos(nanos));
    }
}

/// A clock that goes on only when somebody waits: whoever drives it has all the time in the world.
impl Clock for Cell<u64> {
    fn now(&self) -> u64 {
        self.get()
    }

    fn wait(&self, nanos: u64) {
        self.set(self.get() + nanos);
    }
}

/// A clock that somebody else holds as well.
impl<C: Clock + ?Sized> Clock for Rc<C> {
    fn now(&self) -> u64 {
        (**self).now()
    }

    fn wait(&self, nanos: u64) {
        (**self).wait(nanos);
    }
}
