//! The functions that SQLite calls.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use super::handle::{Code, Handle, code};
use super::places::Places;
use super::{Find, Register};
use crate::{FilesError, ROOT};

/// The longest name of a database: a device's path and a file's name.
const LONGEST: c_int = 1024;
/// What SQLite may rely on. Appends are not safe: size and data become durable at the same time, in no order.
const OFFERED: c_int = ffi::SQLITE_IOCAP_BATCH_ATOMIC
    | ffi::SQLITE_IOCAP_ATOMIC4K
    | ffi::SQLITE_IOCAP_ATOMIC8K
    | ffi::SQLITE_IOCAP_ATOMIC16K
    | ffi::SQLITE_IOCAP_ATOMIC32K
    | ffi::SQLITE_IOCAP_ATOMIC64K
    | ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
    | ffi::SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN;

/// What SQLite has in its memory of an open file.
#[repr(C)]
struct Open {
    file: sqlite3_file,
    handle: ManuallyDrop<Handle>,
}

/// A VFS of ours: its devices, and the VFS whose clock and dice it uses.
struct Ours {
    places: Places,
    base: *mut sqlite3_vfs,
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Without shared memory: WAL takes exclusive locking.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Registers a VFS, for as long as the process lives.
///
/// # Safety
/// The functions are those of the SQLite that is to have it.
pub(super) unsafe fn register(name: &'static CStr, places: Places, find: Find, register: Register) -> Result<(), Code> {
    // SAFETY: the default VFS, which stays.
    let base = unsafe { find(std::ptr::null()) };
    // SAFETY: SQLite's list of VFSs, where its own is always.
    let (size, version) = unsafe { base.as_ref() }.map_or((0, 0), |base| (base.szOsFile, base.iVersion));
    if size == 0 || version < 2 {
        return Err(ffi::SQLITE_ERROR);
    }
    let ours = Box::into_raw(Box::new(Ours { places, base }));
    // SAFETY: as above. What names and loads libraries stays the base's: none of it looks at the VFS that it is called with.
    let mut vfs = unsafe { *base };
    vfs.iVersion = 2;
    vfs.szOsFile = size.max(size_of::<Open>() as c_int);
    vfs.mxPathname = LONGEST;
    vfs.pNext = null_mut();
    vfs.zName = name.as_ptr();
    vfs.pAppData = ours.cast();
    vfs.xOpen = Some(open);
    vfs.xDelete = Some(delete);
    vfs.xAccess = Some(access);
    vfs.xFullPathname = Some(full_name);
    vfs.xRandomness = Some(randomness);
    vfs.xGetLastError = None;
    let vfs = Box::into_raw(Box::new(vfs));
    // SAFETY: it is filled in, and lives as long as the process.
    match unsafe { register(vfs, 0) } {
        ffi::SQLITE_OK => Ok(()),
        code => Err(code),
    }
}

/// The VFS that a function was called for.
///
/// # Safety
/// It is one that `register` made.
unsafe fn ours<'a>(vfs: *mut sqlite3_vfs) -> &'a Ours {
    // SAFETY: `register` set it; it lives as long as the process.
    unsafe { &*(*vfs).pAppData.cast::<Ours>() }
}

/// The file that a function was called for.
///
/// # Safety
/// It is open, and nobody else uses it meanwhile: a connection is used by one thread at a time.
unsafe fn handle<'a>(file: *mut sqlite3_file) -> &'a mut Handle {
    // SAFETY: `open` made it.
    unsafe { &mut (*file.cast::<Open>()).handle }
}

/// A name that SQLite gave.
///
/// # Safety
/// It is a string that ends with a zero, or nothing.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a str> {
    // SAFETY: as above.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().ok()).flatten()
}

fn said(result: Result<(), Code>) -> c_int {
    result.map_or_else(|code| code, |()| ffi::SQLITE_OK)
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite has room for an `Open` there.
    unsafe { (*file).pMethods = std::ptr::null() };
    if name.is_null() {
        // A temporary file that nothing has to find again: the base VFS's.
        // SAFETY: its own function, with room for its own file; `szOsFile` is enough for both.
        return unsafe {
            let base = ours(vfs).base;
            (*base).xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| open(base, name, file, flags, out))
        };
    }
    // SAFETY: SQLite's arguments.
    let opened = unsafe { Handle::open(&ours(vfs).places, text(name).unwrap_or_default(), flags) };
    match opened {
        Ok(handle) => {
            // SAFETY: SQLite has room for an `Open` there; nothing in it was initialised before.
            unsafe {
                file.cast::<Open>()
                    .write(Open { file: sqlite3_file { pMethods: &METHODS }, handle: ManuallyDrop::new(handle) });
                if !out.is_null() {
                    *out = flags;
                }
            }
            ffi::SQLITE_OK
        }
        Err(error) => code(&error, ffi::SQLITE_CANTOPEN),
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite calls nothing of the file afterwards.
    let handle = unsafe {
        (*file).pMethods = std::ptr::null();
        ManuallyDrop::take(&mut (*file.cast::<Open>()).handle)
    };
    handle.close().map_or(ffi::SQLITE_IOERR_CLOSE, |()| ffi::SQLITE_OK)
}

