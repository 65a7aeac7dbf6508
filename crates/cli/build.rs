//! Puts the commit into the program, for `vsl --version`. Without git, or outside of a repository, there is none.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string()).filter(|text| !text.is_empty())
}

fn main() {
    // Named by whoever builds from an archive.
    println!("cargo:rerun-if-env-changed=VSL_COMMIT");
    let given = std::env::var("VSL_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| git(&["rev-parse", "--short=10", "HEAD"]));
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = commit.map_or(version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo:rustc-env=VSL_VERSION={version}");
    // Each commit adds a line to this log.
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(file) = git(&["rev-parse", "--git-path", path]).filter(|file| std::path::Path::new(file).exists()) {
            println!("cargo:rerun-if-changed={file}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
}
