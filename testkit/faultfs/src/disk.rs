//! The file system itself: files, names, open handles, power and faults. FUSE and the control socket stand in front.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use serde::Serialize;

use crate::dice::{Cut, Dice};
use crate::inode::{Change, Inode};
use crate::names::Names;
use crate::rules::{Dirty, Effect, Kind, Rules};
use crate::store::Store;

/// The number of the directory.
pub const ROOT: u64 = 1;

/// What power cuts did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Changes that no sync had covered.
    pub unsynced: usize,
    /// How many of them reached the store all the same, at least in part.
    pub kept: usize,
}

/// What an operation is about.
pub(crate) enum Target {
    Inode(u64),
    Name(OsString),
}

/// An open file.
struct Handle {
    inode: u64,
    /// How often the power had been cut when it was opened.
    era: u64,
}

/// The file system.
pub struct Disk {
    store: Store,
    names: Names,
    inodes: HashMap<u64, Inode>,
    handles: HashMap<u64, Handle>,
    last_inode: u64,
    last_handle: u64,
    on: bool,
    /// How often the power was cut.
    era: u64,
    damage: Damage,
    /// The faults.
    pub rules: Rules,
    counts: BTreeMap<Kind, u64>,
}

impl Disk {
    /// Opens a store.
    ///
    /// # Errors
    /// The directory behind it failed.
    pub fn open(store: &Path) -> io::Result<Disk> {
        let store = Store::open(store)?;
        let (mut inodes, mut names, mut last_inode) = (HashMap::new(), BTreeMap::new(), ROOT);
        for name in store.names()? {
            last_inode += 1;
            let (view, durable) = store.adopt(last_inode, &name)?;
            inodes.insert(last_inode, Inode::new(view, durable, 0o600)?);
            names.insert(name, last_inode);
        }
        Ok(Disk {
            store,
            names: Names::new(names),
            inodes,
            handles: HashMap::new(),
            last_inode,
            last_handle: 0,
            on: true,
            era: 0,
            damage: Damage::default(),
            rules: Rules::default(),
            counts: BTreeMap::new(),
        })
    }

    /// The directory behind it.
    pub fn store(&self) -> &Path {
        self.store.path()
    }

    /// Whether the power is on.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// How often the power was cut.
    pub fn era(&self) -> u64 {
        self.era
    }

    /// What all cuts did together.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// Operations so far, by kind.
    pub fn counts(&self) -> &BTreeMap<Kind, u64> {
        &self.counts
    }

    /// Changes that no sync has covered yet.
    pub fn unsynced(&self) -> usize {
        self.names.pending() + self.inodes.values().map(Inode::pending).sum::<usize>()
    }

