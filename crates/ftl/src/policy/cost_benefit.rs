//! Cost-benefit: free space gained times its age, over the cost. Old LEBs are worth grooming at a higher utilisation, since what is still live
//! in them will stay so. From Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System" (1992, section 3.5), in the form
//! for flash of Kawaguchi, Nishioka and Motoda, "A Flash-Memory Based File System" (USENIX 1995): (1 - u) age / 2u. The age is the time since the
//! LEB was closed, in sectors that the host wrote.

use super::{GroomPolicy, LebView};

/// The cost-benefit policy.
pub struct CostBenefit;

/// What grooming a LEB is worth by cost and benefit.
pub(super) fn worth(leb: &LebView) -> f64 {
    let u = leb.utilisation();
    (1.0 - u) * leb.host_age() as f64 / (2.0 * u)
}

impl GroomPolicy for CostBenefit {
    fn name(&self) -> &'static str {
        "cost-benefit"
    }

    fn score(&self, leb: &LebView) -> f64 {
        worth(leb)
    }
}
