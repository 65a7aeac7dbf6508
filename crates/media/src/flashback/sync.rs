//! A sync: what it covers is durable with its parity, or the parity of what is open stands in the journal.

use super::journal::{page_of, places};
use super::parity::Which;
use super::{Flashback, Own};
use crate::{Command, Done, MediaError};

/// Where a sync stands.
#[derive(Clone, Copy)]
enum Phase {
    /// Waits for the parity of stripes that were complete when it began.
    Finals,
    /// No seat is free: what is done is made durable first, which frees those that retired.
    Seats,
    /// Waits for the journal.
    Journal,
    /// The medium syncs.
    Sync,
}

/// The sync under way; others wait for it, and share the next.
pub(super) struct SyncRun {
    ids: Vec<u64>,
    phase: Phase,
    /// Commands of our own that it waits for.
    waits: Vec<usize>,
    failure: Option<MediaError>,
}

impl Flashback {
    pub(super) fn begin_sync(&mut self, id: u64) {
        if self.sync.is_some() {
            return self.syncs_waiting.push(id);
        }
        self.begin_sync_for(vec![id]);
    }

    fn begin_sync_for(&mut self, ids: Vec<u64>) {
        let waits = self.own.iter().filter(|(_, own)| matches!(own, Own::Final { .. }));
        let waits = waits.map(|(key, _)| key).collect();
        self.sync = Some(SyncRun { ids, phase: Phase::Finals, waits, failure: self.failure.take() });
        self.advance_sync();
    }

    /// A command of our own that a sync may wait for is done.
    pub(super) fn note_own(&mut self, key: usize, result: Result<(), MediaError>) {
        if let Err(error) = &result {
            tracing::error!(%error, "parity could not be programmed");
        }
        match &mut self.sync {
            Some(sync) => {
                sync.waits.retain(|wait| *wait != key);
                sync.failure = sync.failure.take().or(result.err());
            }
            None => self.failure = self.failure.take().or(result.err()),
        }
    }

    /// Takes the sync as far as it can go.
    pub(super) fn advance_sync(&mut self) {
        while let Some(phase) = self.sync.as_ref().filter(|sync| sync.waits.is_empty()).map(|sync| sync.phase) {
            let next = match phase {
                Phase::Finals if self.journal_open_stripes() => Phase::Journal,
                Phase::Finals => Phase::Seats,
                Phase::Journal => Phase::Sync,
                Phase::Seats | Phase::Sync => return,
            };
            if matches!(next, Phase::Seats | Phase::Sync) {
                self.journal.sync_begins();
                self.submit_own(Own::Sync, Command::Sync);
            }
            self.sync.as_mut().expect("seen above").phase = next;
        }
    }

    /// The medium's sync is done.
    pub(super) fn synced(&mut self, result: Result<(), MediaError>) {
        let result = self.without(result, None);
        if result.is_ok() {
            self.journal.sync_done();
        }
        let Some(sync) = &mut self.sync else { return };
        sync.failure = sync.failure.take().or(result.err());
        if matches!(sync.phase, Phase::Seats) && sync.failure.is_none() {
            sync.phase = Phase::Finals;
            return self.advance_sync();
        }
        let Some(sync) = self.sync.take() else { return };
        for id in sync.ids {
            self.answer_in_spite(Done { id, result: sync.failure.clone().map_or(Ok(None), Err) }, None);
        }
        let waiting = std::mem::take(&mut self.syncs_waiting);
        if !waiting.is_empty() {
            self.begin_sync_for(waiting);
        }
    }

    /// Begins to write the parity of what is programmed of open stripes and not in the journal yet. False when there is no
    /// seat for one of them.
    fn journal_open_stripes(&mut self) -> bool {
        for index in 0..self.stripes.len() {
            let rows = self.stripes[index].uncovered(self.geometry.slot_bytes());
            if rows.is_empty() {
                continue;
            }
            if self.stripes[index].seat.is_none() {
                let Some(seat) = self.journal.take() else { return false };
                self.stripes[index].seat = Some(seat);
            }
            self.journal_stripe(index, &rows);
        }
        true
    }

    fn journal_stripe(&mut self, index: usize, rows: &[usize]) {
        let (slot_bytes, unit) = (self.geometry.slot_bytes(), self.geometry.unit_bytes);
        let all = places(&self.geometry);
        let stripe = &mut self.stripes[index];
        let (page, seat) = (stripe.page, stripe.seat.expect("it was just given one"));
        let runs_of = stripe.journal(rows, slot_bytes, unit, all);
        for number in 0..self.geometry.parity {
            let die = self.geometry.parity_die(page, number);
            if !self.dies.writes(die) {
                continue;
            }
            for (place, runs) in (0..).zip(&runs_of).filter(|(_, runs)| !runs.is_empty()) {
                let buffer = self.inner.page();
                for run in runs {
                    self.stripes[index].journal_page(Which::nth(number), place, run, slot_bytes, &buffer);
                    let at = page_of(&self.geometry, page, seat, u32::from(place), number);
                    let command = Command::Program { at, bytes: run.clone(), page: buffer.clone() };
                    let key = self.submit_own(Own::Journal { die }, command);
                    self.sync.as_mut().expect("only a sync journals").waits.push(key);
                }
            }
        }
    }
}
