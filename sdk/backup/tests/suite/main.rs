//! Backups and replicas.

mod replicate;
mod stream;
