//! Who may ask, from where, and how often.
//!
//! On the Unix socket the kernel says who somebody is. On TCP somebody shows the service's token (on loopback only), an
//! account's access key, or a session that a sign-in made. `web::guard` stands in front of every request.

mod accounts;
pub mod content;
mod origin;
pub mod peer;
mod rate;
pub mod secret;
mod sessions;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::Failure;
use crate::api::{AccountChange, AccountView, Role, Session, SignIn, Via};

pub use accounts::{Accounts, check_password};
pub use origin::Origins;
pub use peer::Peer;
pub use rate::source;
use rate::{Buckets, Tries, Whose};
use secret::Digest;
pub use sessions::LIFE;
use sessions::Sessions;

/// The role of who really asks, where another host passes a request on with its own key.
pub const ROLE: &str = "openvsl-role";

/// What is known of who may ask.
pub struct Access {
    accounts: Mutex<Accounts>,
    sessions: Mutex<Sessions>,
    tries: Mutex<Tries>,
    buckets: Mutex<Buckets>,
    /// Passwords are costly to check, on purpose: one at a time.
    checking: Mutex<()>,
    token: Digest,
    cookie_name: String,
    pub origins: Origins,
}

impl Access {
    /// With accounts, and the token, in a directory. A token is made where there is none.
    ///
    /// # Errors
    /// A file is damaged or cannot be written.
    pub fn open(directory: &Path, origins: Origins) -> Result<Access, Failure> {
        let accounts = Accounts::open(directory.join("accounts.json"))?;
        let token = secret::token(&directory.join("token"))?;
        Ok(Access {
            accounts: Mutex::new(accounts),
            sessions: Mutex::default(),
            tries: Mutex::default(),
            buckets: Mutex::default(),
            checking: Mutex::default(),
            token: Digest::of(&token),
            cookie_name: cookie_name(&token),
            origins,
        })
    }

    /// What the browser's cookie is called. Each service has a name of its own: a browser keeps one jar for all ports of a
    /// host, and services beside each other would sign each other out.
    pub fn cookie_name(&self) -> &str {
        &self.cookie_name
    }

    /// The accounts.
    pub fn accounts(&self) -> std::sync::MutexGuard<'_, Accounts> {
        // Whole between any two statements, as are the others.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an account. A new password ends the sessions that the old one may have begun.
    ///
    /// # Errors
    /// As [`Accounts::change`].
    pub fn change_account(&self, name: &str, change: &AccountChange) -> Result<AccountView, Failure> {
        let view = self.accounts().change(name, change)?;
        if change.password.is_some() {
            self.sessions().end_all_of(name);
        }
        Ok(view)
    }

    /// Removes an account with its keys and sessions.
    ///
    /// # Errors
    /// As [`Accounts::remove`].
    pub fn remove_account(&self, name: &str) -> Result<(), Failure> {
        self.accounts().remove(name)?;
        // Otherwise whoever gets its name next would get them too.
        self.sessions().end_all_of(name);
        Ok(())
    }

