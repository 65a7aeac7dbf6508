//! What a page may do: run its own script, use its own styles, and nothing else. Nothing is fetched from anywhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// The content security policy for these styles and scripts. Pictures may be made within the page, for its PNG button.
pub(super) fn policy(styles: &[&str], scripts: &[&str]) -> String {
    let all = |texts: &[&str]| texts.iter().map(|text| hash(text)).collect::<Vec<_>>().join(" ");
    format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        all(styles),
        all(scripts)
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn hashes_are_those_that_browsers_compute() {
        // From the Content Security Policy specification, level 3, section on hash usage.
        assert_eq!(super::hash("alert('Hello, world.');"), "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='");
    }
}
