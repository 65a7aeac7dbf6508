//! The NVMe server as it runs, on Unix sockets: the initiator's host against it, and raw units where no host would send them.

mod admin;
mod associations;
mod authentication;
mod batches;
mod commands;
mod cuts;
mod fused;
mod harness;
mod late;
mod transfers;
mod zones;
