//! Bytes of a trace, decompressed, a line or a record at a time, in fixed memory.

pub(crate) mod buffer;
pub mod compression;
pub mod fields;

pub use buffer::Buffer;
