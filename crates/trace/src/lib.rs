//! Block traces: what somebody's disk was asked, record by record.
//!
//! **What it is for.** Reading the formats in which traces are published and recorded, characterising them, turning one into requests
//! for a device that is smaller than the traced one, writing them, and recording the traffic of a device of one's own.
//!
//! **What it promises.** Traces of any length are read in fixed memory, a batch at a time. Input that makes no sense is an error that names
//! file, line or byte, and what was expected; nothing is guessed and nothing panics. What is left out (commands that move no data, requests
//! of nothing) is counted.
//!
//! **Where to start.** [`Reader`] gives [`Record`]s of any [`Format`]; [`info::Info`] says what they amount to; [`playback::Playback`] makes
//! requests of them; [`Writer`] and [`recorder::Recorder`] write them. `docs/traces.md` describes formats and figures.

mod error;
mod formats;
pub mod generate;
pub mod info;
mod input;
mod output;
pub mod playback;
mod reader;
mod record;
pub mod recorder;

pub use error::{Place, TraceError};
pub use formats::{Aside, Format, Volumes, device_number, parse_volume};
pub use input::compression::Compression;
pub use output::{Left, OutputFormat, Writer};
pub use reader::{Reader, Wanted};
pub use record::{LARGEST_OFFSET, LARGEST_REQUEST, Op, Record};
