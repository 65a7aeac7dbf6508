//! Accounts: names, roles, passwords and access keys. A file for the service's owner only, which holds no password and no key in the clear.

use std::path::PathBuf;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use serde::{Deserialize, Serialize};

use super::secret::{self, Digest};
use crate::Failure;
use crate::api::{AccountChange, AccountView, KeyView, MadeKey, NewAccount, Role};
use crate::clock::now_s;
use crate::stored::Kept;

/// Shortest password.
const SHORTEST: usize = 8;
/// Longest password: what is longer is refused before it costs anything.
const LONGEST: usize = 1024;
/// Accounts, and keys of each, at most.
const MOST: usize = 256;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    id: String,
    note: String,
    created: u64,
    /// SHA-256 of the key.
    digest: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    name: String,
    role: Role,
    created: u64,
    /// Argon2id of the password, as a PHC string.
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    keys: Vec<Key>,
}

/// The accounts, and their file.
pub struct Accounts(Kept<Vec<Account>>);

impl Accounts {
    /// Those of a file; none where there is none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn open(path: PathBuf) -> Result<Accounts, Failure> {
        Kept::open(path).map(Accounts)
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn views(&self) -> Vec<AccountView> {
        let key = |key: &Key| KeyView { id: key.id.clone(), note: key.note.clone(), created: key.created };
        let view = |account: &Account| AccountView {
            name: account.name.clone(),
            role: account.role,
            password: account.password.is_some(),
            keys: account.keys.iter().map(key).collect(),
            created: account.created,
        };
        self.0.iter().map(view).collect()
    }

    /// What an account may do.
    pub fn role(&self, name: &str) -> Option<Role> {
        self.0.iter().find(|account| account.name == name).map(|account| account.role)
    }

    /// Whose access key has this digest.
    pub fn holder(&self, digest: &Digest) -> Option<(String, Role)> {
        let has = |account: &&Account| account.keys.iter().any(|key| secret::equal(&key.digest, digest.as_str()));
        self.0.iter().find(has).map(|account| (account.name.clone(), account.role))
    }

    /// What is kept of an account's password, for [`check_password`].
    pub fn password(&self, name: &str) -> Option<String> {
        self.0.iter().find(|account| account.name == name)?.password.clone()
    }

    /// A new account.
    ///
    /// # Errors
    /// The name is taken or not plain, the password is too short, or the file cannot be written.
    pub fn add(&mut self, new: &NewAccount) -> Result<AccountView, Failure> {
        check_name(&new.name)?;
        if self.role(&new.name).is_some() {
            return Err(Failure::conflict(format!("there is an account '{}' already", new.name))
                .help("choose another name, or change that one"));
        }
        if self.0.len() >= MOST {
            return Err(Failure::conflict(format!("there are {MOST} accounts already")).help("remove one first"));
        }
        let password = new.password.as_deref().map(hash).transpose()?;
        let account = Account { name: new.name.clone(), role: new.role, created: now_s(), password, keys: Vec::new() };
        self.0.change(|accounts| {
            accounts.push(account);
            Ok(())
        })?;
        self.view(&new.name)
    }

    fn view(&self, name: &str) -> Result<AccountView, Failure> {
        self.views().into_iter().find(|view| view.name == name).ok_or_else(|| nobody(name))
    }

    /// Changes an account.
    ///
    /// # Errors
    /// There is none, the password is too short, or the file cannot be written.
    pub fn change(&mut self, name: &str, change: &AccountChange) -> Result<AccountView, Failure> {
        let password = change.password.as_deref().map(hash).transpose()?;
        self.0.change(|accounts| {
            let account = find(accounts, name)?;
            account.role = change.role.unwrap_or(account.role);
            account.password = password.or(account.password.take());
            Ok(())
        })?;
        self.view(name)
    }

    /// Removes an account, with its keys.
    ///
    /// # Errors
    /// There is none, or the file cannot be written.
    pub fn remove(&mut self, name: &str) -> Result<(), Failure> {
        self.0.change(|accounts| {
            find(accounts, name)?;
            accounts.retain(|account| account.name != name);
            Ok(())
        })
    }

