//! The `vsl` command.
fn main() {}