    /// Removes an access key, and ends the sessions that it may have begun.
    ///
    /// # Errors
    /// As [`Accounts::remove_key`].
    pub fn remove_key(&self, name: &str, id: &str) -> Result<(), Failure> {
        self.accounts().remove_key(name, id)?;
        self.sessions().end_all_of(name);
        Ok(())
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more request of theirs is one too many.
    pub fn is_too_fast(&self, peer: &Peer, who: Option<&Session>) -> bool {
        let Some(address) = peer.address() else { return false };
        let whose = who.map_or_else(|| Whose::Address(source(address)), |who| Whose::Account(who.name.clone()));
        !self.buckets.lock().unwrap_or_else(PoisonError::into_inner).admit(whose, Instant::now())
    }

    /// Whose token or access key this is. The token counts on loopback only.
    fn holder(&self, key: &str, peer: &Peer) -> Option<Session> {
        let digest = Digest::of(key);
        if digest == self.token && peer.is_loopback() {
            return Some(Session { name: "token".into(), role: Role::Administrator, via: Via::Token });
        }
        let (name, role) = self.accounts().holder(&digest)?;
        Some(Session { name, role, via: Via::Key })
    }

    /// Who shows this key with a request. Wrong ones bar nobody: a key has 256 random bits, which nobody guesses, and whoever shares an
    /// address with one who tries must get in.
    ///
    /// # Errors
    /// Nobody.
    pub fn bearer(&self, key: &str, peer: &Peer) -> Result<Session, Failure> {
        self.holder(key, peer).ok_or_else(|| wrong("nobody has this key"))
    }

    /// Who has the session of this cookie. What an account may do is looked up anew.
    pub fn session(&self, cookie: &str) -> Option<Session> {
        let mut session = self.sessions().find(&Digest::of(cookie), Instant::now())?;
        if session.via == Via::Token {
            session.via = Via::Session;
            return Some(session);
        }
        session.role = self.accounts().role(&session.name)?;
        session.via = Via::Session;
        Some(session)
    }

    /// Signs in: who it is, and the new session's cookie.
    ///
    /// # Errors
    /// It is nobody, or there were too many wrong ones from there.
    pub fn sign_in(&self, request: &SignIn, peer: &Peer) -> Result<(Session, String), Failure> {
        let who = match (&request.token, &request.name, &request.password) {
            (Some(token), None, None) => self.holder(token, peer).ok_or_else(|| wrong("nobody has this token"))?,
            (None, Some(name), Some(password)) => {
                self.admit_try(peer)?;
                let _one_at_a_time = self.checking.lock().unwrap_or_else(PoisonError::into_inner);
                let stored = self.accounts().password(name);
                if !check_password(stored.as_deref(), password) {
                    return Err(self.wrong_password(peer));
                }
                let role = self.accounts().role(name);
                let role = role.ok_or_else(|| Failure::unauthenticated("the account was removed just now"))?;
                Session { name: name.clone(), role, via: Via::Session }
            }
            _ => {
                return Err(Failure::invalid("neither a token nor a name and a password were given")
                    .help(r#"send {"token": ...} or {"name": ..., "password": ...}"#));
            }
        };
        let cookie = secret::make();
        self.sessions().add(Digest::of(&cookie), who.clone(), Instant::now());
        Ok((Session { via: Via::Session, ..who }, cookie))
    }

    /// Ends a session.
    pub fn sign_out(&self, cookie: &str) {
        self.sessions().remove(&Digest::of(cookie));
    }

    fn admit_try(&self, peer: &Peer) -> Result<(), Failure> {
        let tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        if tries.is_barred(peer.address(), Instant::now()) {
            return Err(
                Failure::too_many("too many wrong passwords from this address").help("wait a minute, then try again")
            );
        }
        Ok(())
    }

    /// A wrong password, of which there may not be many.
    fn wrong_password(&self, peer: &Peer) -> Failure {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner).note(peer.address(), Instant::now());
        tracing::warn!(%peer, "refused a wrong password");
        wrong("no account has this name and this password")
    }
}

fn wrong(what: &str) -> Failure {
    Failure::unauthenticated(what)
        .help("the token is in the service's state directory; an administrator makes access keys")
}

/// The same with the next start, and another one at another service: by the digest of its token, of which it tells nothing.
fn cookie_name(token: &str) -> String {
    let mark = Digest::of(&format!("cookie {token}"));
    format!("openvsl_session_{:.8}", mark.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::NewAccount;

    fn access(directory: &Path) -> Access {
        Access::open(directory, Origins::default()).expect("opened")
    }

    fn peer(address: &str) -> Peer {
        Peer::Tcp { address: address.parse().expect("an address"), secure: false }
    }

    #[test]
    fn the_token_counts_on_loopback_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let access = access(directory.path());
        let token = std::fs::read_to_string(directory.path().join("token")).expect("made");
        let who = access.bearer(token.trim(), &peer("127.0.0.1:9")).expect("known");
        assert_eq!((who.name.as_str(), who.role), ("token", Role::Administrator));
        access.bearer(token.trim(), &peer("192.0.2.1:9")).expect_err("from elsewhere");
        // The next service has the same one.
        assert!(self::access(directory.path()).holder(token.trim(), &peer("[::1]:9")).is_some());
    }

    #[test]
    fn sessions_follow_their_accounts() {
        let directory = tempfile::tempdir().expect("a directory");
        let access = access(directory.path());
        let here = peer("127.0.0.1:9");
        let password = Some("correct horse".to_string());
        let new = NewAccount { name: "ada".into(), role: Role::Operator, password: password.clone() };
        access.accounts().add(&new).expect("added");
        let sign_in = SignIn { name: Some("ada".into()), password, ..SignIn::default() };
        let (who, cookie) = access.sign_in(&sign_in, &here).expect("known");
        assert_eq!((who.role, who.via), (Role::Operator, Via::Session));
        assert_eq!(access.session(&cookie).map(|who| who.role), Some(Role::Operator));
        let less = AccountChange { role: Some(Role::Viewer), password: None };
        access.change_account("ada", &less).expect("changed");
        assert_eq!(access.session(&cookie).map(|who| who.role), Some(Role::Viewer));
        access.remove_account("ada").expect("removed");
        assert_eq!(access.session(&cookie), None);
        access.accounts().add(&new).expect("another of the same name");
        assert_eq!(access.session(&cookie), None, "she has the session of the one before");
        assert_eq!(access.session("nonsense"), None);
    }

    #[test]
    fn a_new_password_and_a_key_that_goes_end_sessions() {
        let directory = tempfile::tempdir().expect("a directory");
        let access = access(directory.path());
        let here = peer("127.0.0.1:9");
        for name in ["ada", "bob"] {
            access
                .accounts()
                .add(&NewAccount { name: name.into(), role: Role::Operator, password: None })
                .expect("added");
        }
        let by_key = |name: &str| {
            let made = access.accounts().add_key(name, "").expect("made");
            let sign_in = SignIn { token: Some(made.key), ..SignIn::default() };
            (made.id, access.sign_in(&sign_in, &here).expect("known").1)
        };
        let ((ada_key, ada), (_, bob)) = (by_key("ada"), by_key("bob"));
        access.remove_key("ada", &ada_key).expect("removed");
        assert_eq!(access.session(&ada), None);
        assert_eq!(access.session(&bob).map(|who| who.name), Some("bob".into()), "it was not bob's key");
        let change = AccountChange { role: None, password: Some("correct horse".into()) };
        access.change_account("bob", &change).expect("changed");
        assert_eq!(access.session(&bob), None);
    }

    #[test]
    fn guessing_is_stopped() {
        let directory = tempfile::tempdir().expect("a directory");
        let access = access(directory.path());
        let (here, there) = (peer("127.0.0.1:9"), peer("192.0.2.7:9"));
        let right = "correct horse";
        let new = NewAccount { name: "ada".into(), role: Role::Viewer, password: Some(right.into()) };
        access.accounts().add(&new).expect("added");
        let sign_in = |password: &str, from: &Peer| {
            let request = SignIn { name: Some("ada".into()), password: Some(password.into()), ..SignIn::default() };
            access.sign_in(&request, from).map(drop).map_err(|failure| failure.kind)
        };
        for _ in 0..5 {
            assert_eq!(sign_in("wrong", &here), Err(crate::Kind::Unauthenticated));
        }
        assert_eq!(sign_in(right, &here), Err(crate::Kind::TooMany));
        assert_eq!(sign_in(right, &there), Ok(()), "another address");
        // Keys are beyond guessing: neither do wrong ones bar, nor are they barred.
        for _ in 0..20 {
            assert_eq!(access.bearer("wrong", &here).expect_err("wrong").kind, crate::Kind::Unauthenticated);
        }
        let token = std::fs::read_to_string(directory.path().join("token")).expect("made");
        access.bearer(token.trim(), &here).expect("the token");
    }
}
