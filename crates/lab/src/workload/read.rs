//! Workloads from text.

use std::path::{Path, PathBuf};

use super::{Invalid, Workload};

/// Why a text is no workload.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Not TOML, or not these fields.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// Not JSON, or not these fields.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The fields make no sense.
    #[error("{0}")]
    Invalid(#[from] Invalid),
    /// One of these, in a file.
    #[error("{}: {error}", path.display())]
    In {
        /// Which file.
        path: PathBuf,
        /// What is wrong in it.
        error: Box<ReadError>,
    },
}

/// Largest file that is taken for a workload, bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// A workload from TOML, checked.
///
/// # Errors
/// What is wrong, with its line where it is the text.
pub fn from_toml(text: &str) -> Result<Workload, ReadError> {
    let workload: Workload = toml::from_str(text)?;
    workload.validate()?;
    Ok(workload)
}

/// A workload from JSON, checked.
///
/// # Errors
/// What is wrong, with its line where it is the text.
pub fn from_json(text: &str) -> Result<Workload, ReadError> {
    let workload: Workload = serde_json::from_str(text)?;
    workload.validate()?;
    Ok(workload)
}

/// A workload from a file: JSON or a configuration of Iometer (`.icf`) when its name ends so, TOML otherwise.
///
/// # Errors
/// The file cannot be read, or is no workload.
pub fn read(path: &Path) -> Result<Workload, ReadError> {
    let text = text_of(path).map_err(|error| ReadError::File { path: path.into(), error })?;
    let is = |kind: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(kind));
    let workload = match () {
        () if is("json") => from_json(&text),
        () if is("icf") => super::icf::workload(&text).map_err(ReadError::Invalid),
        () => from_toml(&text),
    };
    workload.map_err(|error| ReadError::In { path: path.into(), error: Box::new(error) })
}

/// The text of a small file; a device or a pipe that never ends is cut off.
pub fn text_of(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read};
    let mut text = String::new();
    std::fs::File::open(path)?.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("larger than {}", size::exact(LARGEST_FILE))));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "mix"
seed = 7
[[phase]]
name = "fill"
measured = false
stop = { capacities = 1.0 }
[[phase.load]]
read_percent = 0
size = "128KiB"
access = "sequential"
[[phase]]
name = "measure"
ramp = "5s"
stop = { duration = "60s" }
[[phase.load]]
name = "readers"
read_percent = 80
trim_percent = 5
size = [{ size = 512, weight = 10 }, { size = "4KiB", weight = 90 }]
write_size = "8KiB"
access = { hot-cold = { accesses = 80, space = 20 } }
align = 512
region = { offset = "10%", size = "32GB" }
threads = 16
depth = 16
rate = { per_second = 5000, arrivals = "fixed" }
"#;

    #[test]
    fn both_forms_hold_the_same() {
        let workload = from_toml(TEXT).expect("a workload");
        let toml = toml::to_string(&workload).expect("TOML");
        assert_eq!(from_toml(&toml).expect("written TOML"), workload, "{toml}");
        let json = serde_json::to_string(&workload).expect("JSON");
        assert_eq!(from_json(&json).expect("written JSON"), workload, "{json}");
    }

    #[test]
    fn mistakes_in_the_text_are_shown_in_their_line() {
        let message = from_toml(&TEXT.replace("ramp", "rampe")).expect_err("unknown field").to_string();
        assert!(message.contains("line 14") && message.contains("unknown field `rampe`"), "{message}");
        let message = from_toml(&TEXT.replace("\"8KiB\"", "\"8 parsecs\"")).expect_err("no size").to_string();
        assert!(message.contains("write_size") && message.contains("expected a size"), "{message}");
        let message = from_json("{\"name\": \"w\",\n \"phase\": [{}]}").expect_err("no name").to_string();
        assert!(message.contains("missing field `name` at line 2"), "{message}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let message = read(Path::new("/nonexistent/w.toml")).expect_err("no file").to_string();
        assert!(message.starts_with("/nonexistent/w.toml: No such file"), "{message}");
    }
}
