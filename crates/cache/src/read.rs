//! Reads: what is held comes from there; of the rest it is found out whether there is a copy, and where there is none the store behind
//! answers, whose answer is kept.

use array::{Answer, What};
use device::IoError;

use crate::busy::Kind;
use crate::layout::{BEHIND, CACHE, Range};
use crate::volume::{Job, Outcome, Volume};

/// How a piece of a read is being had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// From where it is held.
    Held,
    /// It is asked whether there is a copy.
    Look,
    /// The copy is read. Only when it is asked for the second time whether there is one, and there is, it was there all the while:
    /// the groomer may lose it at any time, and nothing is copied there meanwhile.
    Copy,
    /// It is asked for the second time.
    LookAgain,
    /// From behind.
    Behind,
    Done,
}

#[derive(Debug)]
struct Piece {
    sectors: Range,
    step: Step,
    /// What was read of the copy, and whether there is one, where both are asked for at once.
    copy: Option<Vec<u8>>,
    mapped: Option<bool>,
    /// Its number among what is under way.
    busy: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Read {
    pub tag: u64,
    lba: u64,
    buf: Vec<u8>,
    pieces: Vec<Piece>,
    left: usize,
    error: Option<IoError>,
}

impl Volume {
    pub(crate) fn read(&mut self, tag: u64, lba: u64, buf: Vec<u8>) {
        let count = buf.len() as u64 / u64::from(self.header.sector_bytes);
        self.estimator.read(&(lba..lba + count), self.status.own());
        let runs = self.held.runs(&(lba..lba + count));
        let largest = u64::from(self.max_request);
        let mut pieces = Vec::with_capacity(runs.len());
        for (run, held) in runs {
            let mut from = run.start;
            while from < run.end {
                let sectors = from..run.end.min(from + largest);
                from = sectors.end;
                let step = if held { Step::Held } else { Step::Look };
                pieces.push(Piece { sectors, step, copy: None, mapped: None, busy: None });
            }
        }
        let count = pieces.len();
        let job = self.job(Job::Read(Read { tag, lba, buf, pieces, left: count, error: None }));
        for at in 0..count {
            self.begin_piece(job, at);
        }
    }

    fn piece(&mut self, job: u64, at: usize) -> Option<&mut Piece> {
        match self.jobs.get_mut(&job) {
            Some(Job::Read(read)) => read.pieces.get_mut(at),
            _ => None,
        }
    }

    fn begin_piece(&mut self, job: u64, at: usize) {
        let Some(Piece { sectors, step, .. }) = self.piece(job, at) else { return };
        let (sectors, step) = (sectors.clone(), *step);
        let layout = self.layout();
        if step == Step::Held {
            let buf = vec![0; self.bytes(sectors.end - sectors.start)];
            self.status.hit_sectors += sectors.end - sectors.start;
            let busy = self.busy.begin(&sectors, Kind::Held);
            if let Some(piece) = self.piece(job, at) {
                piece.busy = Some(busy);
            }
            return self.ask(job, at, CACHE, What::Read { lba: layout.held(sectors.start), buf });
        }
        // A copy that is being written there may be seen half.
        if self.busy.any(&sectors, |kind| kind == Kind::Fill) {
            return self.read_behind(job, at);
        }
        let busy = self.busy.begin(&sectors, Kind::Probe { unchanged: self.is_unchanging(&sectors) });
        let at_once = self.looks_at_once;
        let Some(piece) = self.piece(job, at) else { return };
        piece.busy = Some(busy);
        if at_once {
            piece.step = Step::LookAgain;
            self.read_copy(job, at, &sectors);
        }
        self.look(job, at, &sectors);
    }

    /// Whether nothing changes there.
    fn is_unchanging(&self, sectors: &Range) -> bool {
        !self.busy.any(sectors, |kind| matches!(kind, Kind::Change | Kind::Fill | Kind::Release))
    }

    fn look(&mut self, job: u64, at: usize, sectors: &Range) {
        let (lba, max) = (self.layout().clean(sectors.start), sectors.end - sectors.start);
        self.ask(job, at, CACHE, What::Extent { lba, max });
    }

    fn read_copy(&mut self, job: u64, at: usize, sectors: &Range) {
        let buf = vec![0; self.bytes(sectors.end - sectors.start)];
        let lba = self.layout().clean(sectors.start);
        self.ask(job, at, CACHE, What::Read { lba, buf });
    }

    /// Asks the store behind for a piece of which there is no copy.
    fn read_behind(&mut self, job: u64, at: usize) {
        let Some(piece) = self.piece(job, at) else { return };
        piece.step = Step::Behind;
        let (sectors, busy) = (piece.sectors.clone(), piece.busy);
        match busy {
            Some(busy) => self.busy.misses(busy),
            None => {
                let busy = self.busy.begin(&sectors, Kind::Miss { unchanged: self.is_unchanging(&sectors) });
                self.piece(job, at).expect("just seen").busy = Some(busy);
            }
        }
        let count = sectors.end - sectors.start;
        self.status.missed_sectors += count;
        let buf = vec![0; self.bytes(count)];
        self.ask(job, at, BEHIND, What::Read { lba: sectors.start, buf });
    }

