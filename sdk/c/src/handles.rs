//! Devices by number, and what went wrong.

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, PoisonError};

use openvsl::{Device, Error, OpenError};

use crate::nvm_handle_t;

static DEVICES: Mutex<Vec<Option<Device>>> = Mutex::new(Vec::new());

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// What went wrong: errno, and words.
pub(crate) struct Failure(pub(crate) i32, pub(crate) String);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let errno = match error {
            Error::OutOfRange { .. } | Error::Misaligned { .. } | Error::TooLarge { .. } | Error::Batch(_) => {
                libc::EINVAL
            }
            Error::ReadOnly => libc::EROFS,
            Error::NoSpace => libc::ENOSPC,
            Error::Gone => libc::EBADF,
            Error::PowerOff => libc::ENODEV,
            Error::Disconnected { .. } => libc::ENOTCONN,
            Error::Unsupported { .. } => libc::EOPNOTSUPP,
            _ => libc::EIO,
        };
        Failure(errno, error.to_string())
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        let errno = match &error {
            OpenError::Address(_) => libc::EINVAL,
            OpenError::Unreachable { error, .. } | OpenError::System { error, .. } => {
                error.raw_os_error().unwrap_or(libc::EIO)
            }
            OpenError::Create(_) => libc::EEXIST,
            _ => libc::ENODEV,
        };
        Failure(errno, error.to_string())
    }
}

pub(crate) fn invalid(what: &str) -> Failure {
    Failure(libc::EINVAL, what.to_string())
}

fn devices() -> MutexGuard<'static, Vec<Option<Device>>> {
    // Each change is one assignment: no panic leaves it half-way.
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn keep(device: Device) -> Result<nvm_handle_t, Failure> {
    let mut devices = devices();
    let number = devices.iter().position(Option::is_none).unwrap_or(devices.len());
    let handle = i32::try_from(number).map_err(|_| Failure(libc::EMFILE, "too many devices are open".into()))?;
    match devices.get_mut(number) {
        Some(free) => *free = Some(device),
        None => devices.push(Some(device)),
    }
    Ok(handle)
}

fn no_device(handle: nvm_handle_t) -> Failure {
    Failure(libc::EBADF, format!("{handle} is no handle of an open device"))
}

pub(crate) fn device(handle: nvm_handle_t) -> Result<Device, Failure> {
    let number = usize::try_from(handle).map_err(|_| no_device(handle))?;
    devices().get(number).cloned().flatten().ok_or_else(|| no_device(handle))
}

pub(crate) fn take(handle: nvm_handle_t) -> Result<Device, Failure> {
    let number = usize::try_from(handle).map_err(|_| no_device(handle))?;
    devices().get_mut(number).and_then(Option::take).ok_or_else(|| no_device(handle))
}

/// A result as C has it: -1 and errno where it failed.
pub(crate) fn answer(result: Result<i32, Failure>) -> i32 {
    match result {
        Ok(value) => value,
        Err(Failure(errno, words)) => {
            let words = CString::new(words.replace('\0', "?")).unwrap_or_default();
            MESSAGE.with_borrow_mut(|message| *message = words);
            // SAFETY: this thread's own errno.
            unsafe { *libc::__errno_location() = errno };
            -1
        }
    }
}

/// The words of the last failure of this thread.
pub(crate) fn message() -> *const std::ffi::c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// Text of C.
///
/// # Safety
/// It ends with a zero, and outlives the call, unless it is null.
pub(crate) unsafe fn text<'a>(text: *const std::ffi::c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid("a text is null"));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid("a text is not UTF-8"))
}
