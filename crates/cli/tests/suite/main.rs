//! The built `vsl`, as people run it.

mod common;
mod detached;
mod help;
mod lab;
mod service;
mod sim;
mod trace;
