//! What opens an encrypted device: other keys for one that is in use, and what the service remembers of them.

use device::{KeyChange, Secret};

use super::Registry;
use super::table::Key;
use crate::Failure;
use crate::api::{KeySlots, Opener};
use crate::handle::refused;

impl Registry {
    /// Changes the key slots of an attached device, for whoever shows what opens it; it goes on serving meanwhile. When it is answered, nothing of a
    /// slot that is gone is left on the device.
    ///
    /// # Errors
    /// The device is not encrypted, the secret does not open it, the change is not possible, or the device would not be attached any more when the
    /// service starts.
    pub fn change_keys(
        &self,
        name: &str,
        with: Option<&Opener>,
        change: &KeyChange,
        new: Option<&Opener>,
    ) -> Result<KeySlots, Failure> {
        let (handle, key, remembered) = {
            let mut table = self.table();
            let remembered = table.state.remembers(name);
            (table.attached(name)?, table.entry(name)?.key.clone(), remembered)
        };
        let old = handle.with_device(|device| device.key_ring())?.ok_or_else(|| {
            Failure::conflict(format!("{name} is not encrypted, so it has no keys"))
                .help("a format with encryption makes it so; everything on it is lost")
        })?;
        let secret = match (with, &key.file) {
            (Some(opener), _) => opener.secret()?,
            (None, Some(file)) => Secret::key_file(file)?,
            (None, None) => {
                return Err(Failure::invalid(format!("nothing was given that opens {name}"))
                    .help("send the passphrase or key file that opens it now"));
            }
        };
        let (changed, slot) = old.changed(&secret, change)?;
        // What the service attaches it with must go on opening it.
        let key_now = match &key.file {
            Some(file) if changed.opened_by(&Secret::key_file(file)?).is_err() => {
                match new.map(|new| Key::of(Some(new))) {
                    Some(key) if key.file.is_some() => Some(key),
                    _ if remembered => {
                        return Err(Failure::conflict(format!(
                            "{name} is attached at start with the key file {}, which would open it no more",
                            file.display()
                        ))
                        .help("give another key file, or switch attach-at-start off first"));
                    }
                    _ => Some(Key { file: None, typed: true }),
                }
            }
            _ => None,
        };
        let info = handle.ask(move |device| {
            device.set_keys(&old, &changed).map_err(refused)?;
            Ok::<_, Failure>(device.info().clone())
        })?;
        // Nothing may be left of the old ones.
        handle.wait_saved()?;
        if let Some(key) = key_now {
            self.remember_key(name, key)?;
        }
        tracing::info!(device = name, slot, "key slots changed");
        Ok(KeySlots { slot, key_slots: info.key_slots.unwrap_or_default() })
    }

    /// Notes how a device is opened from now on. One that a passphrase opens is not attached at start any more.
    pub(super) fn remember_key(&self, name: &str, key: Key) -> Result<(), Failure> {
        let mut table = self.table();
        let remembers = table.state.remembers(name);
        let entry = table.entry(name)?;
        entry.key = key.clone();
        let remembered = entry.remembered(name);
        match (remembers, key.typed) {
            (false, _) => Ok(()),
            (true, true) => table.state.forget(name),
            (true, false) => table.state.remember(remembered),
        }
    }
}
