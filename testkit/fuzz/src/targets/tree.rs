//! Files on a device: calls against a model, opened again in between, and sectors that something else wrote.

use std::collections::BTreeMap;

use openvsl::Device;
use openvsl_files::{Files, FilesError, Make, ROOT};

use super::Target;
use crate::choices::Choices;
use crate::runner;

pub const TARGET: Target = Target {
    name: "tree",
    about: "calls of files on a device, opened again, and a device that holds something else",
    weight: 10,
    corpus: super::choices,
    words: &[],
    run,
};

const SECTOR: u32 = 512;
/// So few that they run out.
const FILES: u64 = 12;
const CALLS: usize = 64;
const NAMES: [&[u8]; 5] = [b"a", b"b", b"c", b"log", b"log.1"];
/// Where data end at most, but now and then.
const END: usize = 6000;

/// A file, by its number: in which directory, under which name, and its data unless it is a directory.
type Model = BTreeMap<u64, (u64, Vec<u8>, Option<Vec<u8>>)>;

fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let device = Device::memory(64 << 20, SECTOR).expect("a device");
    let mut files = Files::create(device.clone(), FILES).expect("an empty device");
    let mut model = Model::from([(ROOT, (ROOT, Vec::new(), None))]);
    let mut calls = 0;
    while !choices.is_over() && calls < CALLS {
        calls += 1;
        match choices.below(200) {
            0 => {
                runner::count(calls as u64, "calls");
                return hostile(&device, files, &mut choices);
            }
            1..20 => {
                files.sync(ROOT).expect("synced");
                drop(files);
                files = Files::open(device.clone()).expect("opened again");
                check(&files, &model);
            }
            _ => call(&files, &mut model, &mut choices),
        }
    }
    check(&files, &model);
    runner::count(calls as u64, "calls");
}

fn call(files: &Files, model: &mut Model, choices: &mut Choices<'_>) {
    let numbers: Vec<u64> = model.keys().copied().collect();
    let parent = if choices.one_in(3) { choices.pick(&numbers) } else { ROOT };
    let name = choices.pick(&NAMES);
    let found = find(model, parent, name);
    let is_directory = |model: &Model, number: u64| model.get(&number).is_some_and(|(_, _, data)| data.is_none());
    let empty = |model: &Model, number: u64| number != ROOT && model.values().all(|(parent, _, _)| *parent != number);
    match choices.below(4) {
        0 => {
            let directory = choices.one_in(3);
            let make = if directory { Make::directory(0o700) } else { Make::file(0o600) };
            match files.make(parent, name, &make) {
                Ok(number) => {
                    assert!(found.is_none() && is_directory(model, parent), "made over something");
                    let data = (!directory).then(Vec::new);
                    assert!(model.insert(number, (parent, name.to_vec(), data)).is_none(), "a number twice");
                }
                Err(FilesError::TooMany { .. }) => assert_eq!(model.len() as u64, FILES),
                Err(_) => assert!(found.is_some() || !is_directory(model, parent)),
            }
        }
        1 if choices.one_in(2) => {
            let directory = choices.one_in(2);
            let fits = found
                .is_some_and(|number| is_directory(model, number) == directory && (!directory || empty(model, number)));
            assert_eq!(files.remove(parent, name, directory).is_ok(), fits, "removed");
            if let Some(number) = found.filter(|_| fits) {
                model.remove(&number);
                assert_eq!(files.read(number, 0, 1), Err(FilesError::NotFound));
            }
        }
        1 => {
            let (new_parent, new_name) = (choices.pick(&numbers), choices.pick(&NAMES));
            let replace = choices.one_in(2);
            let before = model.clone();
            let done = files.rename(parent, name, new_parent, new_name, replace);
            let fits = renamed(model, (parent, name), (new_parent, new_name), replace);
            assert_eq!(done.is_ok(), fits, "renamed: {done:?}");
            if !fits {
                *model = before;
            }
        }
        _ => {
            let number = choices.pick(&numbers);
            let Some((_, _, Some(data))) = model.get_mut(&number) else { return };
            change(files, number, data, choices);
        }
    }
}

