//! Why a drill was refused.

use media::MediaError;

use super::Drill;

/// Why a drill was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrillError {
    /// Nobody said that it may be broken.
    #[error(
        "the device is not marked for drills; mark it with `vsl config DEVICE drills on`, or make one with `vsl create --drills`"
    )]
    NotMarked,
    /// It was marked too late.
    #[error("the device was marked for drills after it was attached; detach it and attach it again")]
    AttachAgain,
    /// Its power is cut.
    #[error("the power of the device is cut; `vsl drill DEVICE power-on` switches it on")]
    PoweredOff,
    /// It is on.
    #[error("{on} is on already; `vsl drill DEVICE undo {}` ends it", .on.split(' ').next().unwrap_or_default())]
    AlreadyOn {
        /// Which.
        on: String,
    },
    /// It is not on.
    #[error("{name} is not on; `vsl drill DEVICE list` shows what is")]
    NotOn {
        /// Which.
        name: String,
    },
    /// There is none of that name.
    #[error("no drill is called '{name}'; there are: {}", Drill::NAMES.join(", "))]
    Unknown {
        /// What was named.
        name: String,
    },
    /// A bad parameter.
    #[error("{name}: {value}: expected {expected}")]
    Invalid {
        /// Which parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// This sort of device has nothing that could fail so.
    #[error("{drill}: {why}")]
    Unfit {
        /// Which drill.
        drill: &'static str,
        /// Why.
        why: String,
    },
    /// None of the sectors lies on the medium.
    #[error("{drill}: none of the sectors {lba} to {last} lies on the medium; write them, and flush")]
    NothingThere {
        /// Which drill.
        drill: &'static str,
        /// The first.
        lba: u64,
        /// The last.
        last: u64,
    },
    /// The medium failed meanwhile.
    #[error("{drill}: the medium: {error}")]
    Media {
        /// Which drill.
        drill: &'static str,
        /// Why.
        error: MediaError,
    },
}

/// A bad parameter.
pub(super) fn invalid(name: &'static str, value: impl ToString, expected: impl Into<String>) -> DrillError {
    DrillError::Invalid { name, value: value.to_string(), expected: expected.into() }
}
