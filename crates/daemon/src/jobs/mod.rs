//! What takes long and goes on by itself: predictions, lab runs, demo loads. Each has a thread.

pub mod demo;
pub mod lab;
pub mod prediction;
mod process;
mod progress;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Failure;
use crate::api::{Job, JobResult, JobState};
use crate::clock::now_ms;
use crate::monitor::Monitor;

/// Jobs at once, demo loads among them.
const AT_ONCE: usize = 6;
/// Jobs that are remembered.
const REMEMBERED: usize = 100;
/// By how much a job must get further before anybody is told.
const STEP: f64 = 0.005;
/// How nice a job's thread is to those of devices.
const NICE: i32 = 10;

struct Entry {
    job: Job,
    cancelled: Arc<AtomicBool>,
}

/// The jobs.
pub struct Jobs {
    monitor: Arc<Monitor>,
    entries: Mutex<VecDeque<Entry>>,
    /// Told when a job has ended.
    ended: Condvar,
    /// The next job's number: none is given twice, also when the newest is forgotten.
    next: AtomicU64,
}

/// A job, as its thread sees it.
pub struct Task {
    jobs: Arc<Jobs>,
    id: u64,
    cancelled: Arc<AtomicBool>,
}

impl Jobs {
    /// None yet.
    pub fn new(monitor: Arc<Monitor>) -> Jobs {
        Jobs { monitor, entries: Mutex::default(), ended: Condvar::new(), next: AtomicU64::new(1) }
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        // Whole between any two statements.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every job, the newest first.
    pub fn all(&self) -> Vec<Job> {
        self.entries().iter().rev().map(|entry| entry.job.clone()).collect()
    }

    /// One job.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn get(&self, id: u64) -> Result<Job, Failure> {
        let found = self.entries().iter().find(|entry| entry.job.id == id).map(|entry| entry.job.clone());
        found.ok_or_else(|| unknown(id))
    }

    /// Those of a kind that go on for a device.
    pub fn running(&self, kind: &str, device: &str) -> Option<Job> {
        let is =
            |job: &Job| job.kind == kind && job.device.as_deref() == Some(device) && job.state == JobState::Running;
        self.entries().iter().map(|entry| &entry.job).find(|job| is(job)).cloned()
    }

    /// Starts a job on a thread of its own.
    ///
    /// # Errors
    /// Too many go on, or there is no thread.
    pub fn start(
        self: &Arc<Jobs>,
        kind: &str,
        device: Option<String>,
        what: &str,
        work: impl FnOnce(&Task) -> Result<Option<JobResult>, Failure> + Send + 'static,
    ) -> Result<Job, Failure> {
        let task = {
            let mut entries = self.entries();
            if entries.iter().filter(|entry| entry.job.state == JobState::Running).count() >= AT_ONCE {
                return Err(
                    Failure::conflict(format!("{AT_ONCE} jobs go on already")).help("wait for one, or cancel one")
                );
            }
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let job = Job {
                id,
                kind: kind.into(),
                device,
                state: JobState::Running,
                progress: 0.0,
                what: what.into(),
                began_ms: now_ms(),
                ended_ms: None,
                error: None,
                result: None,
            };
            let cancelled = Arc::new(AtomicBool::new(false));
            if entries.len() >= REMEMBERED
                && let Some(old) = entries.iter().position(|entry| entry.job.state != JobState::Running)
            {
                entries.remove(old);
            }
            entries.push_back(Entry { job, cancelled: Arc::clone(&cancelled) });
            Task { jobs: Arc::clone(self), id, cancelled }
        };
        let id = task.id;
        let thread = std::thread::Builder::new().name(format!("{kind}-{id}")).spawn(move || {
            // Where it may not be nicer, it is as nice as it was.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&task)));
            let result = result.unwrap_or_else(|_| {
                Err(Failure::failed("the job made a mistake").help("the service's log says more; please report it"))
            });
            task.end(result);
        });
        if let Err(error) = thread {
            self.entries().retain(|entry| entry.job.id != id);
            return Err(Failure::failed(format!("no thread for the job: {error}")));
        }
        self.get(id)
    }

