//! Formats of traces, read and written.

mod formats;
mod roundtrip;
