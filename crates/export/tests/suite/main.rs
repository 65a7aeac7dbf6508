//! The servers of each protocol as they run, on sockets: what clients may do, and what hostile ones must not reach.

mod advisories;
mod commands;
mod common;
mod guest;
mod lifecycle;
mod memory;
mod moving;
mod nvme;
mod options;
mod recordings;
mod tls;
mod vhost;