    /// A new access key.
    ///
    /// # Errors
    /// There is no such account, it has too many, or the file cannot be written.
    pub fn add_key(&mut self, name: &str, note: &str) -> Result<MadeKey, Failure> {
        self.0.change(|accounts| {
            let account = find(accounts, name)?;
            if account.keys.len() >= MOST {
                return Err(Failure::conflict(format!("{name} has {MOST} keys already")).help("remove one first"));
            }
            let made = MadeKey { id: secret::random(4), key: secret::make() };
            let note: String = note.chars().filter(|c| !c.is_control()).take(200).collect();
            let digest = Digest::of(&made.key).as_str().into();
            account.keys.push(Key { id: made.id.clone(), note, created: now_s(), digest });
            Ok(made)
        })
    }

    /// Removes an access key.
    ///
    /// # Errors
    /// There is none, or the file cannot be written.
    pub fn remove_key(&mut self, name: &str, id: &str) -> Result<(), Failure> {
        self.0.change(|accounts| {
            let account = find(accounts, name)?;
            let before = account.keys.len();
            account.keys.retain(|key| key.id != id);
            if account.keys.len() == before {
                return Err(Failure::not_found(format!("{name} has no key '{id}'")).help("`GET /accounts` lists them"));
            }
            Ok(())
        })
    }
}

/// Whether it is the password of which this is kept. Takes as long where there is none, so that nobody learns which names there are.
pub fn check_password(stored: Option<&str>, password: &str) -> bool {
    if password.len() > LONGEST {
        return false;
    }
    match stored.map(PasswordHash::new) {
        Some(Ok(stored)) => Argon2::default().verify_password(password.as_bytes(), &stored).is_ok(),
        _ => {
            // The time is what counts.
            let _ = Argon2::default().hash_password(password.as_bytes());
            false
        }
    }
}

fn hash(password: &str) -> Result<String, Failure> {
    if password.chars().count() < SHORTEST || password.len() > LONGEST {
        return Err(Failure::invalid(format!("the password has {} characters", password.chars().count()))
            .help(format!("choose one of {SHORTEST} characters or more, up to {LONGEST} bytes")));
    }
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string()).map_err(|error| Failure::failed(format!("the password: {error}")))
}

fn find<'a>(accounts: &'a mut [Account], name: &str) -> Result<&'a mut Account, Failure> {
    accounts.iter_mut().find(|account| account.name == name).ok_or_else(|| nobody(name))
}

fn nobody(name: &str) -> Failure {
    Failure::not_found(format!("there is no account '{name}'")).help("`vsl account list` lists them")
}

fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if !name.is_empty() && name.len() <= 63 && name.chars().all(plain) && name != "token" {
        return Ok(());
    }
    Err(Failure::invalid(format!("'{name}' cannot be the name of an account"))
        .help("choose up to 63 letters, digits, '-', '_', '.' and '@'; 'token' is the service's own"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_kept_without_their_secrets() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("accounts.json");
        let mut accounts = Accounts::open(path.clone()).expect("none yet");
        assert!(accounts.is_empty());
        let new = |name: &str, password: Option<&str>| NewAccount {
            name: name.into(),
            role: Role::Operator,
            password: password.map(Into::into),
        };
        accounts.add(&new("ada", Some("correct horse"))).expect("added");
        accounts.add(&new("ada", None)).expect_err("taken");
        accounts.add(&new("bob", Some("short"))).expect_err("short");
        accounts.add(&new("a/b", None)).expect_err("not plain");
        accounts.add(&new("token", None)).expect_err("reserved");
        let made = accounts.add_key("ada", "for tests\n").expect("made");
        let text = std::fs::read_to_string(&path).expect("written");
        assert!(!text.contains("correct horse") && !text.contains(&made.key), "{text}");
        let mut accounts = Accounts::open(path).expect("read");
        assert_eq!(accounts.holder(&Digest::of(&made.key)), Some(("ada".into(), Role::Operator)));
        let stored = accounts.password("ada");
        assert!(check_password(stored.as_deref(), "correct horse"));
        assert!(!check_password(stored.as_deref(), "correct house"));
        assert!(!check_password(None, "correct horse"));
        assert_eq!(accounts.views()[0].keys[0].note, "for tests");
        accounts.remove_key("ada", "nope").expect_err("no such key");
        accounts.remove_key("ada", &made.id).expect("removed");
        assert_eq!(accounts.holder(&Digest::of(&made.key)), None);
        accounts.remove("ada").expect("removed");
        accounts.remove("ada").expect_err("gone");
    }
}
