//! FUSE in front of the files. Every file is opened for direct I/O: a write arrives as the program made it, in one piece.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use openvsl_files::{Files, FilesError, Make};
use rustix::fs::FallocateFlags;

/// How long the kernel may remember names and sizes: nobody else changes them.
const TTL: Duration = Duration::from_secs(1);
const GENERATION: Generation = Generation(0);
/// Requests that the kernel may have under way here without waiting.
const DEPTH: u16 = 256;
/// Linux's `O_DSYNC`, which `O_SYNC` contains.
const O_DSYNC: i32 = 0o10000;
/// `_IOW(0x95, 2, uint)`: the original's "write atomically from now on".
const ATOMIC_WRITES: u32 = 0x4004_9502;

pub(crate) struct DirectFs {
    files: Arc<Files>,
    /// Programs that ask are told that writes are atomic.
    atomic: bool,
}

type Answer<T> = Result<T, FilesError>;

fn errno(error: &FilesError) -> Errno {
    Errno::from_i32(error.errno().raw_os_error())
}

fn empty(reply: ReplyEmpty, result: Answer<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

fn flags() -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
}

fn kind(mode: u32) -> FileType {
    match mode & 0o170_000 {
        0o040_000 => FileType::Directory,
        0o120_000 => FileType::Symlink,
        0o010_000 => FileType::NamedPipe,
        0o140_000 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

impl DirectFs {
    pub(crate) fn new(files: Arc<Files>, atomic: bool) -> DirectFs {
        DirectFs { files, atomic }
    }

    fn attributes(&self, number: u64) -> Answer<FileAttr> {
        let found = self.files.attributes(number)?;
        Ok(FileAttr {
            ino: INodeNo(number),
            size: found.size,
            blocks: found.size.div_ceil(512),
            atime: found.modified,
            mtime: found.modified,
            ctime: found.changed,
            crtime: found.modified,
            kind: kind(found.mode),
            perm: (found.mode & 0o7777) as u16,
            nlink: found.named.into(),
            uid: found.uid,
            gid: found.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn make(&self, request: &Request, parent: u64, name: &OsStr, make: Make) -> Answer<FileAttr> {
        let make = make.owned_by(request.uid(), request.gid());
        self.attributes(self.files.make(parent, name.as_bytes(), &make)?)
    }

    fn resize(&self, number: u64, size: u64) -> Answer<()> {
        self.files.truncate(number, size)
    }

    fn allocate(&self, number: u64, offset: u64, length: u64, mode: FallocateFlags) -> Result<(), Errno> {
        let end = offset.saturating_add(length);
        let keep = mode.contains(FallocateFlags::KEEP_SIZE);
        let what = mode - FallocateFlags::KEEP_SIZE;
        let punch = what == FallocateFlags::PUNCH_HOLE || what == FallocateFlags::ZERO_RANGE;
        if !punch && !what.is_empty() {
            return Err(Errno::EOPNOTSUPP);
        }
        // No space is set aside: a sparse device takes it as it is written.
        let done = || {
            if punch {
                self.files.punch(number, offset..end)?;
            }
            if !keep && end > self.files.attributes(number)?.size {
                self.files.truncate(number, end)?;
            }
            Ok(())
        };
        done().map_err(|error| errno(&error))
    }
}

fn entry(reply: ReplyEntry, result: Answer<FileAttr>) {
    match result {
        Ok(attributes) => reply.entry(&TTL, &attributes, GENERATION),
        Err(error) => reply.error(errno(&error)),
    }
}

fn known(reply: ReplyAttr, result: Answer<FileAttr>) {
    match result {
        Ok(attributes) => reply.attr(&TTL, &attributes),
        Err(error) => reply.error(errno(&error)),
    }
}

impl Filesystem for DirectFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        // Programs that map files shared (MariaDB's transaction log) work as well.
        let _ = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        let _ = config.set_max_write(self.files.device().capabilities().max_write_bytes);
        let _ = config.set_max_background(DEPTH);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.files.lookup(parent.0, name.as_bytes()).and_then(|number| self.attributes(number)));
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        known(reply, self.attributes(inode.0));
    }

    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let modified = mtime.map(|time| match time {
            TimeOrNow::SpecificTime(time) => time,
            TimeOrNow::Now => SystemTime::now(),
        });
        let resized = size.map_or(Ok(()), |size| self.resize(inode.0, size));
        let other = mode.is_some() || uid.is_some() || gid.is_some() || modified.is_some();
        let set = resized.and_then(|()| match other {
            true => self.files.set(inode.0, mode, (uid, gid), modified),
            false => Ok(()),
        });
        known(reply, set.and_then(|()| self.attributes(inode.0)));
    }

    fn readlink(&self, _request: &Request, inode: INodeNo, reply: ReplyData) {
        match self.files.target(inode.0) {
            Ok(target) => reply.data(&target),
            Err(_) => reply.error(Errno::EINVAL),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        if matches!(mode & 0o170_000, 0o020_000 | 0o060_000) {
            return reply.error(Errno::EPERM);
        }
        let mut make = Make::file(0);
        make.mode = mode;
        entry(reply, self.make(request, parent.0, name, make));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        entry(reply, self.make(request, parent.0, name, Make::directory(mode & 0o7777)));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        entry(reply, self.make(request, parent.0, name, Make::link(target.as_os_str().as_bytes())));
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.files.remove(parent.0, name.as_bytes(), false));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.files.remove(parent.0, name.as_bytes(), true));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !RenameFlags::RENAME_NOREPLACE.contains(flags) {
            return reply.error(Errno::EINVAL);
        }
        let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
        empty(reply, self.files.rename(parent.0, name, new_parent.0, new_name, flags.is_empty()));
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.files.hold(inode.0) {
            Ok(()) => reply.opened(FileHandle(0), flags()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.make(request, parent.0, name, Make::file(mode & 0o7777));
        match made.and_then(|attributes| self.files.hold(attributes.ino.0).map(|()| attributes)) {
            Ok(attributes) => reply.created(&TTL, &attributes, GENERATION, FileHandle(0), flags()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.files.read(inode.0, offset, size as usize) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = match flags.0 & O_DSYNC {
            0 => self.files.write(inode.0, offset, data),
            _ => self.files.write_durable(inode.0, offset, data),
        };
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match self.allocate(inode.0, offset, length, FallocateFlags::from_bits_retain(mode as u32)) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        empty(reply, self.files.sync(inode.0));
    }

    fn fsyncdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        empty(reply, self.files.sync(inode.0));
    }

    fn flush(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn opendir(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.files.hold(inode.0) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn releasedir(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.files.release(inode.0));
    }

    fn release(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.files.release(inode.0));
    }

    fn readdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.files.list(inode.0).and_then(|names| Ok((names, self.files.parent(inode.0)?)));
        let (names, parent) = match listed {
            Ok(listed) => listed,
            Err(error) => return reply.error(errno(&error)),
        };
        let own = [(b".".to_vec(), inode.0), (b"..".to_vec(), parent)];
        for (next, (name, number)) in (1..).zip(own.into_iter().chain(names)).skip(offset as usize) {
            let mode = self.files.attributes(number).map_or(0, |found| found.mode);
            if reply.add(INodeNo(number), next, kind(mode), std::ffi::OsString::from_vec(name)) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let (files, _) = self.files.limits();
        let device = self.files.device().capabilities();
        let sectors = device.sectors;
        let free = files - self.files.count();
        reply.statfs(sectors, sectors, sectors, files, free, device.sector_bytes, 255, device.sector_bytes);
    }

    fn ioctl(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _flags: IoctlFlags,
        command: u32,
        _data: &[u8],
        _out: u32,
        reply: ReplyIoctl,
    ) {
        match command == ATOMIC_WRITES && self.atomic {
            true => reply.ioctl(0, &[]),
            false => reply.error(Errno::ENOTTY),
        }
    }
}
