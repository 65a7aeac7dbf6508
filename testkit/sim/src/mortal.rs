//! The process that has the device: it may die, and its page buffers outlive it.

use std::cell::RefCell;
use std::rc::Rc;

use device::{Keeper, Staging};
use media::Media;
use media::sim::{SimMedia, SimStore};
use media::staged::Left;
use random::SplitMix64;

use crate::tapped::Tapped;

/// What a process left, once it is known.
type Legacy = Rc<RefCell<Option<Left>>>;

/// Processes that die, one after another.
pub(crate) struct Mortal {
    /// Whether any dies.
    on: bool,
    random: SplitMix64,
    keeper: Keeper,
    /// What the process left when the medium stopped answering.
    last: Legacy,
    /// What the next attach finds.
    left: Option<Left>,
    /// There was no power cut since everything was last compared.
    lost_nothing: bool,
}

impl Mortal {
    pub fn new(on: bool, seed: u64) -> Mortal {
        Mortal {
            on,
            random: SplitMix64::new(seed),
            keeper: Keeper::default(),
            last: Legacy::default(),
            left: None,
            lost_nothing: true,
        }
    }

    /// A process begins to attach.
    pub fn attach(&mut self, inner: SimMedia, store: &SimStore) -> (Box<dyn Media>, Option<Staging>) {
        if !self.on {
            return (Box::new(inner), None);
        }
        self.keeper.replace(None);
        self.last.replace(None);
        let staging = Staging::in_memory(self.left.clone(), self.keeper.clone());
        let (store, keeper, last) = (store.clone(), self.keeper.clone(), self.last.clone());
        // What the process leaves at the moment at which the medium stops answering.
        let after = move |_: bool| {
            if store.is_off() && last.borrow().is_none() {
                let left = keeper.borrow().as_ref().and_then(|stage| stage.left().ok());
                last.replace(left);
            }
        };
        (Box::new(Tapped { inner, after }), Some(staging))
    }

    /// It attached: gives how many pages it found.
    pub fn attached(&mut self) -> u64 {
        self.left.take().map_or(0, |left| left.pages.len() as u64)
    }

    /// Whether the process dies now; otherwise the power is cut.
    pub fn dies(&mut self) -> bool {
        self.on && self.random.below(3) > 0
    }

    /// It died.
    pub fn killed(&mut self) {
        let now = || self.keeper.borrow().as_ref().and_then(|stage| stage.left().ok());
        // One that died before it began a stage of its own leaves what it found.
        if let Some(left) = self.last.take().or_else(now) {
            self.left = Some(left);
        }
    }

    /// The power was cut, and memory with it.
    pub fn power_cut(&mut self) {
        self.left = None;
        self.lost_nothing = false;
    }

    /// Whether everything that was answered must be there.
    pub fn lost_nothing(&self) -> bool {
        self.on && self.lost_nothing
    }

    /// Everything was compared.
    pub fn compared(&mut self) {
        self.lost_nothing = true;
    }
}
