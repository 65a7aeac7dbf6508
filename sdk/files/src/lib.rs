//! Files on a sparse device: each file is a range of its address space, and a change of names or sizes is an atomic batch.
//!
//! There is no journal, because nothing needs one: what must change together is one batch of the device, which is carried out as a
//! whole or not at all. Two things are built on [`Files`]:
//!
//! - [`sqlite`]: a VFS of SQLite whose transactions are atomic batches, also as a loadable extension;
//! - `vsl-directfs`: a FUSE file system that tells MariaDB that it never tears a page.
//!
//! ```
//! use openvsl_files::{Files, Make, ROOT};
//!
//! let device = openvsl::Device::memory(64 << 20, 4096)?;
//! let files = Files::create(device, 100)?;
//! let log = files.make(ROOT, b"log", &Make::file(0o644))?;
//! files.write(log, 0, b"hello")?;
//! files.sync(log)?; // now name, size and data survive a power cut
//! assert_eq!(files.read(log, 1, 100)?, b"ello");
//! files.rename(ROOT, b"log", ROOT, b"log.1", true)?;
//! assert_eq!(files.lookup(ROOT, b"log.1")?, log);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is atomic, and what is durable
//!
//! - **A write** is atomic where it begins and ends on whole sectors or within one, up to what the device makes atomic (1 MiB): a
//!   database's page is never torn. Longer writes are split.
//! - **A change** of several parts of a file ([`Files::change`]) is atomic, with the file's size.
//! - **Names**: making, removing and renaming are atomic, each of them.
//! - **A file and its name are durable** once a [`sync`](Files::sync) of it that began afterwards has returned, and all files once a
//!   sync of a directory has. Each is one flush of the device. Times of files are written with the next change of their record.

mod change;
mod error;
mod files;
mod layout;
mod names;
pub mod sqlite;

pub use error::FilesError;
pub use files::{Attributes, Files, ROOT};
pub use names::Make;
