//! What lies under a block device: the files and devices that hold its bytes, as sysfs and the loop driver say.
//!
//! The kernel's own claims keep two users off one block device and off its partitions. They do not
//! reach through a loop device, so a file and a loop device over it would both be given away.
//! Whoever opens a block device therefore locks what lies under it too.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, Stat, major, minor};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl};

use crate::backing::{OpenError, open_claimed};
use crate::lock::{self, FileId, Share};

/// Devices stacked on each other, at most: more than anybody builds.
const DEPTH: u32 = 16;

/// Where the kernel describes its devices.
const SYSFS: &str = "/sys";

/// A block device's number: major and minor.
type Number = (u32, u32);

/// A file or block device under a loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Under {
    /// As sysfs names it. It may have been removed, or be in a mount namespace that is not ours.
    path: PathBuf,
    loop_device: String,
    /// Whom its lock keeps off: a device over a part of it shares it with devices over other parts.
    share: Share,
}

/// Locks what lies under an open block device; the locks last as long as what this gives is open.
///
/// # Errors
/// [`OpenError::Under`] when somebody uses it.
pub(crate) fn lock_all(path: &Path, device: &Stat) -> Result<Vec<File>, OpenError> {
    let mut held = Vec::new();
    for under in Sysfs(Path::new(SYSFS)).under(number(device)) {
        held.extend(lock_one(path, &under)?);
    }
    Ok(held)
}

fn lock_one(path: &Path, under: &Under) -> Result<Option<File>, OpenError> {
    let refused = |holder| OpenError::Under { path: path.into(), under: under.path.clone(), holder };
    let known = file_of(&under.loop_device);
    let opened = match open(under) {
        Ok(file) => Some(file),
        Err(OpenError::Locked { holder, .. }) => return Err(refused(holder)),
        Err(OpenError::Io { .. }) => None,
        Err(error) => return Err(error),
    };
    let opened = opened.and_then(|file| Some((FileId::of(&rustix::fs::fstat(&file).ok()?), file)));
    // Under that name another file may stand meanwhile.
    let Some((id, file)) = opened.filter(|(id, _)| known.is_none_or(|known| known == *id)) else {
        // It cannot be locked from here, but whether somebody holds it can be seen.
        if let Some(id) = known.filter(|id| lock::holder_pid(*id).is_some()) {
            return Err(refused(lock::holder(id)));
        }
        let under = under.path.display();
        tracing::warn!(path = %path.display(), %under, "what lies under it cannot be locked: see that nothing else uses it");
        return Ok(None);
    };
    match lock::take_from_the_dead(&file, id, under.share) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(refused(lock::holder(id))),
        Err(error) => Err(OpenError::Io { path: under.path.clone(), error: error.into() }),
    }
}

/// Opens what lies under a loop device, only to lock it.
fn open(under: &Under) -> Result<File, OpenError> {
    let path = &under.path;
    let stat = rustix::fs::stat(path).map_err(|error| OpenError::Io { path: path.clone(), error: error.into() })?;
    let mut options = File::options();
    // Under that name there may be a pipe meanwhile, which would keep us waiting.
    let mut flags = OFlags::NONBLOCK;
    if is_block_device(&stat) && under.share == Share::Alone {
        // Another node of the same device has a lock of its own. The kernel's claim counts for all.
        flags |= OFlags::EXCL;
    }
    open_claimed(path, &stat, options.read(true).custom_flags(flags.bits() as i32))
}

/// Which file a loop device lies on, as its driver says.
fn file_of(loop_device: &str) -> Option<FileId> {
    /// `LOOP_GET_STATUS64`.
    const GET_STATUS: Opcode = 0x4c05;
    /// Its answer, `struct loop_info64`: two numbers that we want, and the rest.
    #[repr(C)]
    struct Answer {
        dev: u64,
        ino: u64,
        rest: [u64; 27],
    }
    const _: () = assert!(size_of::<Answer>() == 232);
    let node = File::open(Path::new("/dev").join(loop_device)).ok()?;
    // SAFETY: the driver fills a `struct loop_info64`, which is as long as the answer and plain numbers and bytes throughout.
    let answer = unsafe { ioctl(node, Getter::<GET_STATUS, Answer>::new()) }.ok()?;
    Some(FileId { dev: answer.dev, ino: answer.ino })
}

/// Whether two block devices are ways to one disk, as far as the disk says its name.
pub fn is_same_disk(one: &Path, other: &Path) -> bool {
    let name = |path| {
        let stat = rustix::fs::stat(path).ok().filter(is_block_device)?;
        Sysfs(Path::new(SYSFS)).disk_name(number(&stat))
    };
    name(one).is_some_and(|first| name(other) == Some(first))
}

fn is_block_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
}

fn number(device: &Stat) -> Number {
    (major(device.st_rdev), minor(device.st_rdev))
}

/// The tree in which the kernel describes its devices.
struct Sysfs<'a>(&'a Path);

