//! Making new devices: what `vsl create` and the API have in common.

use std::path::{Path, PathBuf};

use device::{Capacity, CreateError, CreateOptions, EmulateOptions, Emulation, FormatOptions, Info, Secret};

use crate::Failure;
use crate::api::CreateRequest;

/// Raw capacity beyond the advertised when nothing is said, per cent.
const DEFAULT_OVER_PROVISIONING: f64 = 28.0;
/// The reserve of a device so small that the default over-provisioning would leave the groomer no room, bytes.
const SMALLEST_RESERVE: u64 = 64 << 20;

/// The seeds of a card's modules, of which each behaves on its own.
const SEEDS_APART: u64 = 1000;

/// A device to make.
struct Plan {
    /// One a die.
    paths: Vec<PathBuf>,
    parity: u32,
    advertised_bytes: u64,
    raw_bytes: u64,
    profile: Option<String>,
    emulation: Option<Emulation>,
}

/// An object store for a device that is to be made.
#[derive(Clone, Debug)]
pub struct Objects {
    /// Where its objects go.
    pub place: device::Place,
    /// What holds for it.
    pub limits: media::object::Limits,
}

/// Makes the devices that are asked for, all or none: one, or one for each module of a data sheet. What was chosen for the asker goes to `note`.
///
/// # Errors
/// They cannot be made so, something exists already, or the operating system failed.
pub fn create(
    request: &CreateRequest,
    secret: Option<&Secret>,
    objects: Option<&Objects>,
    note: &dyn Fn(&str),
) -> Result<Vec<Info>, Failure> {
    check(request)?;
    let plans = plan(request, note)?;
    if objects.is_some() && plans.iter().any(|plan| plan.paths.len() > 1) {
        return Err(Failure::invalid("a device on objects has one journal, and several files were named")
            .help("name one file: parity over objects is the store's business"));
    }
    let format = format(request)?;
    if secret.is_some() && request.emulate.is_some() {
        return Err(Failure::invalid("an emulated device is not encrypted: what a card does is measured without")
            .help("leave one of the two out"));
    }
    let mut paths = plans.iter().flat_map(|plan| &plan.paths);
    if let Some(path) = paths.find(|path| plans.len() > 1 && path.exists()) {
        return Err(Failure::conflict(format!("{}: exists already", path.display()))
            .help("choose another path; to destroy what it holds use `vsl format`, or remove the file"));
    }
    // A block device that is taken stays when the rest fails.
    let new: Vec<&PathBuf> = plans.iter().flat_map(|plan| &plan.paths).filter(|path| !path.exists()).collect();
    let mut made: Vec<Info> = Vec::new();
    if let Err(failure) = make_all(request, &plans, &format, (secret, objects), &mut made) {
        // All modules or none: those made just now hold nothing.
        for path in made.iter().flat_map(|info| &info.paths).filter(|path| new.contains(path)) {
            // The first failure is the one worth telling.
            let _ = std::fs::remove_file(path);
        }
        return Err(failure);
    }
    Ok(made)
}

/// What fits no device, or not together.
fn check(request: &CreateRequest) -> Result<(), Failure> {
    let refuse = |what: String, help: &str| Err(Failure::invalid(what).help(help));
    if let Some(parity) = request.parity.filter(|parity| *parity > 2) {
        return refuse(format!("parity: {parity}"), "choose 0, 1 or 2");
    }
    if let Some(scale) = request.scale.filter(|scale| !(1..=65_536).contains(scale)) {
        return refuse(format!("scale: {scale}"), "choose 1 to 65536");
    }
    if let Some(percent) = request.over_provisioning_percent.filter(|percent| !(*percent > 0.0 && *percent <= 10_000.0))
    {
        return refuse(format!("over-provisioning: {percent} %"), "choose a percentage above 0, such as 28");
    }
    let sheet = request.profile.is_some() || request.emulate.is_some();
    if sheet && (request.parity.is_some() || request.raw_bytes.is_some() || request.over_provisioning_percent.is_some())
    {
        return refuse(
            "a data sheet says how much parity and raw capacity there is".into(),
            "leave parity, raw capacity and over-provisioning out",
        );
    }
    if !sheet && request.module.is_some() {
        return refuse("a module is of a data sheet, and none was named".into(), "name one with profile or emulate");
    }
    if request.raw_bytes.is_some() && request.over_provisioning_percent.is_some() {
        return refuse("raw capacity and over-provisioning say the same".into(), "leave one of the two out");
    }
    Ok(())
}

