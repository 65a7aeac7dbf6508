//! The protocols that come with the program: the files of `protocols/`, built in.

use std::path::Path;

use super::{Protocol, ProtocolError, from_toml, read};

/// A protocol that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// What it is called: the file's name without its ending.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../protocols/", $name, ".toml")) }),+]
    };
}

/// All of them, in the order in which they are listed.
const FILES: &[Shipped] = files![
    "storagereview-synthetic",
    "storagereview-enterprise",
    "mail-server",
    "fujitsu-primergy",
    "ioblazer",
    "ioblazer-machines",
    "near-linear",
    "partitioned",
    "thomas-krenn",
    "snia-pts-iops",
    "snia-pts-throughput",
    "snia-pts-latency",
    "snia-pts-write-saturation",
    "snia-pts-host-idle-recovery",
    "snia-pts-cross-stimulus",
];

/// Every protocol that comes with the program.
pub fn shipped() -> &'static [Shipped] {
    FILES
}

/// The built-in protocol of a name.
///
/// # Errors
/// A built-in file is damaged; the tests of this crate rule that out.
pub fn find(name: &str) -> Option<Result<(Protocol, &'static str), ProtocolError>> {
    let file = FILES.iter().find(|file| file.name == name)?;
    Some(from_toml(&format!("{name}.toml"), file.text).map(|protocol| (protocol, file.text)))
}

/// The protocol of a built-in name or of a file, with its text; nothing where there is neither.
///
/// # Errors
/// The file cannot be read, or is no protocol.
pub fn named(name: &str) -> Option<Result<(Protocol, String), ProtocolError>> {
    let shipped = find(name).map(|found| found.map(|(protocol, text)| (protocol, text.into())));
    shipped.or_else(|| Path::new(name).exists().then(|| read(Path::new(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in_sound_and_called_as_it_says() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/protocols");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .expect("protocols")
            .map(|entry| entry.expect("entry").path().file_stem().expect("stem").to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut built_in: Vec<&str> = shipped().iter().map(|file| file.name).collect();
        built_in.sort_unstable();
        assert_eq!(built_in, files);
        for file in shipped() {
            let (protocol, _) = find(file.name).expect("found").unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(protocol.name(), file.name);
            assert!(!protocol.charts.is_empty() && !protocol.description.is_empty(), "{}", file.name);
        }
        assert!(find("nothing").is_none());
    }
}
