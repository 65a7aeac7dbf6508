//! Who uses a backing file or block device: exclusive locks, their holders, and mounts.

use std::fs;
use std::time::{Duration, Instant};

use rustix::fd::AsFd;
use rustix::fs::{FlockOperation, Stat, flock, major, minor};
use rustix::io::Errno;

/// A file, whatever it is called: hard links and bind mounts of it are the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// The file system's device number.
    pub dev: u64,
    /// The inode's number there.
    pub ino: u64,
}

impl FileId {
    /// Of what `fstat` said.
    pub fn of(stat: &Stat) -> FileId {
        FileId { dev: stat.st_dev, ino: stat.st_ino }
    }
}

/// Whom a lock keeps off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Everybody else.
    Alone,
    /// Those who want it alone: others use other parts of it.
    Parts,
}

/// Takes the lock that goes with attaching. It is the open file description's, so a
/// second attach by the same process is refused too, and the kernel lets go of it with the process.
///
/// # Errors
/// [`Errno::WOULDBLOCK`] when somebody holds it; [`holder`] then tells who.
pub fn take(file: impl AsFd, share: Share) -> Result<(), Errno> {
    let operation = match share {
        Share::Alone => FlockOperation::NonBlockingLockExclusive,
        Share::Parts => FlockOperation::NonBlockingLockShared,
    };
    loop {
        match flock(file.as_fd(), operation) {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// How long to wait for a holder that is dead already: the kernel takes a killed process's rings apart a little after
/// the process itself, and the files they refer to stay open until then.
const DEAD_HOLDER_PATIENCE: Duration = Duration::from_secs(5);

/// Like [`take`], but waits for a holder that is only a dead process's remains.
///
/// # Errors
/// As [`take`].
pub fn take_from_the_dead(file: impl AsFd, id: FileId, share: Share) -> Result<(), Errno> {
    let start = Instant::now();
    loop {
        match take(&file, share) {
            Err(Errno::WOULDBLOCK) if start.elapsed() < DEAD_HOLDER_PATIENCE && holder_is_dead(id) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

/// Whether the process that holds the lock exists no more, or only waits to be buried.
fn holder_is_dead(id: FileId) -> bool {
    // Without a line in /proc/locks the lock was let go of meanwhile.
    let Some(pid) = holder_pid(id) else { return true };
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The state follows the name, which stands in parentheses and may hold any character.
        Ok(text) => text.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])),
        Err(_) => true,
    }
}

/// Lets go of the lock, whoever else still refers to the open file.
pub fn release(file: impl AsFd) {
    // Fails only where there is nothing to let go of.
    let _ = flock(file, FlockOperation::NonBlockingUnlock);
}

/// Names the process that holds the lock on a file, as well as it can be known.
pub fn holder(id: FileId) -> String {
    let Some(pid) = holder_pid(id) else { return "another process".into() };
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match name.trim() {
        _ if pid == std::process::id() => format!("this process ({pid})"),
        "" => format!("process {pid}"),
        name => format!("process {pid} ({name})"),
    }
}

/// The process that holds the lock on a file, if it can be seen from here.
pub fn holder_pid(id: FileId) -> Option<u32> {
    holder_in(&fs::read_to_string("/proc/locks").ok()?, id)
}

/// Finds the holder in the text of `/proc/locks`, whose lines read
/// `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`, the device in hexadecimal.
fn holder_in(locks: &str, id: FileId) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{}", major(id.dev), minor(id.dev), id.ino);
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            // A line with an arrow is a waiter, and has one field more in front.
            [_, "FLOCK", _, _, pid, at, ..] if at == file => pid.parse().ok(),
            _ => None,
        }
    })
}

/// Where a block device is mounted, if it is.
pub fn mount_point(device: &Stat) -> Option<String> {
    mount_point_in(&fs::read_to_string("/proc/self/mountinfo").ok()?, device)
}

/// Finds the mount point in the text of `/proc/self/mountinfo`, whose lines read
/// `36 35 254:0 / /mnt rw,noatime shared:1 - ext4 /dev/vda rw`.
fn mount_point_in(mounts: &str, device: &Stat) -> Option<String> {
    let number = format!("{}:{}", major(device.st_rdev), minor(device.st_rdev));
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        (fields.nth(2)? == number).then(|| fields.nth(1).unwrap_or("/").to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    fn stat_of(path: &str) -> Stat {
        rustix::fs::stat(path).expect("a path that exists")
    }

    #[test]
    fn finds_the_holder_of_a_lock() {
        let id = FileId { dev: makedev(0xfe, 0), ino: 5678 };
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:5678 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 22 fe:00:56789 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 33 fe:00:5678 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 44 fe:00:5678 0 EOF\n";
        assert_eq!(holder_in(locks, id), Some(33));
        assert_eq!(holder_in(locks, FileId { ino: 1, ..id }), None);
    }

    #[test]
    fn finds_a_mount_point() {
        let mut stat = stat_of("/");
        stat.st_rdev = makedev(254, 16);
        let mounts = "36 35 254:1 / /mnt/a rw shared:1 - ext4 /dev/vda1 rw\n\
                      37 35 254:16 / /mnt/b rw shared:2 - ext4 /dev/vdb rw\n";
        assert_eq!(mount_point_in(mounts, &stat).as_deref(), Some("/mnt/b"));
        stat.st_rdev = makedev(254, 2);
        assert_eq!(mount_point_in(mounts, &stat), None);
    }
}
