//! Where on the device a request of the trace goes.

use std::collections::BTreeMap;

use crate::record::{LARGEST_REQUEST, Op, Record};

/// The addresses of a trace on a device.
#[derive(Clone, Debug)]
pub struct Layout {
    place: Place,
    bytes: u64,
    sector: u64,
}

/// How places are found.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Where each volume begins in one long space of `span` bytes, which is wrapped around the device or scaled to it.
    Bases { bases: BTreeMap<u32, u64>, span: u64, scaled: bool },
    /// Runs that are kept, by volume and address.
    Spans(Vec<Span>),
}

/// A run of the trace's addresses and where it lies on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its volume.
    pub volume: u32,
    /// Its first byte there.
    pub from: u64,
    /// How long it is.
    pub bytes: u64,
    /// Its first byte on the device.
    pub to: u64,
}

impl Layout {
    pub(super) fn new(place: Place, bytes: u64, sector: u64) -> Layout {
        Layout { place, bytes, sector }
    }

    /// Where a record, or what of it can be one request, goes. `None`: the survey saw no such request.
    pub fn part(&self, record: &Record) -> Option<Part> {
        if record.op == Op::Trim {
            return self.part_of_trim(record);
        }
        let start = match &self.place {
            Place::Bases { bases, span, scaled } => self.address(bases, *span, *scaled, record)?,
            Place::Spans(spans) => {
                let span = spans.get(behind(spans, record).checked_sub(1)?)?;
                if span.volume != record.volume || record.end() > span.from + span.bytes {
                    return None;
                }
                span.to + (record.offset - span.from)
            }
        };
        let first = start - start % self.sector;
        // Scaling puts a request anywhere: its length is what is kept, and not in which sectors it began and ended.
        let from = if self.scales() { first } else { start };
        let end = from.checked_add(record.bytes)?.checked_next_multiple_of(self.sector)?;
        let bytes = (end - first).min(self.bytes);
        // What would reach over the end is moved to lie before it; only wrapping and scaling have such requests.
        let offset = first.min(self.bytes - bytes);
        Some(Part { offset, bytes, taken: record.bytes })
    }

    /// A trim may be of any length, and nothing may be trimmed that it does not cover.
    fn part_of_trim(&self, record: &Record) -> Option<Part> {
        let (start, taken) = match &self.place {
            Place::Bases { bases, span, scaled } => {
                let start = self.address(bases, *span, *scaled, record)?;
                if *scaled {
                    // A region becomes a smaller region: its end is scaled too.
                    return self.part_of_scaled_trim(bases, *span, start, record);
                }
                (start, record.bytes.min(self.bytes - start))
            }
            Place::Spans(spans) => {
                let at = behind(spans, record);
                let reaches = |span: &&Span| span.volume == record.volume && record.offset < span.from + span.bytes;
                let span = at.checked_sub(1).and_then(|at| spans.get(at)).filter(reaches).or_else(|| spans.get(at));
                match span.filter(|span| span.volume == record.volume && span.from < record.end()) {
                    // Nothing that is kept is behind its beginning.
                    None => return Some(Part { offset: 0, bytes: 0, taken: record.bytes }),
                    Some(span) if span.from > record.offset => {
                        return Some(Part { offset: 0, bytes: 0, taken: span.from - record.offset });
                    }
                    Some(span) => {
                        let within = record.offset - span.from;
                        (span.to + within, record.bytes.min(span.bytes - within))
                    }
                }
            }
        };
        // What one request can say. A multiple of every sector, so that nothing is lost between two.
        let most = LARGEST_REQUEST - start % self.sector;
        let taken = taken.min(most);
        self.inwards(start, start + taken, taken)
    }

    fn part_of_scaled_trim(&self, bases: &BTreeMap<u32, u64>, span: u64, start: u64, trim: &Record) -> Option<Part> {
        let end_after = |bytes: u64| {
            let at = bases.get(&trim.volume)?.checked_add(trim.offset)?.checked_add(bytes)?;
            Some((u128::from(at) * u128::from(self.bytes) / u128::from(span.max(1))).min(u128::from(self.bytes)) as u64)
        };
        let width = end_after(trim.bytes)?.saturating_sub(start);
        if width <= LARGEST_REQUEST {
            return self.inwards(start, start + width, trim.bytes);
        }
        let taken = (u128::from(trim.bytes) * u128::from(LARGEST_REQUEST) / u128::from(width)).max(1) as u64;
        self.inwards(start, end_after(taken)?.max(start), taken)
    }

    /// From one byte to another, without the sectors that are not whole.
    fn inwards(&self, start: u64, end: u64, taken: u64) -> Option<Part> {
        let first = start.checked_next_multiple_of(self.sector)?;
        let end = end - end % self.sector;
        Some(Part { offset: first, bytes: end.saturating_sub(first), taken })
    }

    fn address(&self, bases: &BTreeMap<u32, u64>, span: u64, scaled: bool, record: &Record) -> Option<u64> {
        let at = bases.get(&record.volume)?.checked_add(record.offset)?;
        if scaled {
            Some(((u128::from(at) * u128::from(self.bytes) / u128::from(span.max(1))) as u64).min(self.bytes - 1))
        } else {
            Some(at % self.bytes)
        }
    }

    /// Addresses come round at the end of the device.
    pub fn wraps(&self) -> bool {
        matches!(self.place, Place::Bases { scaled: false, .. })
    }

    fn scales(&self) -> bool {
        matches!(self.place, Place::Bases { scaled: true, .. })
    }

