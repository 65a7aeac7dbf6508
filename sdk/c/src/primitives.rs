//! Handles, capabilities, atomic writes and trims, as published.

use std::path::PathBuf;

use openvsl::{Batch, Device, OpenOptions};

use crate::capability::value;
use crate::handles::{Failure, answer, device, invalid, keep, take};
use crate::ours::count;
use crate::{
    NVM_CAP_MAX, NVM_CAP_SUCCESS, NVM_CAP_UNKNOWN, NVM_IOV_TRIM, NVM_IOV_WRITE, NVM_PRIMITIVES_API_MAJOR,
    NVM_PRIMITIVES_API_MICRO, NVM_PRIMITIVES_API_MINOR, nvm_capability_t, nvm_capacity_t, nvm_handle_t, nvm_iovec_t,
    nvm_version_t,
};

/// Tells the version of this library. Returns 0, or -1.
///
/// # Safety
/// `version` has room for a version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_get_version(version: *mut nvm_version_t) -> i32 {
    let ours = nvm_version_t {
        major: NVM_PRIMITIVES_API_MAJOR,
        minor: NVM_PRIMITIVES_API_MINOR,
        micro: NVM_PRIMITIVES_API_MICRO,
    };
    // SAFETY: the caller's promise.
    answer(unsafe { version.as_mut() }.ok_or_else(|| invalid("version: null")).map(|version| {
        *version = ours;
        0
    }))
}

/// Takes the device in a file that is open, for a program that was written for this version of the API. This process has the device
/// alone then; openvsl_connect() shares one. Returns its handle, or -1.
///
/// # Safety
/// `version` is a version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_get_handle(fd: i32, version: *const nvm_version_t) -> nvm_handle_t {
    answer((|| {
        // SAFETY: the caller's promise.
        let version = unsafe { version.as_ref() }.ok_or_else(|| invalid("version: null"))?;
        if version.major != NVM_PRIMITIVES_API_MAJOR || version.minor > NVM_PRIMITIVES_API_MINOR {
            let (major, minor) = (version.major, version.minor);
            return Err(invalid(&format!(
                "version: {major}.{minor}: expected {NVM_PRIMITIVES_API_MAJOR}.{NVM_PRIMITIVES_API_MINOR}"
            )));
        }
        // SAFETY: asks about a number; one that is no descriptor gives -1 and errno.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        let path = std::fs::read_link(format!("/proc/self/fd/{fd}"));
        let (Ok(path), true) = (path, flags >= 0) else {
            return Err(Failure(libc::EBADF, format!("fd: {fd}: expected a descriptor of a device's file")));
        };
        let mut options = OpenOptions::default();
        options.read_only = flags & libc::O_ACCMODE == libc::O_RDONLY;
        keep(Device::open_with::<PathBuf>(&[path], &options)?)
    })())
}

/// Lets go of a device: detaches it, or hangs up. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn nvm_release_handle(handle: nvm_handle_t) -> i32 {
    answer((|| {
        take(handle)?.close()?;
        Ok(0)
    })())
}

/// Tells capabilities: those that `caps` names, `count` of them, or with `all_caps` as many as fit. Returns how many are known, or -1.
///
/// # Safety
/// `caps` has room for `count` capabilities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_get_capabilities(
    handle: nvm_handle_t,
    caps: *mut nvm_capability_t,
    count: u32,
    all_caps: bool,
) -> i32 {
    answer((|| {
        let device = device(handle)?;
        if caps.is_null() {
            return Err(invalid("caps: null"));
        }
        let count = if all_caps { count.min(NVM_CAP_MAX) } else { count };
        // SAFETY: the caller's promise.
        let caps = unsafe { std::slice::from_raw_parts_mut(caps, count as usize) };
        let mut known = 0;
        for (cap, id) in caps.iter_mut().zip(1..) {
            if all_caps {
                cap.cap_id = id;
            }
            let value = value(cap.cap_id, device.capabilities());
            cap.retcode = if value.is_some() { NVM_CAP_SUCCESS } else { NVM_CAP_UNKNOWN };
            cap.cap_value = value.unwrap_or(0);
            known += i32::from(value.is_some());
        }
        Ok(known)
    })())
}

