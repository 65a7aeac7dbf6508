//! A file system, or all of a guest's, frozen while something is done, and thawed whatever happens.
//!
//! A child process freezes and thaws. It thaws when its parent has done its part or has died, by whatever signal, and at the latest after
//! [`LIMIT`]. Signals that end programs leave it alone.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use daemon::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Opcode, ioctl, opcode};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// So long anything stays frozen at most, seconds.
const LIMIT: i64 = 10;
/// So long an agent may take to answer; to freeze it writes down what its file systems hold.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// The longest answer of an agent, bytes.
const ANSWER_MAX: u64 = 64 << 10;
/// What an agent puts before the answer to a `guest-sync-delimited`.
const DELIMITER: u8 = 0xff;

const FIFREEZE: Opcode = opcode::read_write::<i32>(b'X', 119);
const FITHAW: Opcode = opcode::read_write::<i32>(b'X', 120);

/// What the child says when all is frozen.
const FROZEN: &str = "frozen";
/// What it says when it thawed before it was asked to.
const LATE: &str = "late";

/// Something that is frozen, in the parent.
pub struct Frozen {
    target: PathBuf,
    child: Child,
    says: BufReader<ChildStdout>,
}

impl Frozen {
    /// Freezes the file system that is mounted at a directory, or those of the guest whose agent listens on a Unix socket.
    ///
    /// # Errors
    /// It cannot be frozen; nothing is.
    pub fn begin(target: &Path) -> Result<Frozen, Failure> {
        let failed = |error: std::io::Error| Failure::io(target, &error);
        let mut child = Command::new("/proc/self/exe")
            .args(["snapshot", "frozen", "--"])
            .arg(target)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let says = BufReader::new(child.stdout.take().ok_or_else(|| Failure::failed("the child has no output"))?);
        let mut frozen = Frozen { target: target.into(), child, says };
        match frozen.line()?.as_str() {
            FROZEN => Ok(frozen),
            why => {
                let failure = Failure::failed(format!("{}: not frozen: {why}", target.display())).help(
                    "name the directory where a file system is mounted, as root, or the socket of a guest's agent",
                );
                let _ = frozen.child.wait();
                Err(failure)
            }
        }
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.says.read_line(&mut line).map_err(|error| Failure::io(&self.target, &error))?;
        Ok(line.trim_end().to_owned())
    }

    /// Thaws it. False where it was thawed before: what was done since was not done to something frozen.
    ///
    /// # Errors
    /// It cannot be thawed.
    pub fn end(mut self) -> Result<bool, Failure> {
        drop(self.child.stdin.take());
        let said = self.line()?;
        let _ = self.child.wait();
        let shown = self.target.display();
        match said.as_str() {
            "" => Ok(true),
            LATE => Ok(false),
            why => Err(Failure::failed(format!("{shown}: not thawed: {why}")).help(format!(
                "thaw it by hand: `fsfreeze --unfreeze {shown}`, or `guest-fsfreeze-thaw` to its agent"
            ))),
        }
    }
}

/// That the snapshot came too late.
pub fn late(target: &Path) -> Failure {
    let shown = target.display();
    Failure::failed(format!(
        "{shown}: it was thawed after {LIMIT} s, before the snapshot was made; the snapshot is deleted"
    ))
    .help("see `vsl status`: the device may be slow or full; then try again")
}

/// The child: freezes, says so, and thaws when its input ends.
///
/// # Errors
/// Nobody hears of what went wrong.
pub fn keep(target: &Path) -> Result<(), Failure> {
    let said = |text: &str| {
        let mut output = std::io::stdout();
        // A parent that went away is told nothing.
        let _ = writeln!(output, "{text}").and_then(|()| output.flush());
    };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(|error| Failure::failed(format!("signals cannot be kept off: {error}")))?;
    }
    let held = match Held::freeze(target) {
        Ok(held) => held,
        Err(why) => {
            said(&why);
            return Ok(());
        }
    };
    said(FROZEN);
    let in_time = ends(std::io::stdin());
    match held.thaw() {
        Err(why) => said(&why),
        Ok(()) if !in_time => said(LATE),
        Ok(()) => {}
    }
    Ok(())
}

