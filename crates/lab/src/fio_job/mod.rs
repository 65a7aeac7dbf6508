//! Workloads from fio's job files and options.
//!
//! What changes the I/O is understood or refused, by line and option. What makes no difference in virtual time (how the I/O is
//! submitted, on which file, how it is logged) is passed over with a note. `docs/workload.md` lists which is which.

mod job;
mod placed;
mod sections;
mod value;

use std::path::Path;

use self::job::Job;
use self::sections::{Assignment, sections};
use crate::workload::{Phase, Stop, Time, Workload};

/// What is wrong with a job file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct JobError {
    /// File and line, or the name of the option.
    pub place: String,
    /// What is wrong, and what was expected.
    pub problem: String,
}

/// A workload from a job file, and notes about what was passed over.
///
/// # Errors
/// The file cannot be read, or an option cannot be followed.
pub fn read(path: &Path) -> Result<(Workload, Vec<String>), JobError> {
    let place = path.display().to_string();
    let text = crate::workload::text_of(path)
        .map_err(|error| JobError { place: place.clone(), problem: error.to_string() })?;
    let name = path.file_stem().map_or_else(|| "job".into(), |stem| stem.to_string_lossy().into_owned());
    from_text(&name, &place, &text)
}

/// A workload from the text of a job file; `place` is what messages call it.
///
/// # Errors
/// As for [`read`].
pub fn from_text(name: &str, place: &str, text: &str) -> Result<(Workload, Vec<String>), JobError> {
    let error = |(line, problem): (usize, String)| JobError { place: format!("{place}:{line}"), problem };
    let sections = sections(text).map_err(error)?;
    let mut jobs = Vec::new();
    let mut notes = Vec::new();
    let mut global: Vec<Assignment> = Vec::new();
    for section in sections {
        if section.name == "global" {
            global.extend(section.assignments);
            continue;
        }
        let own = section.assignments.into_iter();
        let all: Vec<Assignment> = global.iter().cloned().chain(own).collect();
        jobs.push(Job::new(&section.name, section.line, &all, &mut notes).map_err(error)?);
    }
    if jobs.is_empty() {
        return Err(JobError { place: place.into(), problem: "there is no job in it: no section but [global]".into() });
    }
    notes.sort();
    notes.dedup();
    Ok((workload(name, jobs).map_err(error)?, notes))
}

/// A workload of one job from options as they stand in a job file, such as `("bs", "4k")`.
///
/// # Errors
/// An option cannot be followed; the message names it.
pub fn from_options(name: &str, options: &[(String, String)]) -> Result<(Workload, Vec<String>), JobError> {
    let assignments: Vec<Assignment> = options
        .iter()
        .enumerate()
        .map(|(at, (key, value))| Assignment { line: at + 1, key: key.clone(), value: Some(value.clone()) })
        .collect();
    let mut notes = Vec::new();
    let error = |(line, problem): (usize, String)| {
        let place = options.get(line.wrapping_sub(1)).map_or_else(|| name.to_owned(), |(key, _)| format!("--{key}"));
        JobError { place, problem }
    };
    let job = Job::new(name, 0, &assignments, &mut notes).map_err(error)?;
    Ok((workload(name, vec![job]).map_err(error)?, notes))
}

/// Jobs side by side make a phase, until one that waits for those before it.
fn workload(name: &str, jobs: Vec<Job>) -> Result<Workload, (usize, String)> {
    let mut phases: Vec<Phase> = Vec::new();
    let seed = jobs.iter().find_map(|job| job.seed).unwrap_or(1);
    for job in jobs {
        let duration = job.runtime.map(Time);
        match phases.last_mut() {
            Some(phase) if !job.waits => {
                if phase.stop.duration != duration || phase.ramp.0 != job.ramp {
                    return Err((
                        job.line,
                        format!(
                            "job '{}' runs beside those before it, with another runtime or ramp_time; give all the same, or put stonewall between them",
                            job.name
                        ),
                    ));
                }
                phase.loads.push(job.load);
            }
            _ => phases.push(Phase {
                name: job.name.clone(),
                measured: true,
                ramp: Time(job.ramp),
                stop: Stop { duration, ..Stop::default() },
                loads: vec![job.load],
            }),
        }
    }
    let workload = Workload { name: name.into(), description: String::new(), seed, phases };
    workload.validate().map_err(|invalid| (0, invalid.to_string()))?;
    Ok(workload)
}

#[cfg(test)]
mod tests;
