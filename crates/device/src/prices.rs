//! What a device's object store costs, kept in a file beside its journal: prices depend on where a host is, so they do not travel with the
//! device. A journal without such a file has the usual prices of its store.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ftl::Collected;
use media::object::Prices;

use crate::{AttachError, Device, FormatError};

/// How often the groomer looks at what LEBs cost, milliseconds: garbage takes hours to cost as much as a request.
const LOOK_MS: u64 = 60_000;

/// What stands in the file of a journal is never longer than this.
const BYTES_MAX: u64 = 256;

/// The file of a journal.
pub(crate) fn path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".prices");
    name.into()
}

/// The prices that count for a journal whose store stands at this address.
///
/// # Errors
/// The file states none, or cannot be read.
pub(crate) fn read(journal: &Path, url: &str) -> Result<Option<Prices>, AttachError> {
    let path = path(journal);
    let refuse = |why: String| AttachError::Objects { path: path.clone(), why };
    let long = || refuse("is no file of prices: it is too long; delete it to have the usual prices".into());
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Prices::usual(url)),
        Ok(about) if about.len() > BYTES_MAX => return Err(long()),
        _ => {}
    }
    let text = std::fs::read_to_string(&path).map_err(|error| refuse(error.to_string()))?;
    Prices::stated(text.trim()).map_err(|error| refuse(format!("{error}; delete it to have the usual prices")))
}

/// Writes the file of a journal, so that a crash leaves the old one or the new one.
fn write(journal: &Path, text: &str) -> std::io::Result<()> {
    let path = path(journal);
    let mut new = path.clone().into_os_string();
    new.push(".new");
    let mut file = std::fs::File::create(&new)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    std::fs::rename(&new, &path)
}

/// Prices as people write them.
pub(crate) fn shown(prices: Option<Prices>) -> String {
    prices.map_or_else(|| "none".into(), |prices| prices.to_string())
}

impl Device {
    /// What its store costs, as people write it; nothing where it has no store.
    pub(crate) fn object_prices(&self) -> Option<String> {
        self.core.media.store_behind().map(|objects| shown(objects.prices()))
    }

    /// Has the groomer collect by these prices from now on; where there are none, by need alone. Looks at them each so many milliseconds.
    pub fn collect_by(&mut self, prices: Option<Prices>, look_each_ms: u64) {
        let Some(objects) = self.core.media.objects() else { return };
        let behind = objects.anchor().limits.behind_bytes;
        objects.set_prices(prices, look_each_ms);
        let geometry = self.core.ftl.config().geometry;
        self.core.ftl.set_fees(prices.map(|prices| prices.fees(&geometry, behind)));
    }

    /// What was collected by price since the attach.
    pub fn collected(&self) -> Collected {
        self.core.ftl.collected()
    }

    /// See [`ftl::Ftl::overdue`].
    pub fn overdue(&self) -> Vec<(u32, u64)> {
        self.core.ftl.overdue()
    }

    /// The device was attached: these prices count, and are looked at at the usual pace.
    pub(crate) fn have_prices(&mut self, prices: Option<Prices>) {
        self.collect_by(prices, LOOK_MS);
    }

    /// Keeps prices beside the journal, and has the groomer collect by them.
    pub(crate) fn set_prices(&mut self, text: &str) -> Result<(), FormatError> {
        let invalid = |expected: String| FormatError::Invalid { name: "object-prices", value: text.into(), expected };
        if self.core.media.store_behind().is_none() {
            return Err(invalid("a device on objects: this one has no object store behind it".into()));
        }
        let prices = Prices::stated(text).map_err(|error| invalid(format!("none, {}", error.expected())))?;
        let journal = self.info().paths.first().cloned().unwrap_or_default();
        write(&journal, &shown(prices)).map_err(|error| {
            FormatError::Attach(AttachError::Objects { path: path(&journal), why: error.to_string() })
        })?;
        self.have_prices(prices);
        Ok(())
    }
}
