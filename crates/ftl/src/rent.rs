//! Grooming by price: where a LEB is paid for as long as it stands somewhere, its dead slots cost rent, and moving its live ones costs a fee.
//!
//! The groomer collects a LEB as soon as its dead slots have cost as much rent as collecting it costs now. Whoever decides so never pays more than
//! twice what the best decision would have cost that knew when the rest of the LEB dies (the *ski rental* problem). Until then the LEB waits:
//! more of it dies, and collecting it becomes cheaper. A LEB of which nothing is live costs nothing to collect, and goes at once.
//!
//! Need goes before price: where free space is short the groomer works as it does without prices. Only the choice of the victim heeds one price
//! then, that of fetching what lies elsewhere.

use crate::layer::Ftl;
use crate::leb::{Leb, LebState, Stream};
use crate::policy::{Eligible, LebView, gains, spare};
use crate::types::LebId;

/// What LEBs cost, all in one unit of money.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fees {
    /// To keep a slot for a millisecond.
    pub keep: f64,
    /// To collect any LEB of which something is live.
    pub collect: f64,
    /// To write a slot anew.
    pub append: f64,
    /// To fetch a page with something live from elsewhere.
    pub fetch_page: f64,
    /// To fetch a live slot from elsewhere.
    pub fetch_slot: f64,
    /// The most live slots that are moved between two looks, so that clients do not notice. One LEB is always taken.
    pub most_moved: u64,
}

/// What was collected for its price, and not for need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// LEBs.
    pub lebs: u64,
    /// Sectors that were live in them.
    pub moved: u64,
}

/// Where fetching makes a victim dear, another one is taken that frees a slot for at most this share of its price. What the policy knows of
/// lifetimes is worth less than that.
const CHEAPER: f64 = 0.5;

/// The account of every LEB.
pub(crate) struct Rent {
    fees: Fees,
    /// What the dead slots of each LEB cost so far, and whether it lies here.
    lebs: Vec<(f64, bool)>,
    /// When the accounts were last looked at, milliseconds.
    looked_ms: Option<u64>,
    /// LEBs that are due, the last one first.
    due: Vec<LebId>,
    collected: Collected,
}

impl Rent {
    /// What moving the live slots of a LEB costs.
    fn cost(&self, id: LebId, leb: &Leb, pages: u32) -> f64 {
        let live = f64::from(leb.live);
        let here = self.lebs.get(id as usize).is_none_or(|(_, here)| *here);
        let fetched = match here {
            true => 0.0,
            false => self.fees.fetch_page * f64::from(leb.live.min(pages)) + self.fees.fetch_slot * live,
        };
        fetched + self.fees.append * live + if leb.live > 0 { self.fees.collect } else { 0.0 }
    }

    fn owed(&self, id: LebId) -> f64 {
        self.lebs.get(id as usize).map_or(0.0, |(owed, _)| *owed)
    }

    /// The LEB was emptied: its next life owes nothing, and is not due because this one was.
    pub fn forget(&mut self, leb: LebId) {
        self.due.retain(|due| *due != leb);
        if let Some(account) = self.lebs.get_mut(leb as usize) {
            account.0 = 0.0;
        }
    }

    pub fn has_due(&self) -> bool {
        !self.due.is_empty()
    }
}

impl Ftl {
    /// Has the groomer collect by price from now on, or not any more. Not remembered: whoever pays for LEBs says so after each attach.
    pub fn set_fees(&mut self, fees: Option<Fees>) {
        let before = self.groomer.rent.take();
        self.groomer.rent = fees.map(|fees| match before {
            Some(rent) => Box::new(Rent { fees, ..*rent }),
            None => {
                let (lebs, due) = (Vec::new(), Vec::new());
                Box::new(Rent { fees, lebs, looked_ms: None, due, collected: Collected::default() })
            }
        });
    }

    /// What was collected for its price since the attach.
    pub fn collected(&self) -> Collected {
        self.groomer.rent.as_ref().map_or_else(Collected::default, |rent| rent.collected)
    }

