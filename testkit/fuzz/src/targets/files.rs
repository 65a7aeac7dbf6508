//! What the service reads: the file of what it remembers, and settings.

use super::Target;

pub const STATE: Target = Target {
    name: "state",
    about: "the file in which the service remembers its devices",
    weight: 40,
    corpus: || {
        let one = "[[device]]\nname = \"a\"\npath = \"/a.vsl\"\nread_only = true\n";
        vec![one.into(), format!("# Kept\n{one}\n[[device]]\nname = \"b\"\npath = \"/b\"\n").into_bytes()]
    },
    words: &["[[device]]", "name = ", "path = ", "read_only = true"],
    run: |input| {
        if let Ok(devices) = daemon::remembered(&String::from_utf8_lossy(input)) {
            assert!(devices.iter().all(|device| device.path.len() <= input.len() * 3));
        }
    },
};

pub const SETTINGS: Target = Target {
    name: "settings",
    about: "settings of devices, device names and addresses",
    weight: 100,
    corpus: || {
        let known = daemon::settings::MEANINGS.iter().map(|(name, _)| format!("{name}=on").into_bytes());
        known.chain([b"checkpoint-interval=512MiB".to_vec(), b"memory:=1GiB".to_vec()]).collect()
    },
    words: &["on", "off", "greedy", "memory:", "1GiB"],
    run: |input| {
        let text = String::from_utf8_lossy(input);
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        if let Err(failure) = daemon::settings::parse(name, value) {
            assert!(!failure.error.is_empty() && !failure.help.is_empty() || name == "checkpoint-interval");
        }
        if let Ok(target) = daemon::Target::parse(&text) {
            target.default_name();
        }
    },
};