/// Tells how large a device is, and how much of it is used: it looks at the whole map. Returns 0, or -1.
///
/// # Safety
/// `capacity` has room for a capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_get_capacity(handle: nvm_handle_t, capacity: *mut nvm_capacity_t) -> i32 {
    answer((|| {
        let device = device(handle)?;
        // SAFETY: the caller's promise.
        let capacity = unsafe { capacity.as_mut() }.ok_or_else(|| invalid("capacity: null"))?;
        let mut used = 0;
        for range in device.ranges(..) {
            let range = range?;
            used += range.end - range.start;
        }
        let sectors = device.capabilities().sectors;
        *capacity =
            nvm_capacity_t { total_phys_capacity: sectors, used_phys_capacity: used, total_logical_capacity: sectors };
        Ok(0)
    })())
}

/// Writes `bytes` bytes that lie at the address `data` from sector `lba` on: after any crash all of it is there, or nothing. It is
/// durable when this returns. Returns how many bytes were written, or -1.
///
/// # Safety
/// `data` is the address of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_atomic_write(handle: nvm_handle_t, data: u64, bytes: u32, lba: u64) -> i32 {
    answer((|| {
        // SAFETY: the caller's promise.
        let data = unsafe { bytes_at(data, bytes.into()) }?;
        device(handle)?.write_durable(lba, data)?;
        count(bytes)
    })())
}

/// Forgets `bytes` bytes from sector `lba` on; they read as zeros. It is durable when this returns. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn nvm_atomic_trim(handle: nvm_handle_t, lba: u64, bytes: u64) -> i32 {
    answer((|| {
        let device = device(handle)?;
        device.trim_durable(lba, whole_sectors(&device, bytes)?)?;
        Ok(0)
    })())
}

/// Carries out `count` writes and trims, no two of which may touch the same sector: after any crash all of them are there, or none. They
/// are durable when this returns. `flags` must be 0. Returns how many bytes were written, or -1.
///
/// # Safety
/// `iov` has `count` operations, each write of which has its data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvm_batch_atomic_operations(
    handle: nvm_handle_t,
    iov: *const nvm_iovec_t,
    operations: u32,
    flags: u32,
) -> i32 {
    answer((|| {
        let device = device(handle)?;
        if iov.is_null() || flags != 0 {
            return Err(invalid("iov: null, or flags that are not 0"));
        }
        // SAFETY: the caller's promise.
        let iov = unsafe { std::slice::from_raw_parts(iov, operations as usize) };
        let max = u64::from(device.capabilities().max_write_bytes);
        let mut batch = Batch::new().durable();
        let mut written = 0u64;
        for (operation, number) in iov.iter().zip(0..) {
            match operation.iov_opcode {
                NVM_IOV_WRITE => {
                    written = written.saturating_add(operation.iov_len);
                    if written > max {
                        return Err(invalid(&format!(
                            "the writes of the batch are larger than the device takes, {max} bytes"
                        )));
                    }
                    // SAFETY: the caller's promise.
                    let data = unsafe { bytes_at(operation.iov_base, operation.iov_len) }?;
                    batch = batch.write(operation.iov_lba, data);
                }
                NVM_IOV_TRIM => batch = batch.trim(operation.iov_lba, whole_sectors(&device, operation.iov_len)?),
                other => {
                    return Err(invalid(&format!(
                        "operation {number} of the batch: opcode {other}: expected NVM_IOV_WRITE or NVM_IOV_TRIM"
                    )));
                }
            }
        }
        device.batch(batch)?;
        count(written as u32)
    })())
}

/// Sectors in so many bytes.
pub(crate) fn whole_sectors(device: &Device, bytes: u64) -> Result<u64, Failure> {
    let sector = u64::from(device.capabilities().sector_bytes);
    match bytes.is_multiple_of(sector) {
        true => Ok(bytes / sector),
        false => Err(invalid(&format!("{bytes} bytes are no whole sectors of {sector} bytes"))),
    }
}

/// Data by their address, which the API has as a number.
///
/// # Safety
/// There are so many bytes.
pub(crate) unsafe fn bytes_at<'a>(address: u64, bytes: u64) -> Result<&'a [u8], Failure> {
    match (address as usize, usize::try_from(bytes)) {
        (0, _) | (_, Err(_)) => Err(invalid("data: null, or longer than memory")),
        // SAFETY: the caller's promise.
        (address, Ok(bytes)) => Ok(unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }),
    }
}
