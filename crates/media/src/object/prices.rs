//! What an object store costs: the prices that the groomer collects by, as a user states them, and what follows from them for a LEB.

use std::fmt;
use std::str::FromStr;

use ftl::{Fees, Geometry};

use super::jobs::SEGMENT_BYTES;

/// Prices of a store, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Of 1,000 requests that write: PUT.
    pub puts: f64,
    /// Of 1,000 requests that read: GET.
    pub gets: f64,
    /// Of a GiB that is kept for a month. Providers write GB and mean 2^30 bytes.
    pub month: f64,
    /// Of a GiB that leaves the store.
    pub egress: f64,
}

/// The list prices of Amazon S3 Standard in us-east-1, of the first 50 TB, as <https://aws.amazon.com/s3/pricing/> states them, November 2026.
/// Deletions cost nothing, nor does what is read within the region.
pub const S3_STANDARD: Prices = Prices { puts: 0.005, gets: 0.0004, month: 0.023, egress: 0.0 };

/// What [`S3_STANDARD`] is called.
const S3_NAME: &str = "s3-standard";

/// Prices are sums of money that somebody pays.
const MOST: f64 = 1e6;

/// Milliseconds of a month of 730 hours, as bills have it.
pub const MONTH_MS: f64 = 730.0 * 3_600_000.0;
const GIB: f64 = (1u64 << 30) as f64;

/// Requests that write beside those for the data when a LEB is collected: an anchor that no longer names its objects, and one that forgets them.
const PUTS_EACH: f64 = 2.0;
/// What is moved between two looks is so small a share of the bound on what only the journal has that it slows no client down.
const SHARE_MOVED: u64 = 8;

/// Why a text states no prices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' states no prices; expected {EXPECTED}")]
pub struct NotPrices(String);

const EXPECTED: &str = "s3-standard, or all of put=USD,get=USD,month=USD,egress=USD: of 1,000 PUTs, of 1,000 GETs, of a GiB kept for a month and of a GiB read, each from 0 to 1000000";

impl NotPrices {
    /// What would be some.
    pub fn expected(&self) -> &'static str {
        EXPECTED
    }
}

impl FromStr for Prices {
    type Err = NotPrices;

    fn from_str(text: &str) -> Result<Prices, NotPrices> {
        if text == S3_NAME {
            return Ok(S3_STANDARD);
        }
        let mut stated = [("put", None), ("get", None), ("month", None), ("egress", None)];
        let wrong = || NotPrices(text.into());
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            let place = stated.iter_mut().find(|(known, value)| *known == name.trim() && value.is_none());
            let value = value.trim().parse::<f64>().ok().filter(|value| (0.0..=MOST).contains(value));
            place.ok_or_else(wrong)?.1 = Some(value.ok_or_else(wrong)?);
        }
        match stated.map(|(_, value)| value) {
            [Some(puts), Some(gets), Some(month), Some(egress)] => Ok(Prices { puts, gets, month, egress }),
            _ => Err(wrong()),
        }
    }
}

impl Prices {
    /// Prices as a user states them; nothing for `none`.
    ///
    /// # Errors
    /// The text states none.
    pub fn stated(text: &str) -> Result<Option<Prices>, NotPrices> {
        if text == "none" { Ok(None) } else { text.parse().map(Some) }
    }

    /// What counts where nobody stated prices: a directory costs nothing, and most other stores are priced like S3.
    pub fn usual(url: &str) -> Option<Prices> {
        (!url.starts_with("file:")).then_some(S3_STANDARD)
    }

    /// What these prices make of LEBs. The journal may be so many bytes ahead of the store.
    pub fn fees(&self, geometry: &Geometry, behind_bytes: u64) -> Fees {
        let slot = f64::from(geometry.slot_bytes());
        let put = self.puts / 1000.0;
        let objects = |bytes: f64| bytes / f64::from(SEGMENT_BYTES);
        Fees {
            keep: slot / GIB * self.month / MONTH_MS,
            collect: PUTS_EACH * put,
            // A LEB shorter than an object takes a request all the same.
            append: put * objects(slot).max(1.0 / f64::from(geometry.slots_per_leb())),
            fetch_page: self.gets / 1000.0,
            fetch_slot: slot / GIB * self.egress,
            most_moved: behind_bytes / SHARE_MOVED / u64::from(geometry.slot_bytes()),
        }
    }
}

impl fmt::Display for Prices {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        if *self == S3_STANDARD {
            return out.write_str(S3_NAME);
        }
        let Prices { puts, gets, month, egress } = self;
        write!(out, "put={puts},get={gets},month={month},egress={egress}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_as_they_are_written() {
        let own = Prices { puts: 0.01, gets: 0.0, month: 0.1, egress: 0.09 };
        for prices in [S3_STANDARD, own] {
            assert_eq!(prices.to_string().parse(), Ok(prices));
        }
        assert_eq!("egress=0.09, month=0.1,get=0,put=0.01".parse(), Ok(own));
        assert_eq!(Prices::stated("none"), Ok(None));
    }

    #[test]
    fn what_states_no_prices_is_refused_by_its_text() {
        let all = "put=1,get=1,month=1,egress=1";
        for text in ["", "s3", "put=1", "put=1,get=1,month=1", "put=1,put=1,get=1,month=1,egress=1"] {
            let error = text.parse::<Prices>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("'{text}' states no prices; expected s3-standard")), "{error}");
        }
        for number in ["-1", "NaN", "inf", "1e7", "x", ""] {
            let text = all.replacen("put=1", &format!("put={number}"), 1);
            assert!(text.parse::<Prices>().is_err(), "{text}");
        }
    }

    /// A LEB of one object of which half is dead is worth collecting after a day or two at the prices of S3, and not after an hour.
    #[test]
    fn the_garbage_of_half_an_object_pays_for_its_collection_within_days() {
        let geometry = Geometry {
            dies: 1,
            parity: 0,
            blocks: 100,
            pages_per_block: 32,
            slots_per_page: 64,
            sector_bytes: 4096,
            trailer_bytes: ftl::TRAILER_BYTES,
            unit_bytes: 4096,
        };
        let fees = S3_STANDARD.fees(&geometry, 1 << 30);
        let half = f64::from(geometry.slots_per_leb()) / 2.0;
        let days = (fees.collect + fees.append * half) / (fees.keep * half) / 86_400_000.0;
        assert!((2.0..6.0).contains(&days), "{days}");
        assert_eq!(fees.most_moved, (1 << 27) / u64::from(geometry.slot_bytes()));
    }
}
