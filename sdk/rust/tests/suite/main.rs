//! Devices as a program uses them: its own, those of a service, and the key-value store.

mod common;
mod kv;
mod local;
mod remote;
