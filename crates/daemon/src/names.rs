//! Names that people choose for devices, hosts, runs and rules. They go into addresses, paths and shell commands, so they are plain.

use crate::Failure;

/// Characters of a name, at most.
pub const LONGEST: usize = 63;

/// Whether something of a kind may be called so.
///
/// # Errors
/// It may not.
pub fn check(kind: &str, name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(plain) && !name.starts_with(['-', '.']) {
        return Ok(());
    }
    Err(Failure::invalid(format!("'{}' cannot be the name of a {kind}", name.escape_debug()))
        .help(format!("choose up to {LONGEST} letters, digits, '-', '_' and '.', with neither '-' nor '.' in front")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["fct0", "A", "_", "a.b-c_d", &"x".repeat(63)] {
            assert_eq!(check("device", name), Ok(()), "{name}");
        }
        for name in ["", "-a", ".a", "..", "a/b", "a b", "ä", "a\n", "a\0", &"x".repeat(64)] {
            assert!(check("device", name).is_err(), "{name}");
        }
    }
}
