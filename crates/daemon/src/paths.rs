//! Where the service keeps its sockets, its lock and what it remembers.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Failure;

/// Names the directory of [`Paths::staging`].
const STAGING: &str = "OPENVSL_STAGING_DIR";

/// The directories of one instance of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Sockets and the lock: gone with the next boot.
    pub runtime: PathBuf,
    /// What is remembered across restarts.
    pub state: PathBuf,
}

impl Paths {
    /// The directories that the environment asks for.
    pub fn from_environment() -> Paths {
        Paths::choose(|name| std::env::var_os(name), rustix::process::geteuid().as_raw())
    }

    fn choose(variable: impl Fn(&str) -> Option<OsString>, uid: u32) -> Paths {
        // An empty variable is as good as none, and systemd may give several directories, the first being ours.
        let directory = |name: &str| {
            let value = variable(name)?.into_string().ok()?;
            let first = value.split(':').next().unwrap_or_default();
            (!first.is_empty()).then(|| PathBuf::from(first))
        };
        let runtime = directory("OPENVSL_RUNTIME_DIR")
            .or_else(|| directory("RUNTIME_DIRECTORY"))
            .or_else(|| Some(directory("XDG_RUNTIME_DIR")?.join("openvsl")))
            .unwrap_or_else(|| match uid {
                0 => PathBuf::from("/run/openvsl"),
                uid => PathBuf::from(format!("/tmp/openvsl-{uid}")),
            });
        let state = directory("OPENVSL_STATE_DIR")
            .or_else(|| directory("STATE_DIRECTORY"))
            .or_else(|| Some(directory("XDG_STATE_HOME")?.join("openvsl")))
            .or_else(|| match uid {
                0 => None,
                _ => Some(directory("HOME")?.join(".local/state/openvsl")),
            })
            .unwrap_or_else(|| match uid {
                0 => PathBuf::from("/var/lib/openvsl"),
                _ => runtime.join("state"),
            });
        Paths { runtime, state }
    }

    /// The socket of the API.
    pub fn api_socket(&self) -> PathBuf {
        self.runtime.join("api.sock")
    }

    /// The socket on which every device is exported.
    pub fn nbd_socket(&self) -> PathBuf {
        self.runtime.join("nbd.sock")
    }

    /// The socket on which every device is to be had over NVMe, in the framing of TCP.
    pub fn nvme_socket(&self) -> PathBuf {
        self.runtime.join("nvme.sock")
    }

    /// Locked for as long as a service runs.
    pub fn lock_file(&self) -> PathBuf {
        self.runtime.join("lock")
    }

    /// What went wrong while the last service stopped, as JSON; not there where nothing did.
    pub fn stop_file(&self) -> PathBuf {
        self.runtime.join("stop.json")
    }

    /// Where `vsl up` sends the log of a service in the background.
    pub fn log_file(&self) -> PathBuf {
        self.state.join("openvsl.log")
    }

    /// The devices to attach at start, and their settings.
    pub fn devices_file(&self) -> PathBuf {
        self.state.join("devices.toml")
    }

    /// Where page buffers outlive the process that fills them: a directory in memory, for its owner only. Nothing where there is none.
    pub fn staging(&self) -> Option<PathBuf> {
        let candidates = self.staging_candidates();
        let fits = |directory: &PathBuf| {
            let made = make_private(directory, STAGING).is_ok();
            made && std::fs::File::open(directory).and_then(media::staged::is_in_memory).unwrap_or(false)
        };
        let found = candidates.iter().find(|directory| fits(directory)).cloned();
        if found.is_none() {
            let tried: Vec<String> = candidates.iter().map(|directory| directory.display().to_string()).collect();
            tracing::warn!(
                "{}: no directory of this user in memory; if the service is killed, what it answered and did not flush is lost: set {STAGING}",
                tried.join(", ")
            );
        }
        found
    }

    /// Where such a directory is looked for, in this order.
    pub fn staging_candidates(&self) -> Vec<PathBuf> {
        let named = std::env::var_os(STAGING).filter(|path| !path.is_empty()).map(PathBuf::from);
        let shared = PathBuf::from(format!("/dev/shm/openvsl-{}", rustix::process::geteuid().as_raw()));
        named.map_or_else(|| vec![self.runtime.clone(), shared], |named| vec![named])
    }

