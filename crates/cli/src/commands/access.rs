//! `vsl console`, `vsl account` and `vsl audit`.

use std::path::Path;

use daemon::api::{AccountChange, AccountView, Health, MadeKey, NewAccount, NewKey, Role};
use daemon::fields::{self, Unit};
use daemon::{Failure, Paths};
use hyper::Method;
use serde_json::json;

use crate::args::manage::{Account, Audit, RoleName};
use crate::confirm;
use crate::output::Output;

/// Where the console is, with what signs in behind the `#`, which no browser sends.
pub fn console(output: Output) -> Result<(), Failure> {
    let health: Health = super::client()?.get("/health")?;
    let near = health.web.iter().find(|address| address.starts_with("http://"));
    let Some(address) = near.or(health.web.first()) else {
        return Err(Failure::not_found("the service serves no console")
            .help("start it with `vsl down` and `vsl up --listen 127.0.0.1:7420`"));
    };
    let file = Paths::from_environment().state.join("token");
    let token = std::fs::read_to_string(&file).map_err(|error| Failure::io(&file, &error))?;
    let whole = if near.is_some() { format!("{address}#token={}", token.trim()) } else { address.clone() };
    output.result(&json!({ "address": whole }), || format!("{whole}\n"))
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Viewer => Role::Viewer,
            RoleName::Operator => Role::Operator,
            RoleName::Administrator => Role::Administrator,
        }
    }
}

pub fn account(what: &Account, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    match what {
        Account::List => {
            let accounts: Vec<AccountView> = client.get("/accounts")?;
            output.result(&accounts, || list(&accounts))
        }
        Account::Add { name, role, password_file, no_password } => {
            let password = match (password_file, no_password) {
                (_, true) => None,
                (file, false) => Some(secret(file.as_deref(), "password")?),
            };
            let new = NewAccount { name: name.clone(), role: (*role).into(), password };
            let made: AccountView = client.send(Method::POST, "/accounts", &new)?;
            output.result(&made, || format!("added {name}, {}\n", made.role.name()))
        }
        Account::Change { name, role, password_file } => {
            let password = password_file.as_deref().map(|file| secret(Some(file), "password")).transpose()?;
            if role.is_none() && password.is_none() {
                return Err(Failure::invalid("nothing is to be changed").help("give --role or --password-file"));
            }
            let change = AccountChange { role: role.map(Role::from), password };
            let made: AccountView = client.send(Method::PATCH, &format!("/accounts/{}", plain(name)?), &change)?;
            output.result(&made, || format!("changed {name}, {}\n", made.role.name()))
        }
        Account::Remove { name } => {
            client.send::<()>(Method::DELETE, &format!("/accounts/{}", plain(name)?), &json!({}))?;
            output.result(&json!({ "removed": name }), || format!("removed {name}\n"))
        }
        Account::Key { name, note } => {
            let path = format!("/accounts/{}/keys", plain(name)?);
            let made: MadeKey = client.send(Method::POST, &path, &NewKey { note: note.clone() })?;
            output.note(&format!("key {} of {name}; it is shown only this time", made.id));
            output.result(&made, || format!("{}\n", made.key))
        }
        Account::RemoveKey { name, id } => {
            let path = format!("/accounts/{}/keys/{}", plain(name)?, plain(id)?);
            client.send::<()>(Method::DELETE, &path, &json!({}))?;
            output.result(&json!({ "removed": id }), || format!("removed key {id} of {name}\n"))
        }
    }
}

fn list(accounts: &[AccountView]) -> String {
    if accounts.is_empty() {
        return "there is no account; `vsl account add NAME --role ROLE` adds one\n".into();
    }
    let mut text = String::new();
    for account in accounts {
        let password = if account.password { "password" } else { "no password" };
        text.push_str(&format!("{:<20}  {:<13}  {password}\n", account.name, account.role.name()));
        for key in &account.keys {
            let made = fields::show(Unit::Time, &json!(key.created));
            text.push_str(format!("  key {}  {made}  {}", key.id, key.note).trim_end());
            text.push('\n');
        }
    }
    text
}

/// A word that can stand in a path as it is.
pub fn plain(word: &str) -> Result<&str, Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if !word.is_empty() && word.chars().all(plain) {
        return Ok(word);
    }
    Err(Failure::invalid(format!("'{}' cannot be a name", word.escape_debug()))
        .help("names are of letters, digits, '-', '_', '.' and '@'"))
}

/// The one line of a file, or what is typed on the terminal.
pub fn secret(file: Option<&Path>, what: &str) -> Result<String, Failure> {
    match file {
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|error| Failure::io(file, &error))?;
            let line = text.strip_suffix('\n').unwrap_or(&text);
            if line.is_empty() || line.contains('\n') {
                return Err(Failure::invalid(format!("{}: it is not one line", file.display()))
                    .help(format!("write the {what} into it, and nothing else")));
            }
            Ok(line.to_string())
        }
        None => {
            let asked = match confirm::is_possible() {
                true => rpassword::prompt_password(format!("{what}: ")).map_err(|error| error.to_string()),
                false => Err("there is no terminal to ask on".into()),
            };
            asked.map_err(|why| {
                Failure::invalid(format!("the {what} cannot be asked for: {why}"))
                    .help("give it with a file; see `vsl account --help` and `vsl hosts --help`")
            })
        }
    }
}

pub fn audit(args: &Audit, output: Output) -> Result<(), Failure> {
    let audit: daemon::api::Audit = super::client()?.get(&format!("/audit?limit={}", args.limit))?;
    output.result(&audit, || {
        let lines = audit.entries.iter().rev().map(|entry| {
            let at = fields::show(Unit::Time, &json!(entry.at_ms / 1000));
            let who = if entry.who.is_empty() { "nobody" } else { &entry.who };
            let line = format!(
                "{at}  {who:<12}  {:<15}  {}  {:<6} {}  {}",
                entry.peer, entry.status, entry.method, entry.path, entry.what
            );
            format!("{}\n", line.trim_end())
        });
        lines.collect()
    })
}
