//! A trace as requests for a device that may be smaller than the one that was traced.
//!
//! [`Survey::of`] reads the trace once to learn how far it reaches, [`Playback::new`] reads it a second time and gives a request after the
//! other, placed on the device by a stated rule ([`Map`]) and due at a stated moment ([`Pace`]).

mod layout;
mod survey;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use layout::{Layout, Part, Span};
pub use survey::Survey;

use crate::error::TraceError;
use crate::reader::{Reader, Wanted};
use crate::record::{Op, Record};

/// How the addresses of a trace become addresses of the device. Volumes lie one behind the other, by number. First and last
/// byte of a read or write are moved outwards to sectors, those of a trim inwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Map {
    /// Addresses stay as they are modulo the size of the device: sequences and neighbourhoods stay, far places fall on top of each other.
    #[default]
    Wrap,
    /// Addresses are multiplied so that the end of the trace's last request comes to the end of the device: no place moves past another,
    /// but sequences are torn (on a smaller device they overlap).
    Scale,
    /// Only what the trace touches is kept, in pieces of 64 KiB, in order and without gaps: sequences and neighbourhoods stay, and no place
    /// falls on another. What is touched must fit the device.
    Compact,
}

impl Map {
    /// All of them.
    pub const ALL: [Map; 3] = [Map::Wrap, Map::Scale, Map::Compact];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Map::Wrap => "wrap",
            Map::Scale => "scale",
            Map::Compact => "compact",
        }
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Map {
    type Err = String;

    fn from_str(text: &str) -> Result<Map, String> {
        let found = Map::ALL.into_iter().find(|map| map.name() == text);
        found.ok_or_else(|| format!("'{text}' is no rule for addresses; expected wrap, scale or compact"))
    }
}

/// When requests are made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pace {
    /// At the recorded times: an open loop.
    #[default]
    Recorded,
    /// At the recorded times, divided by this: 2 is twice as fast. An open loop.
    Scaled(f64),
    /// Each as soon as there is room for it among those outstanding: a closed loop.
    Depth,
}

impl Pace {
    /// Requests have a time at which they are due.
    pub fn is_open(self) -> bool {
        self != Pace::Depth
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Recorded => f.write_str("recorded"),
            Pace::Scaled(times) => write!(f, "scaled:{times}"),
            Pace::Depth => f.write_str("depth"),
        }
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Pace, String> {
        let expected = || {
            format!(
                "'{text}' is no pace; expected recorded, depth, or scaled:TIMES with 0.0001 to 1000000, such as scaled:2 for twice as fast"
            )
        };
        match text {
            "recorded" => Ok(Pace::Recorded),
            "depth" => Ok(Pace::Depth),
            _ => {
                let times = text.strip_prefix("scaled:").and_then(|times| times.parse::<f64>().ok());
                times.filter(|times| (1e-4..=1e6).contains(times)).map(Pace::Scaled).ok_or_else(expected)
            }
        }
    }
}

impl Serialize for Pace {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Pace {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Pace, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A request for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// When it is due, nanoseconds after the first request was; 0 in a closed loop. Never before that of the item in front.
    pub due_ns: u64,
    /// What it does.
    pub op: Op,
    /// First byte on the device, a multiple of its sectors. 0 for a flush.
    pub offset: u64,
    /// How many bytes, a multiple of its sectors and at most 1 GiB. 0 for a flush.
    pub bytes: u32,
}

/// Longest span of a trace that is played back: nobody waits longer, and a time that lies further off is rather a mistake in the trace.
const LONGEST_NS: u64 = 400 * 86_400 * 1_000_000_000;

/// The requests of a trace, one after the other, in fixed memory.
#[derive(Debug)]
pub struct Playback {
    reader: Reader,
    layout: Layout,
    pace: Pace,
    first_ns: Option<u64>,
    due_ns: u64,
    /// When the record at hand is due, and what of it was not given out yet.
    at_hand: Option<(u64, Record)>,
}

impl Playback {
    /// Of a trace that was surveyed, on a device of `bytes` with sectors of `sector_bytes`.
    ///
    /// # Errors
    /// The trace cannot be read, or does not fit the device by this rule.
    pub fn new(
        path: &Path,
        wanted: &Wanted,
        survey: &Survey,
        map: Map,
        pace: Pace,
        bytes: u64,
        sector_bytes: u32,
    ) -> Result<Playback, TraceError> {
        let layout = survey
            .layout(map, bytes, sector_bytes)
            .map_err(|problem| TraceError::Unusable { path: path.into(), problem })?;
        let reader = Reader::open(path, wanted)?;
        Ok(Playback { reader, layout, pace, first_ns: None, due_ns: 0, at_hand: None })
    }

