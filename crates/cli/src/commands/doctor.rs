//! `vsl doctor`: whether this machine lets the service do its work, and what to do where it does not.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use daemon::serve::Lock;
use daemon::{Failure, Paths};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use crate::output::Output;

/// The oldest kernel that every export is tested with.
const TESTED_KERNEL: (u32, u32) = (6, 1);
/// Each client takes a descriptor, each device some.
const DESCRIPTORS: u64 = 4096;
/// A clock that says less was never set: 2025-01-01.
const CLOCK_WAS_SET: Duration = Duration::from_secs(1_735_689_600);
/// NBD, NVMe over TCP and its discovery, the console.
const PORTS: [u16; 4] = [10809, 4420, 8009, 7420];

/// How well something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// It works, with a restriction.
    Note,
    /// Something does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Serialize)]
struct Check {
    check: &'static str,
    state: State,
    found: String,
    /// What to do; empty where nothing needs to be done.
    advice: &'static str,
}

impl Check {
    fn ok(check: &'static str, found: impl Into<String>) -> Check {
        Check { check, state: State::Ok, found: found.into(), advice: "" }
    }

    /// `fine`, or else as bad as `state`, with an advice.
    fn that(fine: bool, check: &'static str, found: impl Into<String>, state: State, advice: &'static str) -> Check {
        if fine { Check::ok(check, found) } else { Check { check, state, found: found.into(), advice } }
    }
}