/// Waits until the input ends; false where that takes too long.
fn ends(input: impl AsFd) -> bool {
    let limit = std::time::Instant::now() + Duration::from_secs(LIMIT as u64);
    loop {
        let left = limit.saturating_duration_since(std::time::Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            Ok(0) => return false,
            // Nothing is ever written to it.
            Ok(_) | Err(_) => return true,
        }
    }
}

/// Something that is frozen, in the child.
enum Held {
    /// What is mounted at this directory.
    Mount(File),
    /// A guest, whose agent listens there.
    Guest(PathBuf),
}

impl Held {
    fn freeze(target: &Path) -> Result<Held, String> {
        let kind = std::fs::metadata(target).map_err(|error| error.to_string())?.file_type();
        if kind.is_socket() {
            return freeze_guest(target);
        }
        if !kind.is_dir() {
            return Err("neither a directory nor a socket".into());
        }
        let mount = File::open(target).map_err(|error| error.to_string())?;
        // SAFETY: this request takes no argument, and changes no memory of ours.
        match unsafe { ioctl(&mount, NoArg::<FIFREEZE>::new()) } {
            Ok(()) => Ok(Held::Mount(mount)),
            Err(Errno::BUSY) => Err("somebody else froze it, and must thaw it".into()),
            Err(Errno::OPNOTSUPP) => Err("its file system cannot be frozen".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn thaw(&self) -> Result<(), String> {
        match self {
            // SAFETY: as above.
            Held::Mount(mount) => match unsafe { ioctl(mount, NoArg::<FITHAW>::new()) } {
                // Somebody thawed it by hand.
                Ok(()) | Err(Errno::INVAL) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
            Held::Guest(socket) => Agent::connect(socket)?.ask("guest-fsfreeze-thaw").map(|_| ()),
        }
    }
}

fn freeze_guest(socket: &Path) -> Result<Held, String> {
    let mut agent = Agent::connect(socket)?;
    if agent.ask("guest-fsfreeze-status")? != json!("thawed") {
        return Err("somebody else froze the guest, and must thaw it".into());
    }
    match agent.ask("guest-fsfreeze-freeze") {
        Ok(_) => Ok(Held::Guest(socket.into())),
        Err(why) => {
            // Some of its file systems may be frozen, or it froze them too late for us. It talks to one at a time.
            drop(agent);
            let _ = Agent::connect(socket).and_then(|mut agent| agent.ask("guest-fsfreeze-thaw"));
            Err(why)
        }
    }
}

/// A guest's agent (QEMU's `qemu-ga`): a request in JSON a line, and an answer.
struct Agent(BufReader<UnixStream>);

impl Agent {
    /// Connects, and skips whatever was left for others.
    fn connect(socket: &Path) -> Result<Agent, String> {
        let said = |error: std::io::Error| format!("the guest's agent: {error}");
        let stream = UnixStream::connect(socket).map_err(said)?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN)).map_err(said)?;
        stream.set_write_timeout(Some(ANSWERS_WITHIN)).map_err(said)?;
        let mut agent = Agent(BufReader::new(stream));
        let id = std::process::id();
        let sync = json!({ "execute": "guest-sync-delimited", "arguments": { "id": id } });
        // The delimiter has the agent forget half a request.
        agent.0.get_mut().write_all(&[DELIMITER]).map_err(said)?;
        agent.send(&sync)?;
        let mut skipped = Vec::new();
        (&mut agent.0).take(ANSWER_MAX).read_until(DELIMITER, &mut skipped).map_err(said)?;
        match agent.answer()? {
            answer if answer == json!(id) => Ok(agent),
            other => Err(format!("the guest's agent answers {other}, and not what it was asked")),
        }
    }

    fn ask(&mut self, what: &str) -> Result<Value, String> {
        self.send(&json!({ "execute": what }))?;
        self.answer()
    }

    fn send(&mut self, request: &Value) -> Result<(), String> {
        let sent = writeln!(self.0.get_mut(), "{request}");
        sent.map_err(|error| format!("the guest's agent does not listen: {error}"))
    }

    fn answer(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        let read = (&mut self.0).take(ANSWER_MAX).read_line(&mut line);
        read.map_err(|error| format!("the guest's agent does not answer: {error}"))?;
        let mut answer: Value =
            serde_json::from_str(&line).map_err(|_| "the guest's agent does not answer in its protocol".to_owned())?;
        match answer.get_mut("return") {
            Some(given) => Ok(given.take()),
            None => Err(format!("the guest's agent: {}", answer.pointer("/error/desc").unwrap_or(&answer))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// An agent that answers these requests in turn, each on whatever connection it comes; gives what it was asked besides to sync.
    fn played(listener: UnixListener, mut answers: Vec<Value>) -> Vec<String> {
        let mut asked = Vec::new();
        while !answers.is_empty() {
            let (stream, _) = listener.accept().expect("a connection");
            let mut lines = BufReader::new(stream);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = line.iter().copied().filter(|byte| *byte != DELIMITER).collect::<Vec<_>>();
                let request: Value = serde_json::from_slice(&text).expect("a request");
                line.clear();
                let what = request["execute"].as_str().expect("a command").to_owned();
                let answer = if what == "guest-sync-delimited" {
                    // What an earlier request left stands before it.
                    let mut answer = b"{\"return\": 7}\n\xff".to_vec();
                    answer.extend(json!({ "return": request["arguments"]["id"] }).to_string().bytes());
                    answer
                } else {
                    asked.push(what);
                    answers.remove(0).to_string().into_bytes()
                };
                lines.get_mut().write_all(&[&answer[..], b"\n"].concat()).expect("sent");
                if answers.is_empty() {
                    break;
                }
            }
        }
        asked
    }

    fn with(answers: Vec<Value>, what: impl FnOnce(&Path)) -> Vec<String> {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("agent.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        std::thread::scope(|scope| {
            let agent = scope.spawn(|| played(listener, answers));
            what(&socket);
            agent.join().expect("the agent")
        })
    }

    #[test]
    fn a_guest_is_frozen_and_thawed() {
        let answers = vec![json!({ "return": "thawed" }), json!({ "return": 2 }), json!({ "return": 2 })];
        let asked = with(answers, |socket| {
            let held = Held::freeze(socket).expect("frozen");
            held.thaw().expect("thawed");
        });
        assert_eq!(asked, ["guest-fsfreeze-status", "guest-fsfreeze-freeze", "guest-fsfreeze-thaw"]);
    }

    #[test]
    fn a_guest_that_freezes_in_part_is_thawed() {
        let refused = json!({ "error": { "class": "GenericError", "desc": "failed to freeze /" } });
        let answers = vec![json!({ "return": "thawed" }), refused, json!({ "return": 1 })];
        let asked = with(answers, |socket| {
            let why = Held::freeze(socket).map(|_| ()).expect_err("refused");
            assert!(why.contains("failed to freeze /"), "{why}");
        });
        assert_eq!(asked.last().map(String::as_str), Some("guest-fsfreeze-thaw"));
    }

    #[test]
    fn what_somebody_else_froze_is_left_alone() {
        let asked = with(vec![json!({ "return": "frozen" })], |socket| {
            assert!(Held::freeze(socket).map(|_| ()).expect_err("frozen").contains("somebody else"));
        });
        assert_eq!(asked, ["guest-fsfreeze-status"]);
    }

    #[test]
    fn what_is_neither_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(Held::freeze(file.path()).is_err());
        assert!(Held::freeze(Path::new("/no/such/place")).is_err());
    }
}
