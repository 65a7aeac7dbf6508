//! FUSE in front of the file system. Every file is opened for direct I/O, so each system call arrives here as it was made.

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};

use crate::dice::Cut;
use crate::disk::{Damage, Disk, ROOT, Target};
use crate::inode::Change;
use crate::rules::{Dirty, Effect, Error, Kind};

/// Nothing is remembered by the kernel: a cut changes files behind its back.
const TTL: Duration = Duration::ZERO;
const GENERATION: Generation = Generation(0);
/// Operations that the kernel may have under way here without waiting.
const DEPTH: u16 = 512;
/// Linux's `O_DSYNC`, which `O_SYNC` contains.
const O_DSYNC: i32 = 0o10000;

/// What a power cut makes of an operation.
const FAILED: &[Effect] = &[Effect::Fail { error: Error::Eio, dirty: Dirty::Keep }];

/// The file system, as FUSE and the control socket share it.
#[derive(Clone)]
pub struct FaultFs {
    shared: Arc<Shared>,
}

struct Shared {
    disk: Mutex<Disk>,
    /// Rung when the power is cut: what is slow need not wait any longer.
    cut: Condvar,
    no_direct: bool,
    made: SystemTime,
}

impl FaultFs {
    /// The file system of a store; `no_direct` refuses direct I/O.
    ///
    /// # Errors
    /// The directory failed.
    pub fn open(store: &Path, no_direct: bool) -> io::Result<FaultFs> {
        let disk = Mutex::new(Disk::open(store)?);
        Ok(FaultFs { shared: Arc::new(Shared { disk, cut: Condvar::new(), no_direct, made: SystemTime::now() }) })
    }

    /// The file system itself.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.shared.disk()
    }

    /// Cuts the power.
    ///
    /// # Errors
    /// The directory behind the file system failed.
    pub fn cut(&self, cut: Cut) -> io::Result<Damage> {
        let damage = self.disk().cut(cut);
        self.shared.cut.notify_all();
        damage
    }

    /// Carries out an operation with what the rules make of it; a slow one on a thread of its own.
    fn carry_out(
        &self,
        kind: Kind,
        target: Target,
        range: Range<u64>,
        run: impl FnOnce(&mut Disk, &[Effect]) + Send + 'static,
    ) {
        let mut disk = self.disk();
        let (effects, delay) = disk.decide(kind, &target, &range);
        for effect in &effects {
            match effect {
                Effect::Cut(cut) => {
                    self.shared.cut_now(&mut disk, *cut);
                    return run(&mut disk, FAILED);
                }
                Effect::CutAfter(cut) => {
                    run(&mut disk, &effects);
                    return self.shared.cut_now(&mut disk, *cut);
                }
                _ => {}
            }
        }
        if delay.is_zero() {
            return run(&mut disk, &effects);
        }
        let era = disk.era();
        drop(disk);
        let shared = self.shared.clone();
        thread::spawn(move || {
            let waited = shared.cut.wait_timeout_while(shared.disk(), delay, |disk| disk.era() == era);
            let (mut disk, _) = waited.unwrap_or_else(PoisonError::into_inner);
            match disk.era() == era {
                true => run(&mut disk, &effects),
                false => run(&mut disk, FAILED),
            }
        });
    }

    /// Whether a read or write with these flags is refused.
    fn refuses(&self, flags: OpenFlags) -> bool {
        self.shared.no_direct && OFlags::from_bits_retain(flags.0 as u32).contains(OFlags::DIRECT)
    }

    fn attributes(&self, disk: &mut Disk, inode: u64, handle: Option<u64>) -> Result<FileAttr, Errno> {
        self.shared.attributes(disk, inode, handle)
    }
}

