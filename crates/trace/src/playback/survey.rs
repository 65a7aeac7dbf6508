//! What is known of a trace after reading it once.

use std::collections::BTreeMap;
use std::path::Path;

use super::Map;
use super::layout::{Layout, Place, Span};
use crate::error::TraceError;
use crate::reader::{Reader, Wanted};
use crate::record::{Op, Record};

/// Bytes of the pieces that `compact` keeps: what flash and disks handle as neighbours, and small enough that little is kept in vain.
pub(super) const PIECE: u64 = 64 << 10;
/// Pieces that are remembered at most: 4 TiB of touched space, in 512 MiB of memory.
const MOST_PIECES: usize = 1 << 26;
/// Volumes of a trace at most.
const MOST_VOLUMES: usize = 1 << 20;

/// How far a trace reaches.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Records that are played back.
    pub records: u64,
    /// The first one's time.
    pub first_ns: u64,
    /// The latest time.
    pub last_ns: u64,
    /// Bytes of reads, writes and trims.
    pub bytes: u128,
    /// By volume, the end of the last request by address.
    pub ends: BTreeMap<u32, u64>,
    /// What is touched, where `compact` needs it.
    touched: Option<Touched>,
}

impl Survey {
    /// Reads a trace to its end. `compact` needs to know what is touched; the other rules need not, and it costs memory.
    ///
    /// # Errors
    /// The trace makes no sense somewhere, or is beyond what can be remembered.
    pub fn of(path: &Path, wanted: &Wanted, map: Map) -> Result<Survey, TraceError> {
        let unusable = |problem: String| TraceError::Unusable { path: path.into(), problem };
        let mut survey = Survey { touched: (map == Map::Compact).then(Touched::default), ..Survey::default() };
        for record in Reader::open(path, wanted)? {
            survey.add(&record?).map_err(unusable)?;
        }
        if survey.records == 0 {
            return Err(unusable(match wanted.volume {
                Some(volume) => format!("no request of volume {volume} in it"),
                None => "no request in it".into(),
            }));
        }
        if let Some(touched) = &mut survey.touched {
            touched.settle();
        }
        Ok(survey)
    }

    fn add(&mut self, record: &Record) -> Result<(), String> {
        if self.records == 0 {
            self.first_ns = record.time_ns;
        }
        self.records += 1;
        self.last_ns = self.last_ns.max(record.time_ns);
        self.bytes += u128::from(record.bytes);
        if record.op == Op::Flush {
            return Ok(());
        }
        let end = record.end();
        let full = self.ends.len() >= MOST_VOLUMES;
        match self.ends.get_mut(&record.volume) {
            Some(last) => *last = end.max(*last),
            None if full => {
                return Err(format!("more than {MOST_VOLUMES} volumes; play back one with --volume"));
            }
            None => drop(self.ends.insert(record.volume, end)),
        }
        match &mut self.touched {
            // A trim touches nothing: of what it covers, it is played back for what others touch.
            Some(touched) if record.op.has_data() => touched.add(record),
            _ => Ok(()),
        }
    }

    /// The trace's addresses on a device.
    ///
    /// # Errors
    /// What is touched does not fit: says by how much.
    pub fn layout(&self, map: Map, bytes: u64, sector_bytes: u32) -> Result<Layout, String> {
        let sector = u64::from(sector_bytes.max(1));
        let bytes = bytes - bytes % sector;
        if bytes == 0 {
            return Err("the device has no sectors".into());
        }
        let place = match map {
            Map::Wrap | Map::Scale => {
                // Volumes begin at multiples of a piece, so that what was aligned stays so.
                let (mut bases, mut base) = (BTreeMap::new(), 0u64);
                for (volume, end) in &self.ends {
                    bases.insert(*volume, base);
                    let next = end.checked_next_multiple_of(PIECE).and_then(|end| base.checked_add(end));
                    base = next
                        .ok_or("its volumes one behind the other reach beyond 16 EiB; play back one with --volume")?;
                }
                Place::Bases { bases, span: base, scaled: map == Map::Scale }
            }
            Map::Compact => {
                let touched = self.touched.as_ref().ok_or("it was not surveyed for compaction")?;
                if !PIECE.is_multiple_of(sector) {
                    return Err(format!(
                        "compaction keeps pieces of {PIECE} B, and the device has sectors of {sector} B"
                    ));
                }
                let spans = touched.spans();
                let needed = spans.last().map_or(0, |span| span.to + span.bytes);
                if needed > bytes {
                    return Err(format!(
                        "it touches {} in pieces of 64 KiB, and the device has {}; use a larger one, a single volume, or the rules wrap or scale",
                        size::show(needed),
                        size::show(bytes)
                    ));
                }
                Place::Spans(spans)
            }
        };
        Ok(Layout::new(place, bytes, sector))
    }
}

/// Pieces that were touched: sorted ones, and those that came since.
#[derive(Clone, Debug, Default)]
struct Touched {
    sorted: Vec<(u32, u64)>,
    fresh: Vec<(u32, u64)>,
}

impl Touched {
    fn add(&mut self, record: &Record) -> Result<(), String> {
        for piece in record.offset / PIECE..record.end().div_ceil(PIECE) {
            let piece = (record.volume, piece);
            // Most requests fall on the piece of the one before.
            if self.fresh.last() == Some(&piece) {
                continue;
            }
            self.fresh.push(piece);
            if self.fresh.len() >= (self.sorted.len() / 2).max(1 << 16) {
                self.settle();
                if self.sorted.len() > MOST_PIECES {
                    return Err(format!(
                        "it touches more than {MOST_PIECES} pieces of 64 KiB, beyond what compaction remembers; use the rules wrap or scale"
                    ));
                }
            }
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.sorted.append(&mut self.fresh);
        self.sorted.sort_unstable();
        self.sorted.dedup();
    }

    /// Runs of neighbours, one behind the other on the device.
    fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut to = 0;
        for (volume, piece) in &self.sorted {
            let from = piece * PIECE;
            match spans.last_mut() {
                Some(last) if last.volume == *volume && last.from + last.bytes == from => last.bytes += PIECE,
                _ => spans.push(Span { volume: *volume, from, bytes: PIECE, to }),
            }
            to += PIECE;
        }
        spans
    }
}
