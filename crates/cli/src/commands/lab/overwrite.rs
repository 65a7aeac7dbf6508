//! Asking before a test overwrites something.

use std::fs::{Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;

use daemon::Failure;
use daemon::api::Client;
use lab::run::Options;

use crate::confirm;

/// Asks before what is on a real device is lost; refuses what is in use. A virtual device has nothing to lose.
///
/// # Errors
/// It is in use, or the answer is no.
pub fn confirm(options: &Options, yes: bool) -> Result<(), Failure> {
    let Some(device) = options.devices.first().filter(|_| options.target != "virtual") else { return Ok(()) };
    let what = if options.target == "fio" {
        let path = Path::new(device);
        let Ok(metadata) = path.metadata() else { return Ok(()) };
        if metadata.file_type().is_block_device() {
            free(path, &metadata)?;
            format!("everything on the block device {device}:\n{}", contents(path))
        } else if metadata.len() > 0 {
            format!("the file {device}, {}", size::show(metadata.len()))
        } else {
            return Ok(());
        }
    } else {
        unused(short_name(device))?;
        format!("everything on {device} ({})", options.target)
    };
    if yes {
        return Ok(());
    }
    let name = short_name(device);
    confirm::ask(&what, &format!("The test overwrites it. Type {name} to go on:"), name)
}

/// What people call a device: the last part of its path, or the name that an NBD address exports.
pub fn short_name(device: &str) -> &str {
    let path = device.split('?').next().unwrap_or(device).trim_end_matches('/');
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(device)
}

/// Refuses an attached device that has clients.
fn unused(name: &str) -> Result<(), Failure> {
    let view = crate::commands::client().and_then(|client| client.find(name));
    let clients = view.ok().flatten().and_then(|view| view.field::<Vec<Client>>("clients"));
    if clients.is_some_and(|clients| !clients.is_empty()) {
        return Err(Failure::conflict(format!("{name} is in use: a test would overwrite it under its clients"))
            .help("disconnect them first; `vsl status` names them"));
    }
    Ok(())
}

/// Refuses a block device that something uses: the kernel gives nobody else an exclusive hold on it, or on one of its partitions.
fn free(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    // Of a block device this fails while it is mounted, swapped to, or part of something.
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    match OpenOptions::new().read(true).custom_flags(exclusive).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            let how = mounted(&mounts, metadata.rdev()).map_or_else(
                || "it, or a partition of it, is mounted or otherwise in use".into(),
                |at| format!("it is mounted at {at}"),
            );
            Err(Failure::conflict(format!("{}: {how}; a test would destroy what is on it", path.display()))
                .help("unmount it first, or name another device"))
        }
        Err(error) => Err(Failure::io(path, &error)),
    }
}

/// Where a device is mounted, from the text of `/proc/self/mountinfo`: `36 35 254:0 / /mnt rw - ext4 /dev/vda rw`.
fn mounted(mounts: &str, device: u64) -> Option<String> {
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        (fields.nth(2)? == number).then(|| fields.nth(1).unwrap_or("/").to_string())
    })
}

/// What is on a block device: its parts as `lsblk` knows them, and what `blkid` finds at its beginning, since `lsblk` only repeats what udev knows.
fn contents(path: &Path) -> String {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(path).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_string();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    let found = [said("lsblk", &["-o", "NAME,SIZE,TYPE,FSTYPE,LABEL,MODEL"]), said("blkid", &["-p"])];
    match found.into_iter().flatten().collect::<Vec<_>>().join("\n") {
        text if text.is_empty() => "what is on it cannot be told (neither lsblk nor blkid says)".into(),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_called_by_their_names() {
        for (device, name) in [
            ("/dev/nvme0n1", "nvme0n1"),
            ("nbd+unix:///fct0?socket=/run/openvsl/nbd.sock", "fct0"),
            ("nbd://127.0.0.1:10809/fct1", "fct1"),
            ("nbd://127.0.0.1:10809/", "127.0.0.1:10809"),
            ("image", "image"),
        ] {
            assert_eq!(short_name(device), name, "{device}");
        }
    }

    #[test]
    fn a_mounted_device_is_found() {
        let mounts =
            "36 35 254:1 / /mnt/a rw shared:1 - ext4 /dev/vda1 rw\n37 35 254:16 / /mnt/b rw - ext4 /dev/vdb rw\n";
        assert_eq!(mounted(mounts, rustix::fs::makedev(254, 16)).as_deref(), Some("/mnt/b"));
        assert_eq!(mounted(mounts, rustix::fs::makedev(254, 2)), None);
    }
}
