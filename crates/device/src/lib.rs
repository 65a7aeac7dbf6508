//! One module: the translation layer on a medium, with its format, recovery and health.
//!
//! [`Device`] is what everyone uses: export, lab, daemon and sdk alike. It lives on one thread, takes
//! requests with [`Device::submit`] and finishes them there or in [`Device::poll`].

mod device;
mod error;
pub mod format;
mod io;
mod status;

pub use device::{AttachOptions, Device};
pub use error::{AttachError, CreateError, FormatError, IoError};
pub use format::{Capacity, CreateOptions, FormatOptions, Info};
pub use io::{Completion, Extent, Io, Submitted};
pub use status::{State, Status};
