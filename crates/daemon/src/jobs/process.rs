//! What the lab computes, as processes of the same program: they may take gigabytes and hours, and a mistake there ends nothing here.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::Task;
use crate::Failure;

/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(300);
/// What is kept of what it says when it fails, bytes.
const SAID: usize = 4096;

/// This program once more.
///
/// # Errors
/// Its path is not known.
pub fn vsl() -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::failed(format!("this program's path: {error}")))?;
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// How a process failed, and the end of what it said.
pub struct Ended {
    pub status: ExitStatus,
    pub said: String,
}

/// Gives a process its input and waits for it. `look` is called now and then, with the lines that it printed since; nothing comes back
/// where somebody cancelled it.
///
/// # Errors
/// It cannot be started.
pub fn finish(
    mut command: Command,
    input: &[u8],
    task: &Task,
    mut look: impl FnMut(Vec<String>),
) -> Result<Option<Result<(), Ended>>, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("the lab's process cannot be started: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that takes none of it says why when it ends.
        let _ = pipe.write_all(input);
    }
    let said = child.stderr.take().map(|pipe| std::thread::spawn(|| end_of(pipe)));
    let (line, lines) = mpsc::channel();
    let printed = child.stdout.take().map(|pipe| {
        std::thread::spawn(move || {
            BufReader::new(pipe).lines().map_while(Result::ok).all(|text| line.send(text).is_ok())
        })
    });
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if task.is_cancelled() => {
                // It is ours, and has not been waited for: its number is its own.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            None => {}
        }
        look(lines.try_iter().collect());
        std::thread::sleep(LOOK);
    };
    let _ = printed.map(std::thread::JoinHandle::join);
    look(lines.try_iter().collect());
    let said = said.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ok(Some(if status.success() { Ok(()) } else { Err(Ended { status, said }) }))
}

/// Reads all that a process says, or it waits; only the end of it is kept.
fn end_of(mut pipe: impl Read) -> String {
    let mut last = Vec::new();
    let mut bytes = [0; SAID];
    while let Ok(count @ 1..) = pipe.read(&mut bytes) {
        last.extend_from_slice(&bytes[..count]);
        let surplus = last.len().saturating_sub(SAID);
        last.drain(..surplus);
    }
    String::from_utf8_lossy(&last).into_owned()
}

/// What `vsl` said is wrong, as a failure of ours.
pub fn refusal(said: &str) -> Failure {
    let part = |begin: &str| said.lines().find_map(|line| line.strip_prefix(begin)).map(str::trim);
    let failure = Failure::invalid(part("error:").unwrap_or(said.trim()));
    match part("help:") {
        Some(help) => failure.help(help),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_said_is_passed_on() {
        let failure = refusal("error: these differ: a and b\nhelp: compare others\n");
        assert_eq!((failure.error.as_str(), failure.help.as_str()), ("these differ: a and b", "compare others"));
        assert_eq!(refusal("killed\n").error, "killed");
    }
}
