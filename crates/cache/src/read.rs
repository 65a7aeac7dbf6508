//! Reads: what is held comes from there; of the rest it is found out whether there is a copy, and where there is none the store behind
//! answers, whose answer is kept.

use array::{Answer, What};
use device::IoError;

use crate::busy::Kind;
use crate::layout::{BEHIND, CACHE, Range};
use crate::volume::{Job, Outcome, Volume};

/// Runs of copies and of what is missing that a piece is taken apart into at most; the rest counts as missing.
const RUNS_MAX: usize = 16;

/// How a piece of a read is being had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// From where it is held.
    Held,
    /// It is asked whether there is a copy of any of it.
    Look,
    /// Copies are read. Only what is there when it is asked for the second time was there all the while: the groomer may lose it at any
    /// time, and nothing is copied there meanwhile.
    Copy,
    /// It is asked for the second time, of which sectors there are copies.
    LookAgain,
    /// From behind.
    Behind,
    Done,
}

#[derive(Debug)]
struct Piece {
    sectors: Range,
    step: Step,
    /// What was read of the copies.
    copy: Option<Vec<u8>>,
    /// Of which sectors there are copies, as far as that was found out.
    runs: Vec<(Range, bool)>,
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

impl Piece {
    fn new(sectors: Range, step: Step) -> Piece {
        Piece { sectors, step, copy: None, runs: Vec::new(), busy: None }
    }

    /// The first sector of which it is not known whether there is a copy.
    fn looked(&self) -> u64 {
        self.runs.last().map_or(self.sectors.start, |(run, _)| run.end)
    }

    /// It was found out of so many more sectors.
    fn found(&mut self, count: u64, mapped: bool) {
        let from = self.looked();
        let end = self.sectors.end.min(from + count.max(1));
        match self.runs.last_mut() {
            Some((run, same)) if *same == mapped => run.end = end,
            _ => self.runs.push((from..end, mapped)),
        }
        if self.runs.len() >= RUNS_MAX && !mapped {
            self.runs.iter_mut().last().expect("there are some").0.end = self.sectors.end;
        }
    }
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
                pieces.push(Piece::new(sectors, step));
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
        self.look(job, at);
    }

    /// Whether nothing changes there.
    fn is_unchanging(&self, sectors: &Range) -> bool {
        !self.busy.any(sectors, |kind| matches!(kind, Kind::Change | Kind::Fill | Kind::Release))
    }

    /// Asks for the next run of copies, or of what is missing.
    fn look(&mut self, job: u64, at: usize) {
        let Some(piece) = self.piece(job, at) else { return };
        let (from, max) = (piece.looked(), piece.sectors.end - piece.looked());
        let lba = self.layout().clean(from);
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
        match (piece.step, outcome) {
            (Step::Held, outcome) => self.piece_done(job, at, read_of(outcome)),
            (Step::Behind, outcome) if member == BEHIND => self.behind_done(job, at, read_of(outcome)),
            (Step::Look, Ok(Answer::Extent(extent))) => {
                piece.found(extent.count, extent.mapped);
                if extent.mapped {
                    piece.step = Step::Copy;
                    self.read_copy(job, at, &sectors);
                } else if piece.looked() < sectors.end {
                    self.look(job, at);
                } else {
                    self.read_behind(job, at);
                }
            }
            (Step::Copy, Ok(Answer::Done(Some(buf)))) => {
                (piece.copy, piece.step) = (Some(buf), Step::LookAgain);
                piece.runs.clear();
                self.look(job, at);
            }
            (Step::LookAgain, Ok(Answer::Done(Some(buf)))) => {
                piece.copy = Some(buf);
                self.copies_or_not(job, at);
            }
            (Step::LookAgain, Ok(Answer::Extent(extent))) => {
                piece.found(extent.count, extent.mapped);
                if piece.looked() < sectors.end {
                    self.look(job, at);
                } else {
                    self.copies_or_not(job, at);
                }
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

    /// Takes what was read of copies that were there all the while. The store behind is asked for the rest.
    fn copies_or_not(&mut self, job: u64, at: usize) {
        let Some(piece) = self.piece(job, at) else { return };
        if piece.runs.iter().all(|(_, mapped)| !mapped) && piece.looked() == piece.sectors.end {
            return self.read_behind(job, at);
        }
        if piece.looked() < piece.sectors.end {
            return;
        }
        let Some(copy) = piece.copy.take() else { return };
        let (start, runs) = (piece.sectors.start, std::mem::take(&mut piece.runs));
        if let [(run, true)] = &runs[..] {
            self.status.hit_sectors += run.end - run.start;
            return self.piece_done(job, at, Ok(copy));
        }
        piece.step = Step::Done;
        let busy = piece.busy.take();
        let Some(kind) = busy.and_then(|busy| self.busy.end(busy)) else { return };
        let sector = self.header.sector_bytes as usize;
        let mut missing = Vec::new();
        let Some(Job::Read(read)) = self.jobs.get_mut(&job) else { return };
        // It is done, and those take its place.
        read.left -= 1;
        for (run, mapped) in runs {
            if !mapped {
                read.left += 1;
                missing.push(read.pieces.len());
                read.pieces.push(Piece { busy: Some(self.busy.begin(&run, kind)), ..Piece::new(run, Step::Behind) });
                continue;
            }
            self.status.hit_sectors += run.end - run.start;
            let bytes = (run.end - run.start) as usize * sector;
            let (from, to) = ((run.start - start) as usize * sector, (run.start - read.lba) as usize * sector);
            read.buf[to..to + bytes].copy_from_slice(&copy[from..from + bytes]);
        }
        missing.into_iter().for_each(|at| self.read_behind(job, at));
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
