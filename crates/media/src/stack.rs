//! What a device's medium is put together from: redundancy over faults on command over a model's pace over what stores bytes.
//!
//! Each layer but the lowest may be absent. Whoever needs one of them asks the stack; [`Media`] knows none by name.

use std::ops::{Deref, DerefMut};

use crate::drill::DrillMedia;
use crate::nand::{Nand, Paced};
use crate::object::ObjectMedia;
use crate::{Flashback, Media};

/// What stores bytes, at a model's pace or at its own.
pub enum Base {
    /// At a model's pace.
    Paced(Box<Paced>),
    /// In a journal, and in an object store behind it.
    Objects(Box<ObjectMedia>),
    /// At its own.
    Plain(Box<dyn Media>),
}

/// The same, perhaps with faults on command in front of it.
pub enum Drilled {
    /// The device is marked for drills.
    Drill(Box<DrillMedia>),
    /// It is not.
    Plain(Base),
}

/// The whole medium.
pub enum Stack {
    /// With redundancy.
    Flashback(Box<Flashback>),
    /// Without.
    Plain(Drilled),
}

impl Base {
    /// The model that sets the pace.
    pub fn paced(&mut self) -> Option<&mut Paced> {
        match self {
            Base::Paced(paced) => Some(paced),
            Base::Objects(_) | Base::Plain(_) => None,
        }
    }

    /// The object store.
    pub fn objects(&mut self) -> Option<&mut ObjectMedia> {
        match self {
            Base::Objects(objects) => Some(objects),
            Base::Paced(_) | Base::Plain(_) => None,
        }
    }

    /// The model's chips.
    pub fn nand(&self) -> Option<&Nand> {
        match self {
            Base::Paced(paced) => Some(paced.nand()),
            Base::Objects(_) | Base::Plain(_) => None,
        }
    }
}

impl Drilled {
    fn base(&self) -> &Base {
        match self {
            Drilled::Drill(drill) => drill.base(),
            Drilled::Plain(base) => base,
        }
    }

    fn base_mut(&mut self) -> &mut Base {
        match self {
            Drilled::Drill(drill) => drill.base_mut(),
            Drilled::Plain(base) => base,
        }
    }
}

impl Stack {
    fn drilled_mut(&mut self) -> &mut Drilled {
        match self {
            Stack::Flashback(flashback) => flashback.below_mut(),
            Stack::Plain(drilled) => drilled,
        }
    }

    /// The redundancy, where there is any.
    pub fn flashback(&mut self) -> Option<&mut Flashback> {
        match self {
            Stack::Flashback(flashback) => Some(flashback),
            Stack::Plain(_) => None,
        }
    }

    /// The faults on command, where the device is marked for drills.
    pub fn drill(&mut self) -> Option<&mut DrillMedia> {
        match self.drilled_mut() {
            Drilled::Drill(drill) => Some(drill),
            Drilled::Plain(_) => None,
        }
    }

    /// The model that sets the pace, where one does.
    pub fn paced(&mut self) -> Option<&mut Paced> {
        self.drilled_mut().base_mut().paced()
    }

    /// The object store behind it, where there is one.
    #[inline]
    pub fn objects(&mut self) -> Option<&mut ObjectMedia> {
        self.drilled_mut().base_mut().objects()
    }

    /// The same, to look at.
    pub fn store_behind(&self) -> Option<&ObjectMedia> {
        let drilled = match self {
            Stack::Flashback(flashback) => flashback.below(),
            Stack::Plain(drilled) => drilled,
        };
        match drilled.base() {
            Base::Objects(objects) => Some(objects),
            Base::Paced(_) | Base::Plain(_) => None,
        }
    }

    /// The model's chips.
    pub fn nand(&self) -> Option<&Nand> {
        match self {
            Stack::Flashback(flashback) => flashback.below().base().nand(),
            Stack::Plain(drilled) => drilled.base().nand(),
        }
    }
}

impl From<Box<dyn Media>> for Base {
    fn from(medium: Box<dyn Media>) -> Base {
        Base::Plain(medium)
    }
}

/// Each is the medium that its topmost layer is.
macro_rules! is_a_medium {
    ($kind:ident: $($top:ident),+) => {
        impl Deref for $kind {
            type Target = dyn Media;

            #[inline]
            fn deref(&self) -> &(dyn Media + 'static) {
                match self {
                    $($kind::$top(top) => &**top,)+
                    $kind::Plain(below) => &**below,
                }
            }
        }

        impl DerefMut for $kind {
            #[inline]
            fn deref_mut(&mut self) -> &mut (dyn Media + 'static) {
                match self {
                    $($kind::$top(top) => &mut **top,)+
                    $kind::Plain(below) => &mut **below,
                }
            }
        }
    };
}

is_a_medium!(Base: Paced, Objects);
is_a_medium!(Drilled: Drill);
is_a_medium!(Stack: Flashback);