impl Shared {
    /// Cuts the power for a rule.
    fn cut_now(&self, disk: &mut Disk, cut: Cut) {
        if let Err(error) = disk.cut(cut) {
            eprintln!("faultfs: the store failed in a power cut: {error}");
        }
        self.cut.notify_all();
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        // Whoever panicked while holding it answered nobody; the rest goes on.
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(&self, disk: &mut Disk, inode: u64, handle: Option<u64>) -> Result<FileAttr, Errno> {
        let directory = inode == ROOT;
        let (size, blocks, mode) = match directory {
            true => (4096, 8, 0o755),
            false => disk.attributes(inode, handle).map_err(errno)?,
        };
        Ok(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks,
            atime: self.made,
            mtime: self.made,
            ctime: self.made,
            crtime: self.made,
            kind: if directory { FileType::Directory } else { FileType::RegularFile },
            perm: mode as u16,
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

/// How files are opened: past the kernel's page cache, and with writes side by side.
fn flags() -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_i32(error.raw_os_error())
}

impl Filesystem for FaultFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Direct I/O of a ring is then under way without a thread of the kernel's that waits for it, and a sync may overtake it.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(DEPTH);
        Ok(())
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut disk = self.disk();
        let found = disk.lookup(name).map_err(errno);
        match found.and_then(|inode| self.attributes(&mut disk, inode, None)) {
            Ok(attributes) => reply.entry(&TTL, &attributes, GENERATION),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(&mut self.disk(), inode.0, handle.map(|handle| handle.0)) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (inode, handle, shared) = (inode.0, handle.map(|handle| handle.0), self.shared.clone());
        let finish = move |disk: &mut Disk, effects: &[Effect]| {
            let mode = mode.map_or(Ok(()), |mode| disk.set_mode(inode, mode));
            let size = size.map_or(Ok(()), |size| disk.change(inode, handle, Change::Resize(size), effects));
            let result = mode.and(size).map_err(errno);
            match result.and_then(|()| shared.attributes(disk, inode, handle)) {
                Ok(attributes) => reply.attr(&TTL, &attributes),
                Err(error) => reply.error(error),
            }
        };
        match size {
            Some(size) => self.carry_out(Kind::Resize, Target::Inode(inode), size..u64::MAX, finish),
            None => finish(&mut self.disk(), &[]),
        }
    }

    fn unlink(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_owned();
        self.carry_out(Kind::Name, Target::Name(name.clone()), 0..1, move |disk, effects| {
            answer(reply, disk.unlink(&name, effects).map_err(errno));
        });
    }

    fn rename(
        &self,
        _request: &Request,
        _parent: INodeNo,
        from: &OsStr,
        _new_parent: INodeNo,
        to: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !RenameFlags::RENAME_NOREPLACE.contains(flags) {
            return reply.error(Errno::EINVAL);
        }
        let (from, to, replace) = (from.to_owned(), to.to_owned(), flags.is_empty());
        self.carry_out(Kind::Name, Target::Name(from.clone()), 0..1, move |disk, effects| {
            answer(reply, disk.rename(&from, &to, replace, effects).map_err(errno));
        });
    }

    fn create(
        &self,
        _request: &Request,
        _parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let (name, shared) = (name.to_owned(), self.shared.clone());
        self.carry_out(Kind::Name, Target::Name(name.clone()), 0..1, move |disk, effects| {
            let created = disk.create(&name, mode, effects).map_err(errno);
            let created = created.and_then(|(inode, handle)| Ok((shared.attributes(disk, inode, None)?, handle)));
            match created {
                Ok((attributes, handle)) => {
                    reply.created(&TTL, &attributes, GENERATION, FileHandle(handle), flags());
                }
                Err(error) => reply.error(error),
            }
        });
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.disk().open_file(inode.0) {
            Ok(handle) => reply.opened(FileHandle(handle), flags()),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if self.refuses(flags) {
            return reply.error(Errno::EINVAL);
        }
        let range = offset..offset + u64::from(size);
        self.carry_out(Kind::Read, Target::Inode(inode.0), range, move |disk, effects| {
            match disk.read((inode.0, handle.0), offset, size, effects) {
                Ok(data) => reply.data(&data),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if self.refuses(flags) {
            return reply.error(Errno::EINVAL);
        }
        let (data, range) = (data.to_vec(), offset..offset + data.len() as u64);
        let durable = flags.0 & O_DSYNC != 0;
        self.carry_out(Kind::Write, Target::Inode(inode.0), range, move |disk, effects| {
            match disk.write((inode.0, handle.0), offset, data, durable, effects) {
                Ok(written) => reply.written(written),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn fallocate(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let range = offset..offset.saturating_add(length);
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let (kind, change) = if mode == punch {
            (Kind::Punch, Change::Punch(range.clone()))
        } else if FallocateFlags::KEEP_SIZE.contains(mode) {
            (Kind::Allocate, Change::Allocate { range: range.clone(), keep_size: !mode.is_empty() })
        } else {
            return reply.error(Errno::EOPNOTSUPP);
        };
        self.carry_out(kind, Target::Inode(inode.0), range, move |disk, effects| {
            answer(reply, disk.change(inode.0, Some(handle.0), change, effects).map_err(errno));
        });
    }

    fn fsync(&self, _request: &Request, inode: INodeNo, handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        self.carry_out(Kind::Sync, Target::Inode(inode.0), 0..u64::MAX, move |disk, effects| {
            answer(reply, disk.sync(inode.0, handle.0, effects).map_err(errno));
        });
    }

    fn fsyncdir(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        self.carry_out(Kind::SyncNames, Target::Inode(ROOT), 0..1, move |disk, effects| {
            answer(reply, disk.sync_names(effects).map_err(errno));
        });
    }

    fn release(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        answer(reply, self.disk().close(handle.0).map_err(errno));
    }

    fn readdir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let files = match self.disk().list() {
            Ok(files) => files,
            Err(error) => return reply.error(errno(error)),
        };
        let own = [".", ".."].map(|name| (name.into(), ROOT, FileType::Directory));
        let files = files.into_iter().map(|(name, inode)| (name, inode, FileType::RegularFile));
        for (next, (name, inode, kind)) in (1..).zip(own.into_iter().chain(files)).skip(offset as usize) {
            if reply.add(INodeNo(inode), next, kind, &name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        match rustix::fs::statvfs(self.disk().store()) {
            Ok(found) => {
                let (files, free, block) = (found.f_files, found.f_ffree, found.f_frsize as u32);
                reply.statfs(found.f_blocks, found.f_bfree, found.f_bavail, files, free, block, 255, block);
            }
            Err(error) => reply.error(errno(error)),
        }
    }
}