    /// Charges every LEB the rent since the last look, and collects those that are due. To be called each minute or so, with a clock that only
    /// goes forward; `is_here` says whether a LEB can be read without a fee.
    pub fn look_at_rent(&mut self, now_ms: u64, is_here: impl Fn(LebId) -> bool) {
        let pages = self.config.geometry.pages_per_leb();
        let (slots, before, started) = (self.narrow.leb_slots, self.groomable_before(), self.is_started());
        let Some(rent) = self.groomer.rent.as_mut().filter(|_| started && !self.checkpointer.is_closing()) else {
            return;
        };
        let passed = now_ms.saturating_sub(rent.looked_ms.unwrap_or(now_ms)) as f64;
        rent.looked_ms = Some(now_ms);
        rent.lebs.resize(self.lebs.len() as usize, (0.0, true));
        let mut due = Vec::new();
        for (id, leb) in self.lebs.iter() {
            let of_data = leb.state == LebState::Closed && leb.stream != Stream::Checkpoint;
            let account = &mut rent.lebs[id as usize];
            account.1 = is_here(id);
            if !of_data || leb.damaged && leb.live > 0 {
                continue;
            }
            account.0 += f64::from(spare(slots).saturating_sub(leb.live)) * rent.fees.keep * passed;
            let (owed, cost) = (account.0, rent.cost(id, leb, pages));
            if owed >= cost && owed > 0.0 && leb.closed <= before && gains(leb, slots) {
                due.push((owed - cost, id, leb.live));
            }
        }
        // Those go first that have cost most beyond their collection. By the quotient of the two, one that must be fetched would wait for ever behind
        // cheap ones, which are due again soon after they were moved.
        due.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        let (mut moved, most) = (0, rent.fees.most_moved);
        let affordable = due.into_iter().take_while(|(.., live)| {
            let first = moved == 0;
            moved += u64::from(*live);
            first || moved <= most
        });
        rent.due = affordable.map(|(_, id, _)| id).collect();
        rent.due.reverse();
        self.work();
    }

    /// LEBs that owe more than their collection costs, and may be collected, each with the sequence number at which it was opened: none of them
    /// is there for long while anybody looks.
    pub fn overdue(&self) -> Vec<(LebId, u64)> {
        let pages = self.config.geometry.pages_per_leb();
        let eligible = self.eligible();
        let due = |rent: &&Rent, leb: &LebView| rent.owed(leb.id) > rent.cost(leb.id, leb, pages);
        let rent = self.groomer.rent.as_deref();
        eligible
            .iter()
            .filter(|leb| rent.as_ref().is_some_and(|rent| due(rent, leb)))
            .map(|leb| (leb.id, leb.opened))
            .collect()
    }

    /// The next LEB that is due and may still be groomed.
    pub(crate) fn next_due(&mut self) -> Option<LebId> {
        while let Some(leb) = self.groomer.rent.as_mut().and_then(|rent| rent.due.pop()) {
            if let Some((leb, live)) = self.pick(|_, eligible| eligible.get(leb)) {
                let collected = self.groomer.rent.as_mut().map(|rent| &mut rent.collected);
                collected
                    .into_iter()
                    .for_each(|sum| (sum.lebs, sum.moved) = (sum.lebs + 1, sum.moved + u64::from(live)));
                return Some(leb);
            }
        }
        None
    }
}

/// The policy's choice, or another that is far cheaper where fetching makes that dear.
pub(crate) fn cheaper<'a>(rent: &Rent, eligible: &'a Eligible<'a>, wanted: LebView<'a>, pages: u32) -> LebView<'a> {
    if rent.lebs.get(wanted.id as usize).is_none_or(|(_, here)| *here) {
        return wanted;
    }
    let price = |leb: &LebView| rent.cost(leb.id, leb, pages) / f64::from((leb.slots - leb.live.min(leb.slots)).max(1));
    let cheapest = eligible.iter().map(|leb| (price(&leb), leb)).min_by(|one, two| one.0.total_cmp(&two.0));
    cheapest.filter(|(least, _)| *least <= price(&wanted) * CHEAPER).map_or(wanted, |(_, leb)| leb)
}
