//! What opens an encrypted device: from a file, or asked for on the terminal.

use std::path::{Path, PathBuf};

use daemon::Failure;
use daemon::api::Passphrase;
use device::Secret;

use crate::args::{NewOpener, Opener};
use crate::confirm;

/// Whether the device on these files is encrypted, as far as can be seen.
pub fn is_encrypted(paths: &[PathBuf]) -> bool {
    paths.iter().find_map(|path| device::inspect(path).ok()).is_some_and(|info| info.encryption.is_some())
}

/// What opens a device; asked for when it is `encrypted` and nothing was named.
pub fn for_device(device: &str, encrypted: bool, opener: &Opener) -> Result<Option<Secret>, Failure> {
    match (named(opener)?, encrypted) {
        (Some(secret), _) => Ok(Some(secret)),
        (None, true) => Ok(Some(Secret::passphrase(ask(&format!("Passphrase of {device}: "))?)?)),
        (None, false) => Ok(None),
    }
}

/// The same for a service: a passphrase goes along with the request, a key file is read over there.
pub fn for_service(
    device: &str,
    encrypted: bool,
    opener: &Opener,
) -> Result<(Option<Passphrase>, Option<PathBuf>), Failure> {
    match (&opener.passphrase_file, &opener.key_file) {
        (_, Some(file)) => {
            let file = std::fs::canonicalize(file).map_err(|error| Failure::io(file, &error))?;
            Ok((None, Some(file)))
        }
        (Some(file), None) => Ok((Some(passphrase_in(file)?), None)),
        (None, None) if encrypted && confirm::is_possible() => {
            Ok((Some(Passphrase::new(ask(&format!("Passphrase of {device}: "))?)), None))
        }
        // The service says what is missing, if anything is.
        (None, None) => Ok((None, None)),
    }
}

/// What is to open a new format, asked for twice when nothing was named; nothing where it is not to be encrypted.
pub fn for_new_format(encrypt: bool, opener: &Opener) -> Result<Option<Secret>, Failure> {
    match (encrypt, named(opener)?) {
        (false, None) => Ok(None),
        (false, Some(_)) => Err(Failure::invalid("a passphrase or key file was named, but not --encrypt")
            .help("add --encrypt, or leave the file out")),
        (true, Some(secret)) => Ok(Some(secret)),
        (true, None) => ask_twice().map(Some),
    }
}

/// What is to open a device besides, or instead.
pub fn new(opener: &NewOpener) -> Result<Secret, Failure> {
    let named = Opener { passphrase_file: opener.new_passphrase_file.clone(), key_file: opener.new_key_file.clone() };
    self::named(&named)?.map_or_else(ask_twice, Ok)
}

/// The same for a service.
pub fn new_for_service(opener: &NewOpener) -> Result<daemon::api::Opener, Failure> {
    let named = Opener { passphrase_file: opener.new_passphrase_file.clone(), key_file: opener.new_key_file.clone() };
    let (passphrase, key_file) = match (&named.passphrase_file, &named.key_file) {
        (None, None) => (Some(Passphrase::new(ask_twice_text()?)), None),
        _ => for_service("", false, &named)?,
    };
    Ok(daemon::api::Opener { passphrase, key_file })
}

fn named(opener: &Opener) -> Result<Option<Secret>, Failure> {
    Ok(match (&opener.passphrase_file, &opener.key_file) {
        (Some(file), _) => Some(Secret::passphrase_file(file)?),
        (None, Some(file)) => Some(Secret::key_file(file)?),
        (None, None) => None,
    })
}

/// The passphrase in a file, as text: it goes to the service as JSON.
fn passphrase_in(file: &Path) -> Result<Passphrase, Failure> {
    // Read once only: it may be a pipe.
    let secret = Secret::passphrase_file(file)?;
    let text = secret.text().ok_or_else(|| {
        Failure::invalid(format!(
            "{}: the passphrase in it is not UTF-8, which a service's requests are made of",
            file.display()
        ))
        .help("give the device one that is with `vsl key change`, which takes this one")
    })?;
    Ok(Passphrase::new(text.into()))
}

fn ask(question: &str) -> Result<String, Failure> {
    if !confirm::is_possible() {
        return Err(Failure::invalid("it needs a passphrase, and there is no terminal to ask on")
            .help("name a file with --passphrase-file or --key-file"));
    }
    rpassword::prompt_password(question).map_err(|error| Failure::failed(format!("the terminal: {error}")))
}

fn ask_twice() -> Result<Secret, Failure> {
    Ok(Secret::passphrase(ask_twice_text()?)?)
}

fn ask_twice_text() -> Result<String, Failure> {
    let first = ask("New passphrase: ")?;
    if ask("The same again: ")? != first {
        return Err(Failure::invalid("the two passphrases differ").help("try again"));
    }
    Ok(first)
}
