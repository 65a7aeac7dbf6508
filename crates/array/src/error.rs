//! Why an array cannot be made or assembled.

use crate::Level;

/// Why devices cannot become an array of this shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Too few or too many members.
    #[error("{count} members: {level} takes {least} to {most}", level = .level.words())]
    Count {
        /// Of what.
        level: Level,
        /// How many there are.
        count: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// One device twice.
    #[error("members {first} and {second} are the same device; expected each device once")]
    Twice {
        /// Its position, from 0.
        first: usize,
        /// Its other one.
        second: usize,
    },
    /// Sectors of unequal size.
    #[error("member {member} has sectors of {found} bytes, the first one of {expected}; expected the same on all")]
    Sectors {
        /// The position of the one that differs, from 0.
        member: usize,
        /// Its sector size, bytes.
        found: u32,
        /// That of the first, bytes.
        expected: u32,
    },
    /// The stripe is no stripe.
    #[error("a stripe of {bytes} bytes: expected a power of two from {least} to {most} bytes")]
    Stripe {
        /// What was asked for, bytes.
        bytes: u64,
        /// The smallest, bytes.
        least: u64,
        /// The largest, bytes.
        most: u64,
    },
    /// A member is too small.
    #[error("member {member} has {sectors} sectors; an array keeps {needed} of each member for itself")]
    Small {
        /// Its position, from 0.
        member: usize,
        /// Its size, sectors.
        sectors: u64,
        /// What an array takes, and the least data besides, sectors.
        needed: u64,
    },
    /// One more member, or one in another's place, is too small.
    #[error(
        "member {member} has {sectors} sectors; expected {needed} at least, for as much data as the others hold and for what an array keeps of each"
    )]
    Less {
        /// Its position, from 0.
        member: usize,
        /// Its size, sectors.
        sectors: u64,
        /// The least, sectors.
        needed: u64,
    },
    /// A member takes too small requests.
    #[error("member {member} takes requests of up to {found} bytes; an array needs {needed}")]
    Requests {
        /// Its position, from 0.
        member: usize,
        /// Its largest request, bytes.
        found: u32,
        /// The least, bytes.
        needed: u32,
    },
}

/// Why a device does not become one more member. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrowError {
    /// It does not fit.
    #[error("{0}")]
    Shape(#[from] ShapeError),
    /// Another member comes just now.
    #[error("another member is just coming, or just leaving; ask again in a moment")]
    UnderWay,
    /// RAID 0 whose stripes are being laid out.
    #[error(
        "its stripes are still being laid out over the member that was added last; add another one when that is done"
    )]
    Reshaping,
    /// The array is stopped, or failed.
    #[error("it does not serve; assemble it first")]
    NotServing,
}

/// Why members cannot be assembled. Members are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// No superblock where one should be.
    #[error("member {0} has no superblock of an array: it was written to from outside, or is another device")]
    NoSuperblock(usize),
    /// One of a newer program.
    #[error("member {member} is of array format {found}, this program knows up to {known}")]
    Version {
        /// Its position.
        member: usize,
        /// What it says.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// It belongs elsewhere.
    #[error("member {0} belongs to another array, or to another place in this one")]
    Foreign(usize),
    /// More members than were named.
    #[error("the array has {of} members, and {named} were named; expected all of them, in their order")]
    Few {
        /// How many were named.
        named: usize,
        /// How many there are.
        of: usize,
    },
    /// Members that are needed are not there.
    #[error("{missing} of {of} members are missing; {why}")]
    Missing {
        /// How many.
        missing: usize,
        /// Of how many.
        of: usize,
        /// What would help.
        why: &'static str,
    },
    /// A member is of another time than the others.
    #[error("member {0} is of another time than the others: it is an old copy, or was written to apart from them")]
    OutOfStep(usize),
    /// Members of a mirror that went on without each other.
    #[error("members {0} and {1} were both written to without the other; expected one that has everything")]
    Split(usize, usize),
    /// No member holds everything.
    #[error("no member that is there holds everything: the copy on it was not finished")]
    Unfinished,
    /// A record of the intent log is damaged.
    #[error("the intent log of member {0} is damaged")]
    Log(usize),
    /// A member failed meanwhile.
    #[error("member {0} failed")]
    Failed(usize),
}