    /// Bytes of the device.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The first run behind the beginning of a record.
fn behind(spans: &[Span], record: &Record) -> usize {
    spans.partition_point(|span| (span.volume, span.from) <= (record.volume, record.offset))
}

/// What of a record is one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its first byte on the device.
    pub offset: u64,
    /// How long it is there; 0: nothing is asked of the device.
    pub bytes: u64,
    /// Bytes of the record that it stands for.
    pub taken: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(volume: u32, offset: u64, bytes: u64) -> Record {
        Record { volume, offset, bytes, ..Record::default() }
    }

    fn place(layout: &Layout, record: &Record) -> Option<(u64, u64)> {
        layout.part(record).map(|part| (part.offset, part.bytes))
    }

    fn bases(scaled: bool) -> Layout {
        let place = Place::Bases { bases: BTreeMap::from([(0, 0), (3, 1 << 20)]), span: 4 << 20, scaled };
        Layout::new(place, 1 << 20, 4096)
    }

    #[test]
    fn wrapping_keeps_neighbours_and_stays_within() {
        let layout = bases(false);
        assert_eq!(place(&layout, &record(0, 8192, 4096)), Some((8192, 4096)));
        assert_eq!(place(&layout, &record(3, 8192, 4096)), Some((8192, 4096)), "on top of each other");
        assert_eq!(place(&layout, &record(0, 512, 512)), Some((0, 4096)), "outwards to sectors");
        assert_eq!(place(&layout, &record(0, 4095, 2)), Some((0, 8192)));
        assert_eq!(place(&layout, &record(0, (1 << 20) - 4096, 8192)), Some(((1 << 20) - 8192, 8192)), "over the end");
        assert_eq!(place(&layout, &record(0, 0, 1 << 30)), Some((0, 1 << 20)), "larger than the device");
        assert_eq!(place(&layout, &record(1, 0, 512)), None, "another volume");
    }

    #[test]
    fn scaling_keeps_the_order() {
        let layout = bases(true);
        assert_eq!(place(&layout, &record(3, 0, 4096)), Some((1 << 18, 4096)));
        assert_eq!(place(&layout, &record(3, (3 << 20) - 4096, 4096)), Some(((1 << 20) - 4096, 4096)));
        let mut last = 0;
        for offset in (0..3 << 20).step_by(1000) {
            let (first, _) = place(&layout, &record(3, offset, 512)).expect("a place");
            assert!(first >= last);
            last = first;
        }
    }

    #[test]
    fn compaction_keeps_runs_together() {
        let spans = vec![
            Span { volume: 0, from: 65_536, bytes: 131_072, to: 0 },
            Span { volume: 2, from: 1 << 40, bytes: 65_536, to: 131_072 },
        ];
        let layout = Layout::new(Place::Spans(spans), 1 << 20, 512);
        assert_eq!(place(&layout, &record(0, 65_536 + 65_000, 1000)), Some((64_512, 1536)));
        assert_eq!(place(&layout, &record(2, (1 << 40) + 512, 512)), Some((131_584, 512)));
        for nowhere in [record(0, 0, 512), record(1, 65_536, 512), record(0, 65_536, 200_000), record(2, 0, 512)] {
            assert_eq!(place(&layout, &nowhere), None);
        }
    }

    /// Every part of a trim.
    fn parts(layout: &Layout, mut trim: Record) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        while trim.bytes > 0 {
            let part = layout.part(&trim).expect("a place");
            assert!(part.taken > 0, "it goes on");
            parts.extend((part.bytes > 0).then_some((part.offset, part.bytes)));
            trim.offset += part.taken;
            trim.bytes -= part.taken;
        }
        parts
    }

    #[test]
    fn trims_take_nothing_with_them() {
        let trim = |volume, offset, bytes| Record { op: Op::Trim, ..record(volume, offset, bytes) };
        let layout = bases(false);
        assert_eq!(parts(&layout, trim(0, 100, 10_000)), [(4096, 4096)], "inwards to sectors");
        assert_eq!(
            parts(&layout, trim(0, (1 << 20) - 4096, 8192)),
            [((1 << 20) - 4096, 4096), (0, 4096)],
            "around the end"
        );
        let spans = vec![
            Span { volume: 0, from: 65_536, bytes: 65_536, to: 0 },
            Span { volume: 0, from: 1 << 30, bytes: 65_536, to: 65_536 },
            Span { volume: 1, from: 0, bytes: 65_536, to: 131_072 },
        ];
        let layout = Layout::new(Place::Spans(spans), 1 << 20, 512);
        let kept = parts(&layout, trim(0, 0, 1 << 40));
        assert_eq!(kept, [(0, 65_536), (65_536, 65_536)], "only what is kept, of its own volume");
        assert_eq!(parts(&layout, trim(0, 200_000, 1000)), []);
        let scaled = Place::Bases { bases: BTreeMap::from([(0, 0)]), span: 1 << 40, scaled: true };
        let scaled = Layout::new(scaled, 4 << 30, 4096);
        assert_eq!(parts(&scaled, trim(0, 1 << 39, 1 << 38)), [(2 << 30, 1 << 30)], "a region becomes a region");
        assert_eq!(parts(&scaled, trim(0, 0, 1 << 40)).len(), 4);
        let large =
            Layout::new(Place::Bases { bases: BTreeMap::from([(0, 0)]), span: 1 << 40, scaled: false }, 1 << 40, 4096);
        assert_eq!(parts(&large, trim(0, 0, 3 << 29)), [(0, 1 << 30), (1 << 30, 1 << 29)], "at most 1 GiB at once");
        assert_eq!(parts(&large, trim(0, 100, 2 << 30)).iter().map(|part| part.1).sum::<u64>(), (2 << 30) - 4096);
    }
}