unsafe extern "C" fn read(file: *mut sqlite3_file, buffer: *mut c_void, bytes: c_int, offset: sqlite3_int64) -> c_int {
    // SAFETY: SQLite's buffer, of so many bytes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes as usize) };
    // SAFETY: the file is open.
    match unsafe { handle(file) }.read(offset as u64, buffer) {
        Ok(found) if found < buffer.len() => {
            buffer[found..].fill(0);
            ffi::SQLITE_IOERR_SHORT_READ
        }
        result => said(result.map(drop)),
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, data: *const c_void, bytes: c_int, offset: sqlite3_int64) -> c_int {
    // SAFETY: SQLite's data, of so many bytes; and the file is open.
    let (handle, data) = unsafe { (handle(file), std::slice::from_raw_parts(data.cast::<u8>(), bytes as usize)) };
    said(handle.write(offset as u64, data))
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    // SAFETY: the file is open.
    said(unsafe { handle(file) }.truncate(size as u64))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: the file is open.
    said(unsafe { handle(file) }.sync())
}

unsafe extern "C" fn size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    // SAFETY: the file is open, and SQLite waits for the size there.
    said(unsafe { handle(file).size().map(|found| *size = found as i64) })
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: the file is open.
    said(unsafe { handle(file) }.lock(level))
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: the file is open.
    unsafe { handle(file) }.unlock(level);
    ffi::SQLITE_OK
}

unsafe extern "C" fn reserved(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: the file is open, and SQLite waits for the answer there.
    unsafe { *out = handle(file).reserved().into() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    if operation == ffi::SQLITE_FCNTL_PRAGMA {
        let words = argument.cast::<*const c_char>();
        // SAFETY: SQLite gives three strings: room for an answer, the pragma's name, and its value if it has one.
        let (name, value) = unsafe { (*words.add(1), *words.add(2)) };
        // SAFETY: as above; and the file is open.
        return said(unsafe {
            handle(file).pragma(CStr::from_ptr(name), (!value.is_null()).then(|| CStr::from_ptr(value)))
        });
    }
    // SAFETY: the file is open.
    said(unsafe { handle(file) }.control(operation))
}

unsafe extern "C" fn sector(_file: *mut sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: the file is open.
    let batches = unsafe { handle(file) }.batches();
    if batches { OFFERED } else { OFFERED & !ffi::SQLITE_IOCAP_BATCH_ATOMIC }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, durable: c_int) -> c_int {
    // SAFETY: SQLite's arguments.
    let found = unsafe { ours(vfs).places.find(text(name).unwrap_or_default()) };
    let deleted = found.and_then(|(files, name)| {
        files.remove(ROOT, name, false)?;
        if durable != 0 { Ok(files.device().flush()?) } else { Ok(()) }
    });
    match deleted {
        Ok(()) => ffi::SQLITE_OK,
        Err(FilesError::NotFound) => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(_) => ffi::SQLITE_IOERR_DELETE,
    }
}

unsafe extern "C" fn access(vfs: *mut sqlite3_vfs, name: *const c_char, _flags: c_int, out: *mut c_int) -> c_int {
    // SAFETY: SQLite's arguments.
    let found = unsafe { ours(vfs).places.find(text(name).unwrap_or_default()) };
    // SQLite takes a journal without content for none, and looks for it often.
    let there = found.and_then(|(files, name)| files.attributes(files.lookup(ROOT, name)?));
    // SAFETY: SQLite waits for the answer there.
    unsafe { *out = there.is_ok_and(|file| file.size > 0).into() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_name(_vfs: *mut sqlite3_vfs, name: *const c_char, room: c_int, out: *mut c_char) -> c_int {
    // SAFETY: a string of SQLite's.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if name.len() > room as usize {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: the room is large enough, and elsewhere.
    unsafe { out.copy_from_nonoverlapping(name.as_ptr().cast(), name.len()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(vfs: *mut sqlite3_vfs, bytes: c_int, out: *mut c_char) -> c_int {
    // SAFETY: the base VFS's own function, with what SQLite gave.
    unsafe {
        let base = ours(vfs).base;
        (*base).xRandomness.map_or(0, |randomness| randomness(base, bytes, out))
    }
}
