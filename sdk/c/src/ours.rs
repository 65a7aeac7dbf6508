//! What the published API left to the kernel: opening, reading, writing without waiting for the media, flushing.

use std::ffi::{c_char, c_void};

use openvsl::{CreateOptions, Device};

use crate::handles::{Failure, answer, device, invalid, keep, message, text};
use crate::nvm_handle_t;

/// Makes a device of `bytes` bytes, with sectors of 4096 bytes, in a new file. Returns 0, or -1.
///
/// # Safety
/// `path` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openvsl_create(path: *const c_char, bytes: u64) -> i32 {
    answer((|| {
        // SAFETY: the caller's promise.
        let path = unsafe { text(path) }?;
        openvsl::create(path, bytes, &CreateOptions::default())?;
        Ok(0)
    })())
}

/// Opens the device in a file, which this process then has alone. Returns its handle, or -1.
///
/// # Safety
/// `path` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openvsl_open(path: *const c_char) -> nvm_handle_t {
    // SAFETY: the caller's promise.
    answer((|| keep(Device::open(unsafe { text(path) }?)?))())
}

/// Connects to a device of a service, at an address as `vsl status DEVICE --field nvme_uri` prints it. Returns its handle, or -1.
///
/// # Safety
/// `address` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openvsl_connect(address: *const c_char) -> nvm_handle_t {
    // SAFETY: the caller's promise.
    answer((|| keep(Device::connect(unsafe { text(address) }?)?))())
}

/// Reads `bytes` bytes from sector `lba` on. Returns how many were read, or -1.
///
/// # Safety
/// `data` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openvsl_read(handle: nvm_handle_t, data: *mut c_void, bytes: u32, lba: u64) -> i32 {
    answer((|| {
        if data.is_null() {
            return Err(invalid("data: null"));
        }
        // SAFETY: the caller's promise.
        let data = unsafe { std::slice::from_raw_parts_mut(data.cast(), bytes as usize) };
        device(handle)?.read_into(lba, data)?;
        count(bytes)
    })())
}

/// Writes `bytes` bytes from sector `lba` on, atomically. They are durable after openvsl_flush(). Returns how many were written, or -1.
///
/// # Safety
/// `data` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openvsl_write(handle: nvm_handle_t, data: *const c_void, bytes: u32, lba: u64) -> i32 {
    answer((|| {
        if data.is_null() {
            return Err(invalid("data: null"));
        }
        // SAFETY: the caller's promise.
        let data = unsafe { std::slice::from_raw_parts(data.cast(), bytes as usize) };
        device(handle)?.write(lba, data)?;
        count(bytes)
    })())
}

/// Makes durable what was written. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn openvsl_flush(handle: nvm_handle_t) -> i32 {
    answer((|| {
        device(handle)?.flush()?;
        Ok(0)
    })())
}

/// What went wrong last on this thread, in words. The text is this thread's until its next failure.
#[unsafe(no_mangle)]
pub extern "C" fn openvsl_error() -> *const c_char {
    message()
}

/// Bytes as a result, which has 31 bits: no request is that large.
pub(crate) fn count(bytes: u32) -> Result<i32, Failure> {
    i32::try_from(bytes).map_err(|_| invalid("bytes: more than one request takes"))
}
