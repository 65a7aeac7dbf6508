//! How often somebody may ask, and how often somebody may be wrong.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Requests a second from one address, on average.
const RATE: f64 = 50.0;
/// Requests that may come at once.
const BURST: f64 = 200.0;
/// Wrong passwords or keys from one address before it has to wait.
const WRONG: usize = 5;
/// For how long each of them counts.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are remembered. Beyond, those that are back at nothing are forgotten.
const REMEMBERED: usize = 1024;

/// What counts as one address: of IPv6 the network of 64 bits, since one machine may have every address of it; and all of loopback.
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

/// Whose requests are counted together: what strangers at somebody's address ask is none of theirs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// An account's.
    Account(String),
    /// Those of strangers at an address.
    Address(IpAddr),
}

/// What each of them may still ask. The Unix socket's users have no limit: they own the service.
#[derive(Default)]
pub struct Buckets(HashMap<Whose, (f64, Instant)>);

impl Buckets {
    /// Whether one more request is within bounds.
    pub fn admit(&mut self, whose: Whose, now: Instant) -> bool {
        let filled =
            |(left, at): (f64, Instant)| BURST.min(left + RATE * now.saturating_duration_since(at).as_secs_f64());
        if self.0.len() >= REMEMBERED {
            self.0.retain(|_, bucket| filled(*bucket) < BURST);
        }
        // Accounts are few, and always have room.
        if self.0.len() >= REMEMBERED && matches!(whose, Whose::Address(_)) && !self.0.contains_key(&whose) {
            return false;
        }
        let bucket = self.0.entry(whose).or_insert((BURST, now));
        let left = filled(*bucket);
        *bucket = (if left >= 1.0 { left - 1.0 } else { left }, now);
        left >= 1.0
    }
}

/// Wrong passwords and keys.
#[derive(Default)]
pub struct Tries(HashMap<IpAddr, Vec<Instant>>);

impl Tries {
    /// Whether nobody from there is listened to for now.
    pub fn is_barred(&self, address: Option<IpAddr>, now: Instant) -> bool {
        let Some(tries) = address.and_then(|address| self.0.get(&source(address))) else { return false };
        tries.iter().filter(|at| now.saturating_duration_since(**at) < WINDOW).count() >= WRONG
    }

    /// One more was wrong.
    pub fn note(&mut self, address: Option<IpAddr>, now: Instant) {
        let Some(address) = address.map(source) else { return };
        for tries in self.0.values_mut() {
            tries.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        }
        self.0.retain(|_, tries| !tries.is_empty());
        if self.0.len() >= REMEMBERED
            && !self.0.contains_key(&address)
            && let Some(oldest) = self.0.iter().min_by_key(|(_, tries)| tries.last()).map(|(address, _)| *address)
        {
            self.0.remove(&oldest);
        }
        self.0.entry(address).or_default().push(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_pass_and_floods_do_not() {
        let mut buckets = Buckets::default();
        let [one, other] = [1, 2].map(|last| Whose::Address([192, 0, 2, last].into()));
        let now = Instant::now();
        let passed = (0..1000).filter(|_| buckets.admit(one.clone(), now)).count();
        assert_eq!(passed, 200);
        assert!(buckets.admit(other, now) && buckets.admit(Whose::Account("ada".into()), now));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..1000).filter(|_| buckets.admit(one.clone(), later)).count(), 50);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let mut tries = Tries::default();
        let now = Instant::now();
        let address = |text: &str| Some(text.parse::<IpAddr>().expect("an address"));
        for host in 0..WRONG {
            tries.note(address(&format!("2001:db8:0:1::{host}")), now);
        }
        assert!(tries.is_barred(address("2001:db8:0:1:ffff::1"), now));
        assert!(!tries.is_barred(address("2001:db8:0:2::1"), now));
        (0..WRONG).for_each(|_| tries.note(address("::ffff:192.0.2.1"), now));
        assert!(tries.is_barred(address("192.0.2.1"), now) && !tries.is_barred(address("192.0.2.2"), now));
    }

    #[test]
    fn loopback_is_one_address() {
        let of = |text: &str| source(text.parse().expect("an address"));
        for text in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.3.3.3"] {
            assert_eq!(of(text), of("127.0.0.1"), "{text}");
        }
        assert_ne!(of("128.0.0.1"), of("127.0.0.1"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut buckets = Buckets::default();
        let now = Instant::now();
        for number in 0..5000u32 {
            buckets.admit(Whose::Address(number.to_be_bytes().into()), now);
        }
        assert!(buckets.0.len() <= REMEMBERED);
        assert!(buckets.admit(Whose::Account("ada".into()), now), "whoever is known has room");
        assert!(buckets.admit(Whose::Address([9, 9, 9, 9].into()), now + Duration::from_secs(10)));
    }

    #[test]
    fn wrong_tries_are_forgiven_after_a_minute() {
        let mut tries = Tries::default();
        let address = Some(IpAddr::from([127, 0, 0, 1]));
        let now = Instant::now();
        (0..WRONG).for_each(|_| tries.note(address, now));
        assert!(tries.is_barred(address, now));
        assert!(!tries.is_barred(address, now + WINDOW));
        assert!(!tries.is_barred(None, now));
        // Many others that were wrong make room for nobody to guess on.
        for number in 0..2 * REMEMBERED as u32 {
            tries.note(Some(IpAddr::from((10 << 24 | number).to_be_bytes())), now);
        }
        (0..WRONG).for_each(|_| tries.note(address, now));
        assert!(tries.is_barred(address, now) && tries.0.len() <= REMEMBERED);
    }
}
