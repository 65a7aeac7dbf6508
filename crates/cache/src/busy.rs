//! What is under way, by the sectors it is about: what must not meet waits, and what was read from behind is kept only where nothing
//! changed meanwhile.

use crate::layout::Range;

/// What is done with sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The host changes them.
    Change,
    /// A copy of them is written.
    Fill,
    /// It is found out whether there is a copy of them.
    Probe {
        /// Nothing changed since it began.
        unchanged: bool,
    },
    /// They are read from behind; what comes may be kept.
    Miss {
        /// Nothing changed since the read began.
        unchanged: bool,
    },
    /// They are read where they are held.
    Held,
    /// They are written behind.
    Back,
    /// They are held no longer.
    Release,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    sectors: Range,
    kind: Kind,
}

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    entries: Vec<Entry>,
    next: u64,
}

fn meet(one: &Range, other: &Range) -> bool {
    one.start < other.end && other.start < one.end
}

impl Busy {
    /// Something begins; its number.
    pub fn begin(&mut self, sectors: &Range, kind: Kind) -> u64 {
        self.next += 1;
        self.entries.push(Entry { id: self.next, sectors: sectors.clone(), kind });
        self.next
    }

    /// It is over; what it was.
    pub fn end(&mut self, id: u64) -> Option<Kind> {
        let at = self.entries.iter().position(|entry| entry.id == id)?;
        Some(self.entries.swap_remove(at).kind)
    }

    /// There is no copy: it is read from behind.
    pub fn misses(&mut self, id: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id)
            && let Kind::Probe { unchanged } = entry.kind
        {
            entry.kind = Kind::Miss { unchanged };
        }
    }

    /// Whether something of these kinds is under way there.
    pub fn any(&self, sectors: &Range, kinds: impl Fn(Kind) -> bool) -> bool {
        self.entries.iter().any(|entry| kinds(entry.kind) && meet(&entry.sectors, sectors))
    }

    /// Something changes: what is read from behind there is not to be kept.
    pub fn spoil(&mut self, sectors: &Range) {
        for entry in self.entries.iter_mut().filter(|entry| meet(&entry.sectors, sectors)) {
            if let Kind::Miss { unchanged } | Kind::Probe { unchanged } = &mut entry.kind {
                *unchanged = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_meanwhile_is_not_kept() {
        let mut busy = Busy::default();
        let (one, other) = (Kind::Miss { unchanged: true }, Kind::Miss { unchanged: false });
        let probe = Kind::Probe { unchanged: true };
        let (first, second) = (busy.begin(&(0..8), probe), busy.begin(&(8..16), one));
        busy.spoil(&(7..8));
        busy.misses(first);
        assert!(busy.any(&(0..1), |kind| kind == other) && !busy.any(&(8..16), |kind| kind == other));
        assert_eq!((busy.end(first), busy.end(second), busy.end(second)), (Some(other), Some(one), None));
    }
}