/// The format, but for the label, which follows from the file where none is given.
fn format(request: &CreateRequest) -> Result<FormatOptions, Failure> {
    let capacity = request.capacity.as_deref().map_or(Ok(Capacity::Advertised), capacity)?;
    let sector_bytes = request.sector_bytes.unwrap_or(4096);
    Ok(FormatOptions { sector_bytes, capacity, label: String::new() })
}

/// A capacity as users write it.
///
/// # Errors
/// It is none.
pub fn capacity(text: &str) -> Result<Capacity, Failure> {
    text.parse().map_err(|what| Failure::invalid(format!("capacity: '{}': {what}", text.escape_debug())))
}

fn plan(request: &CreateRequest, note: &dyn Fn(&str)) -> Result<Vec<Plan>, Failure> {
    let [path, ..] = request.paths.as_slice() else {
        return Err(Failure::invalid("no path was given").help("name the new device's file"));
    };
    let sizes = [request.size_bytes.is_some(), request.profile.is_some(), request.emulate.is_some()];
    if sizes.iter().filter(|given| **given).count() != 1 {
        return Err(Failure::invalid("one of size, profile and emulate says how large the device is, and no other")
            .help("choose one of them"));
    }
    if let Some(name) = request.profile.as_ref().or(request.emulate.as_ref()) {
        let profile = profile::find(name)
            .map_err(|error| Failure::invalid(error.to_string()).help("`vsl profiles` lists them"))?;
        let Some(card) = profile.flash() else {
            return Err(Failure::invalid(format!("{name} is a {}: no device can be laid out like it", profile.kind()))
                .help("choose a flash card; `vsl profiles` says which are"));
        };
        if request.paths.len() > 1 {
            return Err(Failure::invalid(format!("{name} makes a device a module, each in a file of its own"))
                .help("name one path; a size makes a device on several files"));
        }
        let emulation = |module: u32| {
            let seed = request.seed.unwrap_or(1).wrapping_add(u64::from(module) * SEEDS_APART);
            request.emulate.is_some().then_some(Emulation { scale: request.scale.unwrap_or(1), seed })
        };
        let device = |path, module| Plan {
            paths: vec![path],
            parity: 0,
            emulation: emulation(module),
            advertised_bytes: card.module.advertised_bytes,
            raw_bytes: card.module.raw_bytes,
            profile: Some(profile.name.clone()),
        };
        return match request.module {
            Some(module) if module >= card.modules => {
                Err(Failure::invalid(format!("module {module}: {name} has {} modules", card.modules))
                    .help(format!("choose one from 0 to {}", card.modules - 1)))
            }
            Some(module) => Ok(vec![device(path.clone(), module)]),
            None if card.modules == 1 => Ok(vec![device(path.clone(), 0)]),
            None => Ok((0..card.modules).map(|module| device(module_path(path, module), module)).collect()),
        };
    }
    let files = request.paths.len() as u32;
    let parity = request.parity.unwrap_or(u32::from(files > 1));
    if parity >= files {
        return Err(Failure::invalid(format!("parity {parity} of {files} files leaves none for data"))
            .help("name more files, or choose less parity"));
    }
    let data_files = u64::from(files - parity);
    let Some(advertised_bytes) = request.size_bytes else {
        return Err(Failure::invalid("none of size, profile and emulate says how large the device is"));
    };
    let raw_bytes = match request.raw_bytes {
        Some(raw) if raw < advertised_bytes => {
            let raw = size::show(raw);
            return Err(Failure::invalid(format!(
                "the raw capacity, {raw}, is less than the size, {}",
                size::show(advertised_bytes)
            ))
            .help("the raw capacity holds the advertised one and a reserve; 28 % more is usual"));
        }
        Some(raw) => raw,
        None => {
            let percent = request.over_provisioning_percent.unwrap_or(DEFAULT_OVER_PROVISIONING);
            let reserve = advertised_bytes as f64 * percent / 100.0;
            let reserve = match request.over_provisioning_percent {
                // Rounded down to whole bytes; beyond 64 bits it stays there, and the sum below is refused.
                Some(_) => reserve as u64,
                None => (reserve as u64).max(SMALLEST_RESERVE * data_files),
            };
            if request.over_provisioning_percent.is_none() {
                let reserve = size::show(reserve);
                note(&format!(
                    "over-provisioning: {reserve} (--over-provisioning or --raw choose another; {DEFAULT_OVER_PROVISIONING} % by default)"
                ));
            }
            advertised_bytes
                .checked_add(reserve)
                .ok_or_else(|| Failure::invalid(format!("a size of {} is too large", size::show(advertised_bytes))))?
        }
    };
    let paths = request.paths.clone();
    Ok(vec![Plan { paths, parity, advertised_bytes, raw_bytes, profile: None, emulation: None }])
}

