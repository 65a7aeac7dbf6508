//! `vsl scan`.

use std::path::{Path, PathBuf};

use daemon::Failure;
use device::{Info, members};
use serde_json::json;

use crate::args::Scan;
use crate::output::Output;

/// Where block devices are.
const DISKS: &str = "/dev";

pub fn scan(args: &Scan, output: Output) -> Result<(), Failure> {
    let usual = || vec![PathBuf::from("."), PathBuf::from(DISKS)];
    let directories = if args.directories.is_empty() { usual() } else { args.directories.clone() };
    let mut devices: Vec<Info> = Vec::new();
    for directory in &directories {
        let found = members::scan(directory).map_err(|error| Failure::io(directory, &error))?;
        found.into_iter().for_each(|info| add(&mut devices, info));
    }
    output.result(&json!({ "devices": devices }), || match devices.as_slice() {
        [] => format!("no device in {}\n", shown(&directories)),
        devices => devices.iter().map(device).collect(),
    })
}

/// Puts the files of one device together. A file is there once, also where directories overlap.
fn add(devices: &mut Vec<Info>, mut info: Info) {
    match devices.iter_mut().find(|device| device.is_same_device(&info)) {
        Some(device) if device.paths.contains(&info.paths[0]) => {}
        Some(device) => device.paths.append(&mut info.paths),
        None => devices.push(info),
    }
}

fn device(info: &Info) -> String {
    let label = if info.label.is_empty() { String::new() } else { format!(" \"{}\"", info.label) };
    let encrypted = if info.encryption.is_some() { ", encrypted" } else { "" };
    let parity = match info.parity_files {
        0 => String::new(),
        files => format!(", parity {files}"),
    };
    let state = match (info.is_moved_away(), info.clean) {
        (true, _) => ", moved away to another device",
        (false, true) => "",
        (false, false) => ", in use or not detached cleanly",
    };
    let found = info.paths.len();
    let files = match info.files as usize {
        1 if found == 1 => String::new(),
        files if files == found => format!(", {files} files"),
        files => format!(", {found} found of {files} files"),
    };
    let paths: String = info.paths.iter().map(|path| format!("  {}\n", path.display())).collect();
    format!("{}{label}: {}{files}{parity}{encrypted}{state}\n{paths}", info.uuid, size::show(info.bytes()))
}

fn shown(directories: &[PathBuf]) -> String {
    let shown =
        |path: &PathBuf| if path == Path::new(".") { "this directory".into() } else { path.display().to_string() };
    directories.iter().map(shown).collect::<Vec<String>>().join(" and ")
}