    /// Cuts the power: what no sync covered is lost, or as the cut says, and everything fails until the power is on again.
    ///
    /// # Errors
    /// The directory behind the file system failed.
    pub fn cut(&mut self, cut: Cut) -> io::Result<Damage> {
        self.on = false;
        self.era += 1;
        let mut damage = Damage { unsynced: self.unsynced(), kept: 0 };
        let mut dice = match cut {
            Cut::Drop => None,
            Cut::Torn(seed) => Some(Dice::new(seed, true)),
            Cut::Tears(seed) => Some(Dice::new(seed, false)),
        };
        let names = match &mut dice {
            Some(dice) => dice.below(self.names.pending() as u64 + 1) as usize,
            None => 0,
        };
        damage.kept += names;
        self.names.settle(names, &self.store)?;
        // In order, so that a seed always means the same.
        let mut numbers: Vec<_> = self.inodes.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            if let Some(inode) = self.inodes.get_mut(&number) {
                damage.kept += inode.cut(dice.as_mut())?;
            }
        }
        self.handles.clear();
        self.forget_unused()?;
        self.damage.unsynced += damage.unsynced;
        self.damage.kept += damage.kept;
        Ok(damage)
    }

    /// Switches the power on again. Files that were open stay unusable.
    pub fn switch_on(&mut self) {
        self.on = true;
    }

    /// Counts an operation and says what happens to it, and after how long.
    pub(crate) fn decide(&mut self, kind: Kind, target: &Target, range: &Range<u64>) -> (Vec<Effect>, Duration) {
        *self.counts.entry(kind).or_default() += 1;
        let name = match target {
            Target::Inode(number) => self.names.name_of(*number),
            Target::Name(name) => Some(name.as_os_str()),
        };
        let effects = self.rules.decide(kind, name.and_then(OsStr::to_str), range);
        let delay = effects.iter().map(|effect| match effect {
            Effect::Delay(ms) => u64::from(*ms),
            _ => 0,
        });
        let delay = Duration::from_millis(delay.sum());
        (effects, delay)
    }

    fn powered(&self) -> Result<(), Errno> {
        if self.on { Ok(()) } else { Err(Errno::IO) }
    }

    fn file(&mut self, inode: u64, handle: Option<u64>) -> Result<&mut Inode, Errno> {
        self.powered()?;
        if let Some(handle) = handle
            && self.handles.get(&handle).is_none_or(|handle| handle.era != self.era)
        {
            return Err(Errno::IO);
        }
        self.inodes.get_mut(&inode).ok_or(Errno::STALE)
    }

    /// The file of a name.
    pub(crate) fn lookup(&self, name: &OsStr) -> Result<u64, Errno> {
        self.powered()?;
        self.names.get(name).ok_or(Errno::NOENT)
    }

    /// A file's size, blocks and permission bits.
    pub(crate) fn attributes(&mut self, inode: u64, handle: Option<u64>) -> Result<(u64, u64, u32), Errno> {
        let file = self.file(inode, handle)?;
        Ok((file.size().map_err(errno)?, file.blocks().map_err(errno)?, file.mode))
    }

    pub(crate) fn set_mode(&mut self, inode: u64, mode: u32) -> Result<(), Errno> {
        self.file(inode, None)?.mode = mode & 0o7777;
        Ok(())
    }

    pub(crate) fn list(&self) -> Result<Vec<(OsString, u64)>, Errno> {
        self.powered()?;
        Ok(self.names.all().map(|(name, number)| (name.clone(), number)).collect())
    }

    pub(crate) fn open_file(&mut self, inode: u64) -> Result<u64, Errno> {
        self.file(inode, None)?;
        self.last_handle += 1;
        self.handles.insert(self.last_handle, Handle { inode, era: self.era });
        Ok(self.last_handle)
    }

    pub(crate) fn close(&mut self, handle: u64) -> Result<(), Errno> {
        self.handles.remove(&handle);
        self.forget_unused().map_err(errno)
    }

    pub(crate) fn create(&mut self, name: &OsStr, mode: u32, effects: &[Effect]) -> Result<(u64, u64), Errno> {
        self.powered()?;
        fail(effects)?;
        if name.as_encoded_bytes().starts_with(b".faultfs") {
            return Err(Errno::INVAL);
        }
        if self.names.get(name).is_some() {
            return Err(Errno::EXIST);
        }
        let number = self.last_inode + 1;
        let (view, durable) = self.store.create(number).map_err(errno)?;
        self.last_inode = number;
        self.inodes.insert(number, Inode::new(view, durable, mode & 0o7777).map_err(errno)?);
        self.names.set(name, number);
        Ok((number, self.open_file(number)?))
    }

    pub(crate) fn unlink(&mut self, name: &OsStr, effects: &[Effect]) -> Result<(), Errno> {
        self.lookup(name)?;
        fail(effects)?;
        self.names.remove(name);
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: &OsStr, to: &OsStr, replace: bool, effects: &[Effect]) -> Result<(), Errno> {
        let number = self.lookup(from)?;
        fail(effects)?;
        match self.names.get(to) {
            Some(_) if !replace => return Err(Errno::EXIST),
            // Two names of one file: nothing happens.
            Some(other) if other == number => return Ok(()),
            _ => self.names.rename(from, to),
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, at: (u64, u64), offset: u64, len: u32, effects: &[Effect]) -> Result<Vec<u8>, Errno> {
        let file = self.file(at.0, Some(at.1))?;
        fail(effects)?;
        let mut data = file.read(offset, shortened(len, effects) as usize).map_err(errno)?;
        flip(&mut data, effects);
        Ok(data)
    }

    /// Writes; `durable` as with `O_DSYNC`. Gives how many bytes.
    pub(crate) fn write(
        &mut self,
        at: (u64, u64),
        offset: u64,
        mut data: Vec<u8>,
        durable: bool,
        effects: &[Effect],
    ) -> Result<u32, Errno> {
        let file = self.file(at.0, Some(at.1))?;
        fail(effects)?;
        let len = shortened(data.len() as u32, effects);
        data.truncate(len as usize);
        flip(&mut data, effects);
        if effects.contains(&Effect::Lost) {
            return Ok(len);
        }
        let by = effects.iter().find_map(|effect| match effect {
            Effect::Misdirect(by) => Some(*by),
            _ => None,
        });
        let change = Change::Write { at: offset.saturating_add_signed(by.unwrap_or(0)), data };
        let changed = if durable { file.change_durably(change) } else { file.change(change) };
        changed.map_err(errno)?;
        Ok(len)
    }

    /// Anything but a write.
    pub(crate) fn change(
        &mut self,
        inode: u64,
        handle: Option<u64>,
        change: Change,
        effects: &[Effect],
    ) -> Result<(), Errno> {
        let file = self.file(inode, handle)?;
        fail(effects)?;
        if effects.contains(&Effect::Lost) {
            return Ok(());
        }
        file.change(change).map_err(errno)
    }

    pub(crate) fn sync(&mut self, inode: u64, handle: u64, effects: &[Effect]) -> Result<(), Errno> {
        let file = self.file(inode, Some(handle))?;
        for effect in effects {
            if let Effect::Fail { error, dirty } = effect {
                match dirty {
                    Dirty::Keep => {}
                    Dirty::Clean => file.give_up(false).map_err(errno)?,
                    Dirty::Evict => file.give_up(true).map_err(errno)?,
                }
                return Err((*error).into());
            }
        }
        if effects.contains(&Effect::Lost) {
            return Ok(());
        }
        file.sync().map_err(errno)
    }

    pub(crate) fn sync_names(&mut self, effects: &[Effect]) -> Result<(), Errno> {
        self.powered()?;
        fail(effects)?;
        if effects.contains(&Effect::Lost) {
            return Ok(());
        }
        self.names.settle(self.names.pending(), &self.store).map_err(errno)?;
        self.forget_unused().map_err(errno)
    }

    /// Lets go of files that have no name, now or after a power cut, and that nobody has open.
    fn forget_unused(&mut self) -> io::Result<()> {
        let used =
            |number: &u64| self.names.knows(*number) || self.handles.values().any(|handle| handle.inode == *number);
        let unused: Vec<_> = self.inodes.keys().copied().filter(|number| !used(number)).collect();
        for number in unused {
            self.inodes.remove(&number);
            self.store.forget(number)?;
        }
        Ok(())
    }
}

/// Fails as the effects say.
fn fail(effects: &[Effect]) -> Result<(), Errno> {
    effects.iter().try_for_each(|effect| match effect {
        Effect::Fail { error, .. } => Err((*error).into()),
        _ => Ok(()),
    })
}

fn shortened(len: u32, effects: &[Effect]) -> u32 {
    effects.iter().fold(len, |len, effect| match effect {
        Effect::Short(bytes) => len.min(*bytes),
        _ => len,
    })
}

fn flip(data: &mut [u8], effects: &[Effect]) {
    for effect in effects {
        if let Effect::Flip(bit) = effect
            && !data.is_empty()
        {
            let bit = bit % (8 * data.len() as u64);
            data[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
