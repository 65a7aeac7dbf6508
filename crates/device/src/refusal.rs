//! Why a medium cannot be attached, inside and in words.

use std::path::Path;

use ftl::Damage;
use media::MediaError;

use crate::crypt::NoKey;
use crate::superblock::{FORMAT_VERSION, NotSuperblock};
use crate::{AttachError, EraseLevel};

/// Why a medium cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0}")]
    Media(#[from] MediaError),
    #[error("no valid superblock")]
    NoSuperblock(NotSuperblock),
    #[error("no room for a checkpoint")]
    NoRoom,
    #[error("{0}")]
    Damage(#[from] Damage),
    #[error("too many dies are out of service")]
    Dies { lost: Vec<u32>, parity: u32 },
    #[error("dies are missing")]
    MayBeBehind { missing: Vec<u32> },
    #[error("old copies are in the place of files {dies:?}")]
    OldCopies { dies: Vec<u32> },
    #[error("the key is not to be had")]
    Key(NoKey),
    #[error("it is being erased")]
    BeingErased(EraseLevel),
}

/// What stands in both label copies when nothing was ever written.
pub(crate) const BLANK: &str = "it is blank";

/// A refusal in words, with the path.
pub(crate) fn refused(refusal: Refusal, path: &Path) -> AttachError {
    let path = path.to_path_buf();
    match refusal {
        Refusal::Media(error) => AttachError::Media { path, what: error.to_string() },
        Refusal::NoRoom => {
            AttachError::Media { path, what: "no room for the checkpoint that recovery must write".into() }
        }
        Refusal::NoSuperblock(NotSuperblock::Blank) => AttachError::Foreign { path, found: BLANK.into() },
        Refusal::NoSuperblock(NotSuperblock::Foreign) => {
            AttachError::Foreign { path, found: "it holds something else".into() }
        }
        Refusal::NoSuperblock(NotSuperblock::Version(found)) => {
            AttachError::Version { path, found, known: FORMAT_VERSION }
        }
        Refusal::NoSuperblock(NotSuperblock::Damaged(what)) => {
            AttachError::Damaged { path, what: format!("the superblock: {what}") }
        }
        Refusal::Dies { lost, parity } => AttachError::Degraded { path, lost, parity },
        Refusal::MayBeBehind { missing } => AttachError::MayBeBehind { path, missing },
        Refusal::OldCopies { dies } => AttachError::OldCopies { path, dies },
        Refusal::Key(NoKey::Missing) => AttachError::NeedsKey { path },
        Refusal::Key(NoKey::Wrong) => AttachError::WrongKey { path, kind: "key" },
        Refusal::Key(NoKey::NotEncrypted) => AttachError::NotEncrypted { path },
        Refusal::Key(NoKey::Failed(what)) => AttachError::Media { path, what: what.into() },
        Refusal::BeingErased(level) => AttachError::BeingErased { path, level: level.name() },
        Refusal::Damage(damage) => AttachError::Damaged { path, what: damage.to_string() },
    }
}
