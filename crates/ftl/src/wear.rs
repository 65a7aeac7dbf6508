//! Wear levelling, where media must be erased before it is programmed again.
//!
//! **Which free LEB is used next.** Streams whose LEBs live long get the most worn of the free ones, the others the least worn. How long they live is
//! measured, by the host's clock, when they are emptied.
//!
//! **Which LEB is emptied for it.** What is never overwritten keeps its LEB, which then lags behind the others. A LEB that lags too far is groomed
//! whatever it holds: its sectors go to the stream that the policy has for such old ones, whose LEBs live long and are therefore the most worn ones, and it
//! becomes the least worn of the free ones. What is moved for that is at most one in a hundred of all that is written.

use std::collections::VecDeque;

use crate::layer::Ftl;
use crate::leb::{ALL_STREAMS, Leb, LebState, Lebs, STREAMS, Stream};
use crate::types::LebId;

/// Free LEBs whose erases differ by no more count as worn alike; the one that was freed first goes first.
const ALIKE: u32 = 2;
/// A LEB lags when it has so many erases less than the mean has,
const LAG_MIN: f64 = 16.0;
/// and less by this share of the mean.
const LAG_SHARE: f64 = 0.035;
/// Share of all that is written that may be moved for the sake of wear.
const MOVED_SHARE: f64 = 0.01;
/// So much of it can be saved up, LEBs.
const SAVED_LEBS: f64 = 4.0;
/// So often while each LEB is erased once they are looked through for one that lags.
const LOOKS: u64 = 32;
/// A stream's LEBs live long when they do by this factor longer than all in the mean.
const LONG: f64 = 1.25;
/// How fast the mean life of a stream's LEBs follows: one part in so many.
const FOLLOWS: f64 = 16.0;

/// What is known of wear.
pub(crate) struct Wear {
    on: bool,
    /// Erases of all LEBs together.
    erases: u64,
    /// Erases at which LEBs are looked through next.
    look_at: u64,
    /// Slots that may be moved.
    credit: f64,
    /// Slots written when that was worked out.
    credited: u64,
    /// Slots moved since the attach.
    moved: u64,
    /// Of the LEBs that stand ready: the one for what lives long.
    worn: Option<LebId>,
    /// Mean life of the LEBs of each stream, in sectors that the host wrote; 0 where none was emptied yet.
    lives: [f64; ALL_STREAMS],
    /// Of all of them.
    life: f64,
}

impl Wear {
    pub fn new(on: bool, lebs: &Lebs) -> Wear {
        let erases = lebs.iter().map(|(_, leb)| u64::from(leb.erases)).sum();
        Wear {
            on,
            erases,
            look_at: 0,
            credit: 0.0,
            credited: 0,
            moved: 0,
            worn: None,
            lives: [0.0; ALL_STREAMS],
            life: 0.0,
        }
    }

    /// A LEB was erased.
    pub fn erased(&mut self) {
        self.erases += 1;
    }

    /// A LEB of a stream was emptied that was opened so many sectors of the host ago.
    pub fn emptied(&mut self, stream: Stream, life: u64) {
        let follow = |mean: &mut f64, follows: f64| match *mean {
            0.0 => *mean = life.max(1) as f64,
            _ => *mean += (life as f64 - *mean) / follows,
        };
        follow(&mut self.lives[stream.code() as usize], FOLLOWS);
        follow(&mut self.life, FOLLOWS * STREAMS as f64);
    }

    /// Slots that were moved for the sake of wear since the attach.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    fn lives_long(&self, stream: Stream) -> bool {
        self.lives[stream.code() as usize] > self.life * LONG
    }
}

/// The first of those that are worn most, or least, give or take what counts as alike.
fn suited(lebs: &Lebs, among: &VecDeque<LebId>, worn: bool) -> Option<usize> {
    let erases = |leb: &LebId| lebs[*leb].erases;
    if worn {
        let most = among.iter().map(erases).max()?;
        return among.iter().position(|leb| most - erases(leb) <= ALIKE);
    }
    let least = among.iter().map(erases).min()?;
    among.iter().position(|leb| erases(leb) - least <= ALIKE)
}

impl Ftl {
    /// Switches wear levelling on or off. Without a word it is on where the media must be erased.
    pub fn level_wear(&mut self, on: bool) {
        self.wear.on = on;
    }

    /// Sectors that were moved for the sake of wear since the attach.
    pub fn moved_for_wear(&self) -> u64 {
        self.wear.moved()
    }