    pub(crate) fn read_part(&mut self, job: u64, member: usize, at: usize, outcome: Outcome) {
        let Some(piece) = self.piece(job, at) else { return };
        let sectors = piece.sectors.clone();
        let count = sectors.end - sectors.start;
        let is_copy =
            |answer: &Outcome| matches!(answer, Ok(Answer::Extent(extent)) if extent.mapped && extent.count >= count);
        match (piece.step, outcome) {
            (Step::Held, outcome) => self.piece_done(job, at, read_of(outcome)),
            (Step::Behind, outcome) if member == BEHIND => self.behind_done(job, at, read_of(outcome)),
            (Step::Look, answer) if is_copy(&answer) => {
                piece.step = Step::Copy;
                self.read_copy(job, at, &sectors);
            }
            (Step::Copy, Ok(Answer::Done(Some(buf)))) => {
                piece.copy = Some(buf);
                piece.step = Step::LookAgain;
                self.look(job, at, &sectors);
            }
            (Step::LookAgain, Ok(Answer::Done(Some(buf)))) => {
                piece.copy = Some(buf);
                self.copy_or_not(job, at);
            }
            (Step::LookAgain, answer @ Ok(Answer::Extent(_))) => {
                piece.mapped = Some(is_copy(&answer));
                self.copy_or_not(job, at);
            }
            (Step::Copy | Step::LookAgain, Err(_)) => {
                self.status.failed_copies += 1;
                self.read_behind(job, at);
            }
            (Step::Look | Step::Copy | Step::LookAgain, _) => self.read_behind(job, at),
            // The other one of what was asked for at once.
            (Step::Behind | Step::Done, _) => {}
        }
    }

    fn copy_or_not(&mut self, job: u64, at: usize) {
        let Some(piece) = self.piece(job, at) else { return };
        match (piece.mapped, piece.copy.take()) {
            (Some(false), _) => self.read_behind(job, at),
            (Some(true), Some(buf)) => {
                self.status.hit_sectors += buf.len() as u64 / u64::from(self.header.sector_bytes);
                self.piece_done(job, at, Ok(buf));
            }
            (_, copy) => piece.copy = copy,
        }
    }

    /// The store behind has answered.
    fn behind_done(&mut self, job: u64, at: usize, result: Result<Vec<u8>, IoError>) {
        let Some(piece) = self.piece(job, at) else { return };
        let (sectors, busy) = (piece.sectors.clone(), piece.busy.take());
        let kind = busy.and_then(|busy| self.busy.end(busy));
        // Nobody may be reading a copy there while it is written.
        let alone = |kind| matches!(kind, Kind::Probe { .. } | Kind::Fill | Kind::Release | Kind::Change);
        if let (Ok(buf), Some(Kind::Miss { unchanged: true })) = (&result, kind)
            && !self.busy.any(&sectors, alone)
        {
            self.fill(&sectors, buf.as_slice().into());
        }
        self.piece_done(job, at, result);
    }

    /// Writes a copy of what stands behind.
    pub(crate) fn fill(&mut self, sectors: &Range, data: std::sync::Arc<[u8]>) {
        let busy = self.busy.begin(sectors, Kind::Fill);
        let job = self.job(Job::Fill(busy, sectors.clone()));
        let (lba, part) = (self.layout().clean(sectors.start), 0..data.len());
        self.ask(job, 0, CACHE, What::Write { lba, data, part, fua: false });
    }

    /// A copy is written. Without room there is none.
    pub(crate) fn fill_done(&mut self, job: u64, outcome: &Outcome) {
        let Some(Job::Fill(busy, sectors)) = self.jobs.remove(&job) else { return };
        self.busy.end(busy);
        if outcome.is_ok() {
            self.status.filled_sectors += sectors.end - sectors.start;
        }
    }

    fn piece_done(&mut self, job: u64, at: usize, result: Result<Vec<u8>, IoError>) {
        let sector = self.header.sector_bytes as usize;
        let Some(Job::Read(read)) = self.jobs.get_mut(&job) else { return };
        let piece = &mut read.pieces[at];
        piece.step = Step::Done;
        let busy = piece.busy.take();
        match result {
            Ok(bytes) if bytes.len() == read.buf.len() => read.buf = bytes,
            Ok(bytes) => {
                let from = (piece.sectors.start - read.lba) as usize * sector;
                read.buf[from..from + bytes.len()].copy_from_slice(&bytes);
            }
            Err(error) => read.error = Some(error),
        }
        read.left -= 1;
        if read.left == 0
            && let Some(Job::Read(read)) = self.jobs.remove(&job)
        {
            self.answer(read.tag, read.error.map_or(Ok(Some(read.buf)), Err));
        }
        if let Some(busy) = busy {
            self.busy.end(busy);
        }
    }
}

fn read_of(outcome: Outcome) -> Result<Vec<u8>, IoError> {
    match outcome {
        Ok(Answer::Done(Some(buf))) => Ok(buf),
        Ok(_) => Err(IoError::Media),
        Err(error) => Err(error),
    }
}