pub fn doctor(output: Output) -> Result<ExitCode, Failure> {
    let paths = Paths::from_environment();
    let runs = Lock::is_taken(&paths.lock_file());
    let mut checks = vec![kernel(), io_uring(), descriptors(), locked_memory()];
    checks.push(directory("runtime directory", &paths.runtime));
    checks.push(directory("state directory", &paths.state));
    checks.push(page_buffers(&paths));
    checks.push(block_devices());
    checks.push(modules());
    checks.push(match runs {
        true => Check::ok("service", "runs"),
        false => Check::ok("service", "does not run: `vsl up` or `systemctl start openvsl` starts it"),
    });
    checks.push(ports(runs));
    checks.push(clock());
    output.result(&checks, || checks.iter().map(text).collect())?;
    let worst = checks.iter().map(|check| check.state).max();
    Ok(if worst == Some(State::Problem) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn text(check: &Check) -> String {
    let state = match check.state {
        State::Ok => "ok",
        State::Note => "note",
        State::Problem => "PROBLEM",
    };
    let advice = if check.advice.is_empty() { String::new() } else { format!("{:27} {}\n", "", check.advice) };
    format!("{state:7}  {:18} {}\n{advice}", check.check, check.found)
}

/// A small file of the kernel's, without its line end.
fn line(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn kernel() -> Check {
    let release = line("/proc/sys/kernel/osrelease");
    let mut parts = release.split(['.', '-']).map_while(|part| part.parse().ok());
    let version = parts.next().zip(parts.next()).unwrap_or_default();
    let advice = "kernels before 6.1 are not tested; io_uring is slower there";
    Check::that(version >= TESTED_KERNEL, "kernel", release, State::Note, advice)
}

fn io_uring() -> Check {
    let reason = daemon::without_io_uring();
    let advice = "devices work on threads, slower; allow it by `sysctl kernel.io_uring_disabled=0`, or in a container by \
                  a seccomp profile with io_uring_setup, io_uring_enter and io_uring_register";
    Check::that(reason.is_none(), "io_uring", reason.unwrap_or("allowed"), State::Note, advice)
}

fn descriptors() -> Check {
    let limit = getrlimit(Resource::Nofile).maximum;
    let found = limit.map_or("no limit".into(), |limit| format!("{limit} open files at most"));
    let advice = "each client takes one: raise it by `ulimit -Hn`, LimitNOFILE= or the container's settings";
    Check::that(limit.is_none_or(|limit| limit >= DESCRIPTORS), "open files", found, State::Note, advice)
}

fn locked_memory() -> Check {
    let limit = getrlimit(Resource::Memlock).maximum;
    let found = limit.map_or("no limit".into(), |limit| format!("{} KiB at most", limit >> 10));
    let advice =
        "only swap on a device needs more (page-file support): LimitMEMLOCK=infinity, or `ulimit -Hl unlimited`";
    Check::that(limit.is_none(), "locked memory", found, State::Note, advice)
}

fn directory(check: &'static str, directory: &Path) -> Check {
    let found = directory.display().to_string();
    // Where it is still to be made, its nearest parent that exists decides.
    let nearest = directory.ancestors().find(|parent| parent.exists()).unwrap_or(Path::new("/"));
    let writable = rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok();
    let advice = "this user may not write there: run as the service's user or as root, or set OPENVSL_RUNTIME_DIR and \
                  OPENVSL_STATE_DIR";
    Check::that(writable, check, found, State::Problem, advice)
}

fn page_buffers(paths: &Paths) -> Check {
    // Looked for as the service does, but nothing is made: a directory to come is where its parent is.
    let in_memory = |directory: &PathBuf| {
        let nearest = directory.ancestors().find(|parent| parent.exists());
        let file = nearest.and_then(|nearest| std::fs::File::open(nearest).ok());
        file.is_some_and(|file| daemon::is_in_memory(file).unwrap_or(false))
    };
    let candidates = paths.staging_candidates();
    let found = candidates.iter().find(|directory| in_memory(directory));
    let (there, words) = (found.is_some(), found.map_or("none".into(), |directory| directory.display().to_string()));
    let advice = "no directory in memory (tmpfs): what a killed service answered and did not flush is lost; set \
                  OPENVSL_STAGING_DIR to one, or mount /dev/shm";
    Check::that(there, "page buffers", words, State::Note, advice)
}

fn block_devices() -> Check {
    let disks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let nodes: Vec<PathBuf> =
        disks.map(|disk| Path::new("/dev").join(disk.file_name())).filter(|it| it.exists()).collect();
    let both = rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK;
    let open = nodes.iter().filter(|node| rustix::fs::access(*node, both).is_ok()).count();
    let found = format!("{open} of {} may be opened by this user", nodes.len());
    let advice = "a device on a disk needs more: run as root, or join the group `disk`";
    Check::that(open > 0 || nodes.is_empty(), "disks", found, State::Note, advice)
}

fn modules() -> Check {
    let directory = Path::new("/lib/modules").join(line("/proc/sys/kernel/osrelease"));
    let listed = line(directory.join("modules.dep")) + &line(directory.join("modules.builtin"));
    let has = |name: &str| {
        let loaded = Path::new("/sys/module").join(name).exists();
        loaded || listed.contains(&format!("/{name}.ko")) || listed.contains(&format!("/{}.ko", name.replace('_', "-")))
    };
    let there: Vec<&str> = ["nbd", "nvme_tcp"].into_iter().filter(|name| has(name)).collect();
    let programs = std::env::var_os("PATH").unwrap_or_default();
    let fuse = std::env::split_paths(&programs).any(|directory| directory.join("nbdfuse").exists())
        && ["/dev/fuse", "/dev/loop-control"].iter().all(|node| Path::new(node).exists());
    let found = match (there.is_empty(), fuse) {
        (false, _) => there.join(" and "),
        (true, true) => "neither nbd nor nvme_tcp; `vsl connect` uses nbdfuse".into(),
        (true, false) => "neither nbd nor nvme_tcp".into(),
    };
    let advice = "`vsl connect` needs one of them, or nbdfuse, /dev/fuse and loop devices; programs that speak NBD, and \
                  other machines, do not";
    Check::that(fuse || !there.is_empty(), "kernel modules", found, State::Note, advice)
}

fn ports(runs: bool) -> Check {
    let taken = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_err();
    let taken: Vec<String> = PORTS.iter().filter(|port| taken(port)).map(ToString::to_string).collect();
    if taken.is_empty() {
        return Check::ok("ports", "the usual ones are free");
    }
    let found = format!("{} taken", taken.join(", "));
    let advice =
        "by another program, as the service does not run: choose others with --nbd-listen, --nvme-listen or --listen";
    Check::that(runs, "ports", found, State::Note, advice)
}

fn clock() -> Check {
    let source = line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let was_set = SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|now| now >= CLOCK_WAS_SET);
    if !was_set {
        let advice = "the clock was never set: events, the history and certificates go by it; start a time service";
        return Check { check: "clock", state: State::Problem, found: "it says a year before 2025".into(), advice };
    }
    let slow = matches!(source.as_str(), "hpet" | "acpi_pm" | "jiffies");
    let advice =
        "reading this clock costs a microsecond or more, several times a request: boot with another clocksource";
    Check::that(!slow, "clock", format!("set; read from {source}"), State::Note, advice)
}
