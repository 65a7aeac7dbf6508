//! A VFS of SQLite: databases are files of a device, and a transaction is one atomic, durable batch.
//!
//! SQLite keeps its rollback journal in memory then, and never writes it, provided that it was compiled with
//! `SQLITE_ENABLE_BATCH_ATOMIC_WRITE`. Where it was not, or where a transaction is larger than what the device makes atomic, it
//! writes its journal as always, and is as safe as always.
//!
//! ```
//! # // `.cargo/config.toml` sets the flag for this workspace.
//! use std::sync::Arc;
//! use openvsl_files::{Files, sqlite};
//! use rusqlite::{Connection, OpenFlags};
//!
//! let files = Arc::new(Files::create(openvsl::Device::memory(64 << 20, 4096)?, 100)?);
//! sqlite::register(c"app", files.clone())?;
//! let database = Connection::open_with_flags_and_vfs("app.db", OpenFlags::default(), c"app")?;
//! database.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1);")?;
//! assert!(files.lookup(openvsl_files::ROOT, b"app.db-journal").is_err(), "there was none");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A device belongs to one process, so locks are kept in its memory. Threads of it may use a database together; in WAL mode only with
//! `PRAGMA locking_mode = EXCLUSIVE`.
//!
//! With exclusive locking SQLite keeps a journal that it once wrote, so the first transaction that no batch takes ends all batches of
//! that connection: leave `PRAGMA locking_mode` alone with batches.
//!
//! # The extension
//!
//! `libopenvsl_files.so` can be loaded by any SQLite. It registers the VFS `openvsl`, where a database's name is the path of a device
//! and, behind a slash, that of the database: `file:/srv/store.vsl/app.db?vfs=openvsl`. On a device that is empty the directory of
//! files is made. The device is open as long as one of its databases is.

// Not a library's: `sqlite-plugin` 0.11 passes on no file controls, so it knows no batch-atomic writes, and needs libclang.
mod handle;
mod locks;
mod methods;
mod places;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use rusqlite::ffi;

use crate::Files;
use places::Places;

/// Why SQLite has no VFS of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SQLite does not take the VFS: error {code}")]
pub struct NotRegistered {
    code: c_int,
}

/// Registers a VFS of a name whose databases are files of a device, with the SQLite that this program is linked with.
///
/// It stays until the process ends.
///
/// # Errors
/// SQLite does not take it.
pub fn register(name: &'static CStr, files: Arc<Files>) -> Result<(), NotRegistered> {
    let find = ffi::sqlite3_vfs_find;
    let vfs_register = ffi::sqlite3_vfs_register;
    // SAFETY: these are SQLite's own.
    unsafe { methods::register(name, Places::one(files), find, vfs_register) }.map_err(|code| NotRegistered { code })
}

/// Where two functions stand in SQLite's list of what extensions may call. The list only grows.
const VFS_FIND: usize = 141;
const VFS_REGISTER: usize = 142;

/// What SQLite calls when it loads the extension.
///
/// # Safety
/// SQLite calls it, with its list of functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_openvslfiles_init(
    _database: *mut c_void,
    _message: *mut *mut c_char,
    api: *const *const c_void,
) -> c_int {
    let registered = {
        // SAFETY: the list has these two at these places since 2006.
        let (find, register) = unsafe { (*api.add(VFS_FIND), *api.add(VFS_REGISTER)) };
        if find.is_null() || register.is_null() {
            return ffi::SQLITE_ERROR;
        }
        // SAFETY: functions of these types, as `sqlite3ext.h` declares them.
        let (find, register) = unsafe {
            (std::mem::transmute::<*const c_void, Find>(find), std::mem::transmute::<*const c_void, Register>(register))
        };
        // SAFETY: they are SQLite's own.
        unsafe { methods::register(c"openvsl", Places::any(), find, register) }
    };
    registered.map_or_else(|code| code, |()| ffi::SQLITE_OK_LOAD_PERMANENTLY)
}

type Find = unsafe extern "C" fn(*const c_char) -> *mut ffi::sqlite3_vfs;
type Register = unsafe extern "C" fn(*mut ffi::sqlite3_vfs, c_int) -> c_int;