/// One call about data, and what it does to the model.
fn change(files: &Files, number: u64, data: &mut Vec<u8>, choices: &mut Choices<'_>) {
    let at = choices.below(END);
    let at = if choices.one_in(2) { at / SECTOR as usize * SECTOR as usize } else { at };
    let len = if choices.one_in(2) { SECTOR as usize * choices.below(4) } else { choices.below(1500) };
    let written = vec![choices.byte() | 1; len];
    let put = |data: &mut Vec<u8>, at: usize| {
        if !written.is_empty() {
            data.resize(data.len().max(at + len), 0);
            data[at..at + len].copy_from_slice(&written);
        }
    };
    match choices.below(6) {
        0 | 1 => {
            let durable = choices.one_in(4);
            let done = if durable { Files::write_durable } else { Files::write }(files, number, at as u64, &written);
            done.expect("written");
            put(data, at);
        }
        2 => {
            files.truncate(number, at as u64).expect("cut off");
            data.resize(at, 0);
        }
        3 => {
            files.punch(number, at as u64..(at + len) as u64).expect("punched");
            let end = data.len().min(at + len);
            if at < end {
                data[at..end].fill(0);
            }
        }
        4 => {
            let (other, size) = (choices.below(END), choices.one_in(2).then(|| choices.below(END)));
            let parts: [(u64, &[u8]); 2] = [(at as u64, &written), (other as u64, &written)];
            files.change(number, &parts, size.map(|size| size as u64)).expect("changed");
            put(data, at);
            put(data, other);
            if let Some(size) = size {
                data.resize(size, 0);
            }
        }
        _ => {
            let beyond = files.limits().1;
            assert!(matches!(files.write(number, beyond, b"x"), Err(FilesError::TooLong { .. })));
            assert!(matches!(files.truncate(number, beyond + 1 + at as u64), Err(FilesError::TooLong { .. })));
        }
    }
    let end = data.len().min(at + len);
    let expected = data.get(at..end).unwrap_or_default();
    assert_eq!(files.read(number, at as u64, len).expect("read"), expected, "{number} at {at}");
}

fn find(model: &Model, parent: u64, name: &[u8]) -> Option<u64> {
    let is =
        |(number, (other, its, _)): &(&u64, &(u64, Vec<u8>, _))| **number != ROOT && *other == parent && its == name;
    model.iter().find(is).map(|(number, _)| *number)
}

/// Renames in the model; whether that is possible.
fn renamed(model: &mut Model, from: (u64, &[u8]), to: (u64, &[u8]), replace: bool) -> bool {
    let Some(number) = find(model, from.0, from.1) else { return false };
    let directory = model[&number].2.is_none();
    if model[&to.0].2.is_some() {
        return false;
    }
    let mut above = to.0;
    while directory && above != ROOT {
        if above == number {
            return false;
        }
        above = model[&above].0;
    }
    match find(model, to.0, to.1) {
        Some(old) if old == number => return true,
        Some(old) => {
            let full = model.values().any(|(parent, _, _)| *parent == old);
            if !replace || model[&old].2.is_none() != directory || full {
                return false;
            }
            model.remove(&old);
        }
        None => {}
    }
    if let Some(entry) = model.get_mut(&number) {
        (entry.0, entry.1) = (to.0, to.1.to_vec());
    }
    true
}

fn check(files: &Files, model: &Model) {
    assert_eq!(files.count(), model.len() as u64, "files");
    for (&number, (parent, name, data)) in model {
        if number != ROOT {
            assert_eq!(files.lookup(*parent, name), Ok(number), "a name");
        }
        match data {
            Some(data) => {
                let found = files.read(number, 0, 2 * END).expect("read");
                let differs = (0..found.len().max(data.len())).find(|at| found.get(*at) != data.get(*at));
                let lengths = (found.len(), data.len());
                assert_eq!(differs, None, "data of {number}: {lengths:?} bytes, and expected the second");
            }
            None => assert!(files.list(number).is_ok(), "a directory"),
        }
    }
}

/// Something else wrote to the device: errors are well, panics and endless loops are not.
fn hostile(device: &Device, files: Files, choices: &mut Choices<'_>) {
    let (head, sector) = (files.limits().0 + 1, SECTOR as usize);
    drop(files);
    for _ in 0..1 + choices.below(4) {
        let lba = choices.below(head as usize) as u64;
        let mut data = device.read(lba, 1).expect("read");
        for _ in 0..1 + choices.below(6) {
            let at = if choices.one_in(4) { choices.below(sector) } else { choices.below(96) };
            data[at] = choices.byte();
        }
        device.write(lba, &data).expect("written");
    }
    let Ok(files) = Files::open(device.clone()) else { return };
    for number in 0..=FILES {
        let _ = files.attributes(number);
        let _ = files.list(number);
        let _ = files.target(number);
        let _ = files.read(number, choices.hostile(0), 100);
        let _ = files.write(number, choices.hostile(0), b"x");
        let _ = files.truncate(number, choices.below(END) as u64);
        let _ = files.remove(ROOT, choices.pick(&NAMES), choices.one_in(2));
        let _ = files.rename(ROOT, choices.pick(&NAMES), number, b"new", true);
    }
    let _ = files.sync_all();
    drop(files);
    let _ = Files::open(device.clone());
}
