//! What a read under way may give, where a composite may ask another member once more.

use crate::arrays::SECTOR;
use crate::model::{Model, OpId, Part};
use crate::payload;

/// Each sector's versions, from the one that it had when the read was asked to the one that it got last. The model does not keep them: it
/// forgets a version once a later one is durable, even while a read that saw it has not been answered.
pub(crate) struct Seen {
    lba: u64,
    versions: Vec<Vec<OpId>>,
}

impl Seen {
    /// Of a read that is about to be asked.
    pub fn new(model: &Model, lba: u64, count: u64) -> Seen {
        Seen { lba, versions: (lba..lba + count).map(|lba| vec![model.current(lba)]).collect() }
    }

    /// The model just took a change of these.
    pub fn changed(&mut self, model: &Model, parts: &[Part]) {
        let read = self.lba..self.lba + self.versions.len() as u64;
        for lba in parts.iter().flat_map(|part| part.lba..part.lba + part.count).filter(|lba| read.contains(lba)) {
            self.versions[(lba - self.lba) as usize].push(model.current(lba));
        }
    }

    /// Sectors of which it gave none of the versions that it may give, with these. What came after it was asked is among them with `later`.
    pub fn wrong<'a>(&'a self, buf: &'a [u8], later: bool) -> impl Iterator<Item = (u64, &'a [OpId])> {
        let may = self.versions.iter().map(move |versions| if later { &versions[..] } else { &versions[..1] });
        (self.lba..).zip(may).zip(buf.chunks_exact(SECTOR)).filter_map(|((lba, may), sector)| {
            let holds = |op: &OpId| payload::holds(sector, lba, *op, Model::is_zero(*op));
            (!may.iter().any(holds)).then_some((lba, may))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_may_give_what_was_overwritten_while_it_was_under_way() {
        let mut model = Model::new(8);
        let part = Part { lba: 3, count: 1, zeros: false };
        let write = |model: &mut Model, seen: &mut Seen| {
            let op = model.took_all(&[part], true);
            seen.changed(model, &[part]);
            model.answered(op, true);
            let mut sector = vec![0; SECTOR];
            payload::fill(&mut sector, 3, op, false);
            sector
        };
        let mut before = Seen::new(&model, 2, 2);
        let overwritten = [vec![0; SECTOR], write(&mut model, &mut before)].concat();
        write(&mut model, &mut before);
        assert_eq!(before.wrong(&overwritten, true).count(), 0);
        let wrong: Vec<u64> = before.wrong(&overwritten, false).map(|(lba, _)| lba).collect();
        assert_eq!(wrong, [3], "a read that asks once sees what there was");
        let after = Seen::new(&model, 2, 2);
        assert_eq!(after.wrong(&overwritten, true).count(), 1, "one asked later sees no less than was answered");
    }
}
