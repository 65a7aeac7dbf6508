//! Which LEB the groomer takes next: one small trait, one file for each policy.

mod cost_benefit;
mod fifo;
mod greedy;

pub use cost_benefit::CostBenefit;
pub use fifo::Fifo;
pub use greedy::Greedy;

/// What a policy may know of a LEB.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Share of its slots that are live, 0 to 1.
    pub utilisation: f64,
    /// Slots appended on the module since it was closed.
    pub age: u64,
    /// Times it was erased.
    pub erases: u32,
}

/// A policy scores LEBs; the groomer takes the highest.
pub trait GroomPolicy {
    /// Its name in configuration.
    fn name(&self) -> &'static str;

    /// How much it is worth to groom this LEB now.
    fn score(&self, candidate: &Candidate) -> f64;
}

/// The policies that can be configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// [`Greedy`].
    Greedy,
    /// [`CostBenefit`].
    #[default]
    CostBenefit,
    /// [`Fifo`].
    Fifo,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 3] = [Policy::Greedy, Policy::CostBenefit, Policy::Fifo];

    /// The policy of that name.
    pub fn from_name(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The policy of that number in the superblock.
    pub fn from_code(code: u8) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.code() == code)
    }

    /// Its number in the superblock.
    pub fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn build(self) -> Box<dyn GroomPolicy> {
        match self {
            Policy::Greedy => Box::new(Greedy),
            Policy::CostBenefit => Box::new(CostBenefit),
            Policy::Fifo => Box::new(Fifo),
        }
    }

    /// Its name in configuration.
    pub fn name(self) -> &'static str {
        self.build().name()
    }
}