    /// When a record is due.
    fn due(&mut self, record: &Record) -> Result<u64, TraceError> {
        let first = *self.first_ns.get_or_insert(record.time_ns);
        let since = record.time_ns.saturating_sub(first);
        if self.pace.is_open() && since > LONGEST_NS {
            return Err(self.unusable(format!(
                "a request {} days after the first; expected 400 at most, or the pace depth, which takes no times",
                since / 86_400_000_000_000
            )));
        }
        let due = match self.pace {
            Pace::Recorded => since,
            // At most 400 days times ten thousand, which 64 bits hold.
            Pace::Scaled(times) => (since as f64 / times) as u64,
            Pace::Depth => 0,
        };
        // One that is out of order comes with the one in front of it.
        self.due_ns = self.due_ns.max(due);
        Ok(self.due_ns)
    }

    fn unusable(&self, problem: String) -> TraceError {
        TraceError::Unusable { path: self.reader.path().into(), problem }
    }

    /// What the record that is at hand asks of the device next. `None`: nothing more.
    fn part(&mut self) -> Result<Option<Item>, TraceError> {
        let Some((due_ns, record)) = &mut self.at_hand else { return Ok(None) };
        let (due_ns, op) = (*due_ns, record.op);
        if op == Op::Flush {
            self.at_hand = None;
            return Ok(Some(Item { due_ns, op, offset: 0, bytes: 0 }));
        }
        while record.bytes > 0 {
            let part = self.layout.part(record).filter(|part| part.taken > 0);
            let Some(part) = part else {
                self.at_hand = None;
                return Err(self.unusable("it changed while it was being played back".into()));
            };
            record.offset += part.taken;
            record.bytes -= part.taken;
            if part.bytes > 0 {
                // At most a request of 1 GiB, moved outwards to sectors.
                let bytes = part.bytes.min(u64::from(u32::MAX)) as u32;
                return Ok(Some(Item { due_ns, op, offset: part.offset, bytes }));
            }
        }
        self.at_hand = None;
        Ok(None)
    }
}

impl Iterator for Playback {
    type Item = Result<Item, TraceError>;

    fn next(&mut self) -> Option<Result<Item, TraceError>> {
        loop {
            match self.part() {
                Ok(Some(item)) => return Some(Ok(item)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
            let mut record = match self.reader.next()? {
                Ok(record) => record,
                Err(error) => return Some(Err(error)),
            };
            // A trim that covers the device several times trims it once.
            if record.op == Op::Trim && self.layout.wraps() {
                record.bytes = record.bytes.min(self.layout.bytes());
            }
            match self.due(&record) {
                Ok(due_ns) => self.at_hand = Some((due_ns, record)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_and_maps_parse_as_they_are_written() {
        for text in ["recorded", "depth", "scaled:0.5", "scaled:20"] {
            assert_eq!(text.parse::<Pace>().expect(text).to_string(), text);
        }
        for text in ["", "scaled", "scaled:0", "scaled:-1", "scaled:nan", "scaled:1e9", "fast"] {
            assert!(text.parse::<Pace>().expect_err(text).contains("scaled:2"), "{text}");
        }
        for map in Map::ALL {
            assert_eq!(map.name().parse(), Ok(map));
        }
        assert!("fold".parse::<Map>().is_err());
    }
}
