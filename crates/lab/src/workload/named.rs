//! The workloads that come with the program: the files of `workloads/`, built in.

use super::{ReadError, Workload, from_toml};

/// A workload that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What it is called: the file's name without its ending.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(Named { name: $name, text: include_str!(concat!("../../workloads/", $name, ".toml")) }),+]
    };
}

/// All of them, in the order in which they are listed.
const FILES: &[Named] = files![
    "random-read-4k",
    "random-write-4k",
    "random-read-512",
    "random-write-512",
    "random-8k-70-30",
    "sequential-read-64k",
    "sequential-write-64k",
    "random-read-2m",
    "random-write-2m",
    "storagereview-file-server",
    "storagereview-web-server",
    "storagereview-database",
    "storagereview-workstation",
    "fujitsu-file-copy",
    "fujitsu-file-server",
    "fujitsu-database",
    "fujitsu-streaming",
    "fujitsu-restore",
    "ioblazer-read",
    "ioblazer-write",
    "thomas-krenn-throughput",
];

/// Every workload that comes with the program.
pub fn names() -> &'static [Named] {
    FILES
}

/// The built-in workload of a name.
///
/// # Errors
/// A built-in file is damaged; the tests of this crate rule that out.
pub fn find(name: &str) -> Option<Result<Workload, ReadError>> {
    FILES.iter().find(|named| named.name == name).map(|named| from_toml(named.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_sound_and_called_as_it_says() {
        for named in names() {
            let workload = find(named.name).expect("found").unwrap_or_else(|error| panic!("{}: {error}", named.name));
            assert_eq!(workload.name, named.name);
            assert!(workload.phases.iter().any(|phase| phase.measured), "{}", named.name);
            assert!(!workload.description.is_empty(), "{}", named.name);
        }
    }

    #[test]
    fn every_file_is_built_in() {
        let mut built_in: Vec<&str> = names().iter().map(|named| named.name).collect();
        built_in.sort_unstable();
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .expect("workloads")
            .map(|entry| entry.expect("entry").path().file_stem().expect("stem").to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(built_in, files);
    }

    #[test]
    fn shares_of_the_published_mixes_add_up() {
        for name in ["storagereview-file-server", "storagereview-web-server"] {
            let workload = find(name).expect("found").expect("sound");
            for load in workload.phases.iter().flat_map(|phase| &phase.loads) {
                let (reads, writes) = load.sizes();
                assert_eq!(reads.iter().map(|entry| entry.weight).sum::<f64>(), 100.0, "{name}");
                assert_eq!(writes.iter().map(|entry| entry.weight).sum::<f64>(), 100.0, "{name}");
            }
        }
    }
}