impl Sysfs<'_> {
    fn device(&self, (major, minor): Number) -> PathBuf {
        self.0.join(format!("dev/block/{major}:{minor}"))
    }

    /// What lies under a block device, through partitions, device mapper, RAID and loop devices.
    fn under(&self, device: Number) -> Vec<Under> {
        let mut found = Vec::new();
        self.descend(device, Share::Alone, DEPTH, &mut found);
        found
    }

    fn descend(&self, device: Number, share: Share, depth: u32, found: &mut Vec<Under>) {
        // Devices that are gone, and sysfs that is not mounted, say nothing.
        let Some(depth) = depth.checked_sub(1) else { return };
        let Ok(here) = fs::canonicalize(self.device(device)) else { return };
        if here.join("partition").exists()
            && let Some(disk) = here.parent().and_then(number_in)
        {
            self.descend(disk, Share::Parts, depth, found);
        }
        // A slave may be used in part by each of several devices.
        for slave in fs::read_dir(here.join("slaves")).into_iter().flatten().flatten() {
            if let Some(slave) = number_in(&slave.path()) {
                self.descend(slave, Share::Parts, depth, found);
            }
        }
        let Some(path) = text(&here.join("loop/backing_file")) else { return };
        let is_zero = |name: &str| text(&here.join("loop").join(name)).is_none_or(|text| text == "0");
        let share = if is_zero("offset") && is_zero("sizelimit") { share } else { Share::Parts };
        let loop_device = here.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = PathBuf::from(path);
        if let Ok(stat) = rustix::fs::stat(&path)
            && is_block_device(&stat)
        {
            self.descend(number(&stat), share, depth, found);
        }
        found.push(Under { path, loop_device, share });
    }

    /// What a disk calls itself, and which part of it this is; two ways to it give the same.
    fn disk_name(&self, device: Number) -> Option<(String, String)> {
        let here = fs::canonicalize(self.device(device)).ok()?;
        let partition = text(&here.join("partition")).unwrap_or_default();
        let disk = if partition.is_empty() { &here } else { here.parent()? };
        let names = ["wwid", "device/wwid", "serial", "device/serial"];
        let name = names.iter().find_map(|name| text(&disk.join(name)).filter(|name| !name.is_empty()))?;
        Some((name, partition))
    }
}

/// The number of a device that is described in this directory.
fn number_in(directory: &Path) -> Option<Number> {
    let text = text(&directory.join("dev"))?;
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// What an attribute says.
fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device: where it is described, its number, and its attributes.
    type Described<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    fn tree(devices: &[Described<'_>]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(root.path().join("dev/block")).expect("made");
        for (place, number, attributes) in devices {
            let here = root.path().join("devices").join(place);
            fs::create_dir_all(&here).expect("made");
            fs::write(here.join("dev"), format!("{number}\n")).expect("written");
            std::os::unix::fs::symlink(&here, root.path().join("dev/block").join(number)).expect("linked");
            for (name, value) in *attributes {
                let file = here.join(name);
                fs::create_dir_all(file.parent().expect("a directory")).expect("made");
                match name.strip_prefix("slaves/") {
                    Some(_) => {
                        std::os::unix::fs::symlink(root.path().join("devices").join(value), file).expect("linked");
                    }
                    None => fs::write(file, format!("{value}\n")).expect("written"),
                }
            }
        }
        root
    }

    fn under(path: &str, loop_device: &str, share: Share) -> Under {
        Under { path: path.into(), loop_device: loop_device.into(), share }
    }

    #[test]
    fn it_looks_through_loops_partitions_and_mappers() {
        let root = tree(&[
            ("loop0", "7:0", &[("loop/backing_file", "/a b.vsl"), ("loop/offset", "0"), ("loop/sizelimit", "0")]),
            ("loop0/loop0p1", "259:1", &[("partition", "1")]),
            ("loop1", "7:1", &[("loop/backing_file", "/c.vsl"), ("loop/offset", "512"), ("loop/sizelimit", "0")]),
            ("dm-0", "252:0", &[("slaves/loop0p1", "loop0/loop0p1"), ("slaves/loop1", "loop1")]),
            ("dm-1", "252:1", &[("slaves/dm-0", "dm-0"), ("slaves/dm-1", "dm-1")]),
            ("sda", "8:0", &[]),
        ]);
        let sysfs = Sysfs(root.path());
        let (file, part) = (under("/a b.vsl", "loop0", Share::Parts), under("/c.vsl", "loop1", Share::Parts));
        assert_eq!(sysfs.under((7, 0)), [under("/a b.vsl", "loop0", Share::Alone)]);
        assert_eq!(sysfs.under((259, 1)), std::slice::from_ref(&file));
        assert_eq!(sysfs.under((7, 1)), std::slice::from_ref(&part));
        let mut mapped = sysfs.under((252, 0));
        mapped.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(mapped, [file.clone(), part.clone()]);
        let stacked = sysfs.under((252, 1));
        assert!(stacked.contains(&file) && stacked.contains(&part), "{stacked:?}");
        assert_eq!(sysfs.under((8, 0)), []);
        assert_eq!(sysfs.under((9, 9)), [], "a device that is gone");
    }

    #[test]
    fn two_ways_to_a_disk_have_its_name() {
        let root = tree(&[
            ("sda", "8:0", &[("device/wwid", "naa.5000")]),
            ("sda/sda1", "8:1", &[("partition", "1")]),
            ("sdb", "8:16", &[("device/wwid", "naa.5000")]),
            ("sdb/sdb1", "8:17", &[("partition", "1")]),
            ("sdc", "8:32", &[]),
            ("vda", "254:0", &[("serial", "")]),
        ]);
        let name = |number| Sysfs(root.path()).disk_name(number);
        assert_eq!(name((8, 0)), name((8, 16)));
        assert_eq!(name((8, 1)), name((8, 17)));
        assert_ne!(name((8, 1)), name((8, 0)));
        assert_eq!((name((8, 32)), name((254, 0))), (None, None), "disks without a name");
    }
}
