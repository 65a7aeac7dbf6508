//! What the program that a service belongs to brings along: the console's files, and what its lab knows.

use crate::api::Named;

/// A file of the console.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its Content-Type.
    pub content_type: &'static str,
    /// Changes with its bytes.
    pub etag: &'static str,
    /// How the bytes are compressed, such as `gzip`, where they are.
    pub encoding: Option<&'static str>,
    /// It.
    pub bytes: &'static [u8],
}

/// The program. Its lab computes in processes of its own, so the service knows it by its names only.
#[derive(Clone, Copy)]
pub struct Program {
    /// The console's files by their path, which begins with a slash; `/` is the page itself.
    pub asset: fn(&str) -> Option<Asset>,
    /// The test protocols.
    pub protocols: fn() -> Vec<Named>,
    /// The workloads.
    pub workloads: fn() -> Vec<Named>,
}

impl Default for Program {
    /// Without a console and a lab.
    fn default() -> Program {
        Program { asset: |_| None, protocols: Vec::new, workloads: Vec::new }
    }
}
