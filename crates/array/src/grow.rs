//! Takes one more member in.
//!
//! **The array has the new member from the moment on at which a superblock of another member says so.** The new member's own superblock
//! is durable before that, and of a mirror its marks are, too. So whichever superblocks a crash leaves behind, the array assembles: without
//! the new member where none of the others knows it, and with it where any does.
//!
//! A mirror copies to the new member what is mapped, as to one that takes another's place. A concatenation has its data behind the others'.
//! RAID 0 lays its stripes out over it (`reshape.rs`).

use crate::array::{Array, Life, Seat, bit};
use crate::assemble::Joining;
use crate::command::What;
use crate::geometry::{Level, Member, Piece, Shape};
use crate::holes::Holes;
use crate::meta::Stage;
use crate::wire::{Role, superblock_sector};
use crate::{GrowError, ShapeError};

impl Array {
    /// The shape that the array would have with this device as one more member.
    ///
    /// # Errors
    /// It does not fit, or no member can be added now.
    pub fn can_grow(&self, member: &Member) -> Result<Shape, GrowError> {
        if self.life != Life::Active || self.is_stopping() {
            return Err(GrowError::NotServing);
        }
        if let Some(first) = self.seats.iter().position(|seat| seat.uuid == member.uuid) {
            return Err(ShapeError::Twice { first, second: self.seats.len() }.into());
        }
        if self.shape.moved.is_some() {
            return Err(GrowError::Reshaping);
        }
        if self.meta.join.is_some() || self.leaving != 0 {
            return Err(GrowError::UnderWay);
        }
        Ok(self.shape.grown(member)?)
    }

    /// Adds a device, which holds nothing, behind the other members; the driver knows it by that position from here on. It is one of
    /// them once [`Array::status`] names it among them, and came to nothing if [`Array::places`] does not count it any more.
    ///
    /// # Errors
    /// See [`Array::can_grow`].
    pub fn grow(&mut self, member: Member) -> Result<(), GrowError> {
        self.can_grow(&member)?;
        self.meta.join = Some(Joining::behind_the_others(self.seats.len(), member));
        self.drive();
        Ok(())
    }

    /// Members, with one that is just being added.
    pub fn places(&self) -> usize {
        let waits = |joining: &Joining| joining.position == self.seats.len();
        self.seats.len() + usize::from(self.meta.join.as_ref().is_some_and(waits))
    }

    /// Whether this member is just being added, and no other can know it yet.
    pub(crate) fn is_unknown(&self, member: usize) -> bool {
        self.meta.join.is_some_and(|joining| joining.grows && joining.position == member)
    }

    /// Begins: nothing else is done with members now.
    pub(crate) fn begin_to_grow(&mut self, member: Member) {
        let role = Role::Left(self.events);
        self.meta.added = Some(self.seats.len());
        self.seats.push(Seat { uuid: member.uuid, role, present: true, load: 0, writing: 0, room: None });
        if self.shape.level != Level::Raid1 {
            return self.write_first_superblock();
        }
        // Where a copy keeps its marks follows from its size, and nothing else of the array changes with it.
        let Ok(shape) = self.shape.grown(&member) else { return self.grows_not() };
        self.shape = shape;
        let job = self.begin_stage(Stage::JoinMarks);
        self.asked(job);
    }

    /// The new member's superblock, which the others' follow.
    pub(crate) fn write_first_superblock(&mut self) {
        let Some(Joining { position, member, .. }) = self.meta.join else { return };
        let Some(shape) = self.shape_to_be(&member) else { return self.grows_not() };
        let mut roles = self.roles();
        roles[position] = self.role_of_new();
        let job = self.begin_stage(Stage::GrowFirst);
        self.events += 1;
        let data: std::sync::Arc<[u8]> = self.superblock(position, &shape, &roles).encode().into();
        self.events -= 1;
        let (lba, part) = (superblock_sector(member.sectors), 0..data.len());
        let piece = Piece { member: position, lba, before: 0, count: 0 };
        self.ask(job, piece, What::Write { lba, data, part, fua: true });
    }

    fn shape_to_be(&self, member: &Member) -> Option<Shape> {
        match self.shape.level {
            Level::Raid1 => Some(self.shape.clone()),
            Level::Raid0 | Level::Concat => self.shape.grown(member).ok(),
        }
    }

    fn role_of_new(&self) -> Role {
        if self.shape.level == Level::Raid1 { Role::Rebuilding } else { Role::Active }
    }

    /// The new member's superblock is durable: the others may know it.
    pub(crate) fn first_superblock_is_written(&mut self) {
        let Some(Joining { position, member, .. }) = self.meta.join else { return };
        let failed = self.meta.failed & bit(position) != 0 || !self.seats[position].present;
        let Some(shape) = self.shape_to_be(&member).filter(|_| !failed) else { return self.grows_not() };
        self.meta.join = None;
        self.shape = shape;
        self.seats[position].role = self.role_of_new();
        if self.shape.level == Level::Raid1 {
            self.copy_what_is_marked();
        } else {
            self.reshape.end();
        }
        self.begin_superblocks();
    }

    /// All others have noted the new member, or failed.
    pub(crate) fn added_is_noted(&mut self) {
        if self.meta.added.take().is_some() {
            self.holes = Holes::new(self.sectors());
        }
    }

    /// The new member failed before any other knew it.
    pub(crate) fn grows_not(&mut self) {
        let Some(Joining { position, .. }) = self.meta.join.take() else { return };
        self.meta.added = None;
        self.seats.truncate(position);
        self.shape.members.truncate(position);
        self.shape.data.truncate(position);
        self.commands.retain(|command| command.member < position);
        self.parts.retain(|_, part| part.member < position);
    }
}