/// The file of one module: a number behind the name that the user chose.
fn module_path(path: &Path, module: u32) -> PathBuf {
    if path.is_dir() {
        return path.join(format!("fct{module}.vsl"));
    }
    let stem = if path.extension().is_some_and(|extension| extension == "vsl") {
        path.with_extension("")
    } else {
        path.to_path_buf()
    };
    let mut name = stem.into_os_string();
    name.push(format!("{module}.vsl"));
    name.into()
}

fn make_all(
    request: &CreateRequest,
    plans: &[Plan],
    format: &FormatOptions,
    (secret, objects): (Option<&Secret>, Option<&Objects>),
    made: &mut Vec<Info>,
) -> Result<(), Failure> {
    for plan in plans {
        let label = request.label.clone().unwrap_or_else(|| label_of(plan));
        made.push(make(plan, FormatOptions { label, ..format.clone() }, secret, objects)?);
        if request.drills
            && let Some(info) = made.last_mut()
        {
            *info = device::mark_for_drills(&info.paths, true)?;
        }
    }
    Ok(())
}

fn make(
    plan: &Plan,
    format: FormatOptions,
    secret: Option<&Secret>,
    objects: Option<&Objects>,
) -> Result<Info, CreateError> {
    if let (Some(emulation), Some(profile)) = (plan.emulation, &plan.profile) {
        let options = EmulateOptions { profile: profile.clone(), emulation, format };
        return device::create_emulated(&plan.paths[0], &options);
    }
    let options = CreateOptions {
        advertised_bytes: plan.advertised_bytes,
        raw_bytes: plan.raw_bytes,
        profile: plan.profile.clone(),
        parity: plan.parity,
        format,
    };
    if let Some(Objects { place, limits }) = objects {
        return device::create_on_objects(&plan.paths[0], &options, secret, place, *limits);
    }
    match secret {
        Some(secret) => device::create_encrypted(&plan.paths, &options, secret),
        None => device::create(&plan.paths, &options),
    }
}

fn label_of(plan: &Plan) -> String {
    let stem = plan.paths[0].file_stem().unwrap_or_default().to_string_lossy();
    // A label holds 63 bytes; a name that does not fit is cut between characters.
    let fitting = stem.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 63).last();
    stem[..fitting.unwrap_or(0)].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_numbered() {
        assert_eq!(module_path(Path::new("d/fct"), 1), Path::new("d/fct1.vsl"));
        assert_eq!(module_path(Path::new("card.vsl"), 0), Path::new("card0.vsl"));
        assert_eq!(module_path(Path::new("a.b"), 0), Path::new("a.b0.vsl"));
        assert_eq!(module_path(Path::new("/"), 1), Path::new("/fct1.vsl"));
    }
}
