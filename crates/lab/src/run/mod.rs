//! A run of a protocol: a directory with a journal that is written step by step.
//!
//! **What it promises.** What is finished is on disk before the next step begins. A run that was killed goes on: finished parts stand,
//! an unfinished part is begun anew from its purge. On a virtual device that gives the same results as if it had never been
//! killed, byte for byte; on a real device the state that its data was in is made anew, and what had been measured before stays in the
//! journal.
//!
//! **Where to start.** [`Session`] begins or resumes a run: [`Plan`] makes parts and steps of a protocol, [`conduct()`] runs them, or [`Apart`] has them run elsewhere. [`Run`] reads what came of it.

mod apart;
mod coarsen;
mod combine;
mod compare;
mod conduct;
mod directory;
mod environment;
mod figures;
mod journal;
mod part;
mod plan;
mod record;
mod remaining;
mod results;
mod session;
mod setting;
mod text;

pub use apart::{Apart, run_part};
pub(crate) use coarsen::coarsen;
pub use combine::{is_tracked, loads};
pub use compare::{Figure, Row, Verdict as Compared, compare, compare_text};
pub use conduct::{Ended, Watch, conduct};
pub use directory::{Directory, DirectoryError, Header, JOURNAL, Options};
pub use environment::Environment;
pub(crate) use environment::version_of;
pub use journal::{Journal, JournalError};
pub use plan::{NoPlan, Part, Plan, StagePlan, StepPlan, Wanted};
pub use record::{
    Activity, Begin, Broke, End, Interval, Line, LoopKind, Machine, PartPlan, PlanLine, Point, Step, VERSION, Verdict,
};
pub use remaining::Status;
pub use results::{PartResults, Run};
pub use session::{RunError, Session, ready};
pub use text::{plan_text, report_text, verdict_text};