    /// Ends a job, or forgets one that has ended.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn cancel(&self, id: u64) -> Result<(), Failure> {
        let mut entries = self.entries();
        let at = entries.iter().position(|entry| entry.job.id == id).ok_or_else(|| unknown(id))?;
        match entries.get(at) {
            Some(entry) if entry.job.state == JobState::Running => entry.cancelled.store(true, Ordering::Relaxed),
            _ => drop(entries.remove(at)),
        }
        Ok(())
    }

    /// Ends every job, and waits for them for so long at most: the service stops, and nothing that a job started is to outlive it.
    pub fn end_all(&self, patience: Duration) {
        let entries = self.entries();
        entries.iter().for_each(|entry| entry.cancelled.store(true, Ordering::Relaxed));
        let one_runs = |entries: &mut VecDeque<Entry>| entries.iter().any(|entry| entry.job.state == JobState::Running);
        let (_entries, waited) =
            self.ended.wait_timeout_while(entries, patience, one_runs).unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            tracing::warn!("a job goes on although the service stops");
        }
    }

    /// Changes a job, and tells of it if `change` says that there are news.
    fn change(&self, id: u64, change: impl FnOnce(&mut Job) -> bool) {
        let changed = self
            .entries()
            .iter_mut()
            .find(|entry| entry.job.id == id)
            .and_then(|entry| change(&mut entry.job).then(|| entry.job.clone()));
        if let Some(job) = changed {
            self.monitor.tell("job", &job);
        }
    }
}

fn unknown(id: u64) -> Failure {
    Failure::not_found(format!("there is no job {id}")).help("`GET /api/v1/jobs` lists them")
}

impl Task {
    /// Whether somebody wants it to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// How far it is.
    pub fn at(&self, progress: f64, what: &str) {
        self.jobs.change(self.id, |job| {
            let news = (progress - job.progress).abs() >= STEP || job.what != what;
            if news {
                job.progress = progress.clamp(0.0, 1.0);
                job.what = what.into();
            }
            news
        });
    }

    fn end(&self, result: Result<Option<JobResult>, Failure>) {
        let cancelled = self.is_cancelled();
        self.jobs.change(self.id, |job| {
            job.ended_ms = Some(now_ms());
            (job.state, job.result, job.error) = match result {
                _ if cancelled => (JobState::Cancelled, None, None),
                Ok(result) => (JobState::Done, result, None),
                Err(failure) => (JobState::Failed, None, Some(failure.to_string())),
            };
            if job.state == JobState::Done {
                job.progress = 1.0;
            }
            true
        });
        self.jobs.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(jobs: &Jobs, id: u64) -> Job {
        loop {
            let job = jobs.get(id).expect("there");
            if job.state != JobState::Running {
                return job;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn jobs_end_fail_and_are_cancelled() {
        let directory = tempfile::tempdir().expect("a directory");
        let monitor = Arc::new(Monitor::open(&directory.path().join("h.db")).expect("opened"));
        let jobs = Arc::new(Jobs::new(monitor));
        let one = jobs.start("t", None, "counts", |task| {
            task.at(0.5, "half");
            Ok(Some(JobResult::Run("r".into())))
        });
        let one = ended(&jobs, one.expect("started").id);
        assert_eq!((one.state, one.progress, one.result), (JobState::Done, 1.0, Some(JobResult::Run("r".into()))));
        let two = jobs.start("t", None, "fails", |_| Err(Failure::invalid("no")));
        assert_eq!(ended(&jobs, two.expect("started").id).state, JobState::Failed);
        let bad = jobs.start("t", None, "breaks", |_| panic!("on purpose"));
        assert_eq!(ended(&jobs, bad.expect("started").id).state, JobState::Failed);
        let spin = |task: &Task| {
            while !task.is_cancelled() {
                std::thread::yield_now();
            }
            Ok(None)
        };
        let running: Vec<u64> =
            (0..AT_ONCE).map(|_| jobs.start("t", Some("d".into()), "spins", spin).expect("started").id).collect();
        assert!(jobs.start("t", None, "one more", spin).is_err());
        assert!(jobs.running("t", "d").is_some());
        running.iter().for_each(|id| jobs.cancel(*id).expect("there"));
        running.iter().for_each(|id| assert_eq!(ended(&jobs, *id).state, JobState::Cancelled));
        let newest = running[AT_ONCE - 1];
        jobs.cancel(newest).expect("forgotten");
        assert!(jobs.get(newest).is_err());
        let next = jobs.start("t", None, "spins", spin).expect("started");
        assert!(next.id > newest, "the number of a job that was forgotten came again");
        jobs.end_all(Duration::from_secs(60));
        assert_eq!(jobs.get(next.id).expect("there").state, JobState::Cancelled);
    }
}
