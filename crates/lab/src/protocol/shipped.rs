//! The protocols that come with the program: the files of `protocols/`, built in.

use super::{Protocol, ProtocolError, from_toml};

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
const FILES: &[Shipped] = files!["storagereview-enterprise",];

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