    /// Which of the free LEBs is made ready next. One of those in stock is for what lives long.
    pub(crate) fn next_free(&mut self) -> Option<usize> {
        if !self.wear.on {
            return (!self.free.is_empty()).then_some(0);
        }
        let lebs = &self.lebs;
        let stocked = |leb: LebId| matches!(lebs[leb].state, LebState::Ready | LebState::Preparing | LebState::Erasing);
        let worn = !self.wear.worn.is_some_and(stocked);
        let at = suited(&self.lebs, &self.free, worn)?;
        if worn {
            self.wear.worn = Some(self.free[at]);
        }
        Some(at)
    }

    /// Takes the LEB out of the stock that suits a stream.
    pub(crate) fn take_ready(&mut self, stream: Stream) -> Option<LebId> {
        let at = if self.wear.on { suited(&self.lebs, &self.ready, self.wear.lives_long(stream))? } else { 0 };
        let leb = self.ready.remove(at)?;
        if self.wear.worn == Some(leb) {
            self.wear.worn = None;
        }
        Some(leb)
    }

    /// A LEB that lags so far behind the others that it is groomed whatever it holds.
    pub(crate) fn laggard(&mut self) -> Option<LebId> {
        if !self.wear.on || self.wear.erases < self.wear.look_at {
            return None;
        }
        let count = u64::from(self.lebs.len());
        self.wear.look_at = self.wear.erases + (count / LOOKS).max(1);
        let slots = self.config.geometry.slots_per_leb();
        let written = self.stats.host_written_sectors + self.stats.groomed_sectors;
        let since = written.saturating_sub(self.wear.credited) as f64;
        self.wear.credited = written;
        self.wear.credit = (self.wear.credit + since * MOVED_SHARE).min(SAVED_LEBS * f64::from(slots));
        let mean = self.wear.erases as f64 / count as f64;
        let lags = mean - LAG_MIN.max(mean * LAG_SHARE);
        if self.wear.credit < f64::from(slots) || lags < 0.0 || !self.has_spare_lebs() {
            return None;
        }
        // A checkpoint lies where it is until there is a new one.
        let checkpoint = |leb: &Leb| {
            leb.stream == Stream::Checkpoint && leb.state == LebState::Closed && f64::from(leb.erases) <= lags
        };
        if self.lebs.iter().any(|(_, leb)| checkpoint(leb)) {
            self.checkpointer.want();
        }
        let eligible = self.eligible();
        let least = eligible.movable().min_by_key(|leb| leb.erases)?;
        let (leb, live) = (least.id, least.live);
        if f64::from(self.lebs[leb].erases) > lags {
            return None;
        }
        self.wear.credit -= f64::from(live);
        self.wear.moved += u64::from(live);
        Some(leb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worn(erases: &[u32]) -> (Lebs, VecDeque<LebId>) {
        let mut lebs = Lebs::new(erases.len() as u32, 8);
        for (leb, erases) in (0..).zip(erases) {
            lebs[leb].erases = *erases;
        }
        (lebs, (0..erases.len() as u32).collect())
    }

    #[test]
    fn what_is_worn_alike_keeps_its_order() {
        let (lebs, among) = worn(&[11, 10, 12, 10]);
        assert_eq!((suited(&lebs, &among, false), suited(&lebs, &among, true)), (Some(0), Some(0)));
        let (lebs, among) = worn(&[14, 17, 20, 10, 11, 19]);
        assert_eq!((suited(&lebs, &among, false), suited(&lebs, &among, true)), (Some(3), Some(2)));
        assert_eq!(suited(&lebs, &VecDeque::new(), true), None);
        // Media may say anything.
        let (lebs, among) = worn(&[u32::MAX, 0, u32::MAX]);
        assert_eq!((suited(&lebs, &among, false), suited(&lebs, &among, true)), (Some(1), Some(0)));
    }

    #[test]
    fn a_stream_lives_long_by_what_was_seen_of_it() {
        let (lebs, _) = worn(&[3, 4]);
        let mut wear = Wear::new(true, &lebs);
        assert_eq!(wear.erases, 7);
        let (hot, cold) = (Stream::Data(0), Stream::Data(1));
        assert!(!wear.lives_long(hot) && !wear.lives_long(cold), "nothing is known");
        for n in 0..200 {
            wear.emptied(hot, 100);
            if n % 10 == 0 {
                wear.emptied(cold, 1000);
            }
        }
        assert!(!wear.lives_long(hot) && wear.lives_long(cold));
    }
}
