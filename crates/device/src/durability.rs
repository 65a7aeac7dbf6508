//! When what was answered survives a power cut, in the words that others have for it too.

use serde::{Deserialize, Serialize};

use crate::Io;

/// When writes, trims and zeroings are durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Durability {
    /// When a flush that came after them is answered, or when they asked for it themselves (FUA).
    #[default]
    WriteBack = 0,
    /// When they are answered: as if each asked for it.
    WriteThrough = 1,
    /// Some time after: flushes and FUA are answered without waiting. A power cut may take anything that is newer than the layer's own last sync, a
    /// write whole or not at all.
    Unsafe = 2,
    /// As with write-back, and the object store has it, too: for devices on objects.
    Remote = 3,
}

impl Durability {
    /// All of them.
    pub const ALL: [Durability; 4] =
        [Durability::WriteBack, Durability::WriteThrough, Durability::Unsafe, Durability::Remote];

    /// Its name, as settings have it.
    pub fn name(self) -> &'static str {
        match self {
            Durability::WriteBack => "write-back",
            Durability::WriteThrough => "write-through",
            Durability::Unsafe => "unsafe",
            Durability::Remote => "remote",
        }
    }

    /// The one of a name.
    pub fn from_name(name: &str) -> Option<Durability> {
        Durability::ALL.into_iter().find(|one| one.name() == name)
    }

    pub(crate) fn from_code(code: u8) -> Option<Durability> {
        Durability::ALL.into_iter().find(|one| *one as u8 == code)
    }

    /// A request as it is to be carried out; nothing where it is answered without.
    #[inline]
    pub(crate) fn admit(self, io: Io<'_>) -> Option<Io<'_>> {
        if matches!(self, Durability::WriteBack | Durability::Remote) {
            // As it is, without a look at what it is.
            return Some(io);
        }
        let durable = |asked: bool| match self {
            Durability::WriteBack | Durability::Remote => asked,
            Durability::WriteThrough => true,
            Durability::Unsafe => false,
        };
        Some(match io {
            Io::Flush if self == Durability::Unsafe => return None,
            Io::Write { lba, data, fua } => Io::Write { lba, data, fua: durable(fua) },
            Io::Trim { lba, count, fua } => Io::Trim { lba, count, fua: durable(fua) },
            Io::WriteZeroes { lba, count, fua, allocate } => {
                Io::WriteZeroes { lba, count, fua: durable(fua), allocate }
            }
            Io::Batch { ops, data, fua } => Io::Batch { ops, data, fua: durable(fua) },
            io @ (Io::Read { .. } | Io::ReadSnapshot { .. } | Io::Flush) => io,
        })
    }
}