    /// Forgets what a killed process left of a device that is formatted or erased.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn forget_staged(&self, info: &device::Info) -> Result<(), Failure> {
        // Also where the service runs for another user.
        self.staging_candidates().iter().try_for_each(|directory| {
            device::forget_staged(directory, &info.uuid).map_err(|error| {
                Failure::failed(format!("{}: {error}", device::staging_file(directory, &info.uuid).display()))
                    .help("remove it: it holds what a killed service answered last")
            })
        })
    }

    /// Makes both directories, for their owner only.
    ///
    /// # Errors
    /// One cannot be made, or belongs to someone else, who could then put sockets of their own there.
    pub fn make(&self) -> Result<(), Failure> {
        make_private(&self.runtime, "OPENVSL_RUNTIME_DIR")?;
        make_private(&self.state, "OPENVSL_STATE_DIR")
    }
}

/// Who may use a socket: its owner; its group too where the directory lets the group in and nobody else, as the systemd unit makes it.
pub(crate) fn socket_permissions(socket: &Path) -> Permissions {
    let directory = socket.parent().and_then(|directory| std::fs::metadata(directory).ok());
    let group = directory.is_some_and(|directory| directory.mode() & 0o077 == 0o050);
    Permissions::from_mode(if group { 0o660 } else { 0o600 })
}

fn make_private(directory: &Path, variable: &str) -> Result<(), Failure> {
    let help = || format!("set {variable} to a directory that you own");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| Failure::failed(format!("{}: cannot be made: {error}", directory.display())).help(help()))?;
    let owner = std::fs::metadata(directory)
        .map_err(|error| Failure::failed(format!("{}: {error}", directory.display())).help(help()))?
        .uid();
    let me = rustix::process::geteuid().as_raw();
    if owner != me {
        let error = format!("{}: belongs to user {owner}, not to user {me} who runs this", directory.display());
        return Err(Failure::failed(error).help(help()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], uid: u32) -> (String, String) {
        let paths = Paths::choose(
            |name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)),
            uid,
        );
        (paths.runtime.display().to_string(), paths.state.display().to_string())
    }

    fn pair(runtime: &str, state: &str) -> (String, String) {
        (runtime.into(), state.into())
    }

    #[test]
    fn without_variables_root_and_users_have_their_own() {
        assert_eq!(chosen(&[], 0), pair("/run/openvsl", "/var/lib/openvsl"));
        assert_eq!(chosen(&[("HOME", "/root")], 0), pair("/run/openvsl", "/var/lib/openvsl"));
        assert_eq!(chosen(&[("HOME", "/home/u")], 7), pair("/tmp/openvsl-7", "/home/u/.local/state/openvsl"));
        assert_eq!(chosen(&[], 7), pair("/tmp/openvsl-7", "/tmp/openvsl-7/state"));
    }

    #[test]
    fn the_nearest_variable_wins() {
        let all = [
            ("OPENVSL_RUNTIME_DIR", "/a"),
            ("RUNTIME_DIRECTORY", "/b:/c"),
            ("XDG_RUNTIME_DIR", "/d"),
            ("OPENVSL_STATE_DIR", "/e"),
            ("STATE_DIRECTORY", "/f"),
            ("XDG_STATE_HOME", "/g"),
        ];
        assert_eq!(chosen(&all, 7), pair("/a", "/e"));
        assert_eq!(chosen(&[all[1], all[2], all[4], all[5]], 7), pair("/b", "/f"));
        assert_eq!(chosen(&[all[2], all[5]], 7), pair("/d/openvsl", "/g/openvsl"));
        assert_eq!(chosen(&[("OPENVSL_RUNTIME_DIR", ""), all[2], all[5]], 7), pair("/d/openvsl", "/g/openvsl"));
    }

    #[test]
    fn directories_are_private() {
        let base = tempfile::tempdir().expect("tempdir");
        let paths = Paths { runtime: base.path().join("a/run"), state: base.path().join("state") };
        paths.make().expect("made");
        paths.make().expect("made twice");
        for directory in [&paths.runtime, &paths.state] {
            let mode = std::fs::metadata(directory).expect("there").mode();
            assert_eq!(mode & 0o077, 0, "{}", directory.display());
        }
    }

    #[test]
    fn a_group_is_let_in_where_its_directory_is_for_it_alone() {
        let base = tempfile::tempdir().expect("tempdir");
        for (directory, socket) in [(0o700, 0o600), (0o750, 0o660), (0o755, 0o600), (0o770, 0o600)] {
            std::fs::set_permissions(base.path(), Permissions::from_mode(directory)).expect("ours");
            assert_eq!(socket_permissions(&base.path().join("api.sock")).mode(), socket, "{directory:o}");
        }
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let base = tempfile::tempdir().expect("tempdir");
        let file = base.path().join("file");
        std::fs::write(&file, "x").expect("written");
        let failure = Paths { runtime: file.join("run"), state: base.path().into() }.make().expect_err("in the way");
        assert!(failure.error.contains("file/run"), "{}", failure.error);
        assert!(failure.help.contains("OPENVSL_RUNTIME_DIR"), "{}", failure.help);
    }
}
