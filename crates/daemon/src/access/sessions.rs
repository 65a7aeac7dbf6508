//! Who has signed in with a browser. Kept in memory: a restart signs everybody out.

use std::time::{Duration, Instant};

use super::secret::Digest;
use crate::api::Session;

/// How long a session lives without being used.
pub const LIFE: Duration = Duration::from_secs(12 * 3600);
/// Sessions at once; the oldest ends where one more begins.
const MOST: usize = 256;

/// The sessions.
#[derive(Default)]
pub struct Sessions(Vec<Entry>);

struct Entry {
    cookie: Digest,
    who: Session,
    used: Instant,
}

impl Sessions {
    /// A new one.
    pub fn add(&mut self, cookie: Digest, who: Session, now: Instant) {
        self.0.retain(|entry| now.saturating_duration_since(entry.used) < LIFE);
        if self.0.len() >= MOST
            && let Some(oldest) = (0..self.0.len()).min_by_key(|at| self.0[*at].used)
        {
            self.0.swap_remove(oldest);
        }
        self.0.push(Entry { cookie, who, used: now });
    }

    /// Whose it is; it lives on from now.
    pub fn find(&mut self, cookie: &Digest, now: Instant) -> Option<Session> {
        let entry = self.0.iter_mut().find(|entry| entry.cookie == *cookie)?;
        if now.saturating_duration_since(entry.used) >= LIFE {
            return None;
        }
        entry.used = now;
        Some(entry.who.clone())
    }

    /// All of an account end.
    pub fn end_all_of(&mut self, name: &str) {
        self.0.retain(|entry| entry.who.name != name);
    }

    /// It ends.
    pub fn remove(&mut self, cookie: &Digest) {
        self.0.retain(|entry| entry.cookie != *cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Role, Via};

    #[test]
    fn sessions_end_when_nobody_uses_them() {
        let mut sessions = Sessions::default();
        let who = Session { name: "a".into(), role: Role::Viewer, via: Via::Session };
        let now = Instant::now();
        sessions.add(Digest::of("c"), who.clone(), now);
        assert_eq!(sessions.find(&Digest::of("d"), now), None);
        assert_eq!(sessions.find(&Digest::of("c"), now + LIFE / 2), Some(who.clone()));
        assert_eq!(sessions.find(&Digest::of("c"), now + LIFE), Some(who.clone()));
        assert_eq!(sessions.find(&Digest::of("c"), now + LIFE * 2), None);
        for number in 0..1000 {
            sessions.add(Digest::of(&number.to_string()), who.clone(), now + LIFE + Duration::from_secs(number));
        }
        assert_eq!(sessions.0.len(), MOST);
        sessions.remove(&Digest::of("999"));
        assert_eq!(sessions.find(&Digest::of("999"), now + LIFE), None);
    }
}
