//! Where random bytes come from: the operating system; in the simulator, which must replay, a seed.

use ring::rand::{SecureRandom, SystemRandom};

use super::NoKey;

#[cfg(feature = "simulation")]
thread_local! {
    static SEEDED: std::cell::RefCell<Option<random::SplitMix64>> = const { std::cell::RefCell::new(None) };
}

/// Takes random bytes from this seed from now on, on this thread.
#[cfg(feature = "simulation")]
pub fn seed(seed: u64) {
    SEEDED.set(Some(random::SplitMix64::new(seed)));
}

/// Fills a buffer with random bytes.
pub(super) fn fill(bytes: &mut [u8]) -> Result<(), NoKey> {
    #[cfg(feature = "simulation")]
    {
        let seeded = SEEDED.with_borrow_mut(|seeded| {
            let random = seeded.as_mut()?;
            bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
            Some(())
        });
        if seeded.is_some() {
            return Ok(());
        }
    }
    SystemRandom::new().fill(bytes).map_err(|_| NoKey::Failed("the operating system gives no random bytes"))
}
