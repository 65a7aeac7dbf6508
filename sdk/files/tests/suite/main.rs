//! Files on a device, and SQLite on those.

mod common;
mod files;
mod sqlite;
