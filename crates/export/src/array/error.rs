//! Why there is no array.

use array::{Damage, GrowError, ShapeError};

/// Why an array is not made, or not assembled. Nothing was changed on its members, unless it says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError {
    /// A member belongs to another array or cached volume.
    #[error("{member}: belongs to {array}; delete that first, or choose another device")]
    Taken {
        /// The member.
        member: String,
        /// What it belongs to.
        array: String,
    },
    /// Clients use a member.
    #[error("{member}: {clients} client(s) connected; an array has its members for itself: disconnect them first")]
    Clients {
        /// The member.
        member: String,
        /// How many.
        clients: usize,
    },
    /// What cannot be a member.
    #[error(
        "{member}: cannot be a member; expected a device that is attached for writing, whose durability is not 'unsafe', and no array and no device of zones"
    )]
    Unfit {
        /// The member.
        member: String,
    },
    /// A member's thread has ended.
    #[error("{member}: is not attached any more; attach it again")]
    Gone {
        /// The member.
        member: String,
    },
    /// A member holds something.
    #[error("{member}: holds data, which the array would destroy; add --force if that is meant")]
    NotEmpty {
        /// The member.
        member: String,
    },
    /// The members do not fit together.
    #[error("{0}")]
    Shape(ShapeError),
    /// A device does not become one more member.
    #[error("{0}")]
    Grow(#[from] GrowError),
    /// They cannot be assembled.
    #[error("{0}")]
    Damage(#[from] Damage),
    /// A member failed.
    #[error("{member}: {error}")]
    Member {
        /// The member.
        member: String,
        /// How.
        error: device::IoError,
    },
    /// The operating system has no thread or ring for it.
    #[error("no thread for the array: {0}")]
    Thread(String),
}

impl From<ShapeError> for ArrayError {
    fn from(error: ShapeError) -> ArrayError {
        ArrayError::Shape(error)
    }
}
