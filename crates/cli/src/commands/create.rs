//! `vsl create`.

use std::path::{Path, PathBuf};

use daemon::Failure;
use device::{CreateError, CreateOptions, EmulateOptions, Emulation, FormatOptions, Info, Secret};
use serde_json::json;

use super::opener;
use crate::args::Create;
use crate::output::Output;

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

pub fn create(args: &Create, output: Output) -> Result<(), Failure> {
    let plans = plan(args, output)?;
    let secret = opener::for_new_format(args.encrypt, &args.opener)?;
    let mut paths = plans.iter().flat_map(|plan| &plan.paths);
    if let Some(path) = paths.find(|path| plans.len() > 1 && path.exists()) {
        return Err(Failure::conflict(format!("{}: exists already", path.display()))
            .help("choose another path; to destroy what it holds use `vsl format`, or remove the file"));
    }
    // A block device that is taken stays when the rest fails.
    let new: Vec<&PathBuf> = plans.iter().flat_map(|plan| &plan.paths).filter(|path| !path.exists()).collect();
    let mut made: Vec<Info> = Vec::new();
    if let Err(failure) = make_all(args, &plans, secret.as_ref(), &mut made) {
        // All modules or none: those made just now hold nothing.
        for path in made.iter().flat_map(|info| &info.paths).filter(|path| new.contains(path)) {
            // The first failure is the one worth telling.
            let _ = std::fs::remove_file(path);
        }
        return Err(failure);
    }
    let devices: Vec<_> = made.iter().map(super::info_json).collect();
    output.result(&json!({ "devices": devices }), || {
        let lines = made.iter().map(|info| {
            format!(
                "made {}: {} in {} sectors of {} bytes, UUID {}\n",
                info.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
                size::show(info.bytes()),
                info.sectors,
                info.sector_bytes,
                info.uuid
            )
        });
        lines.collect()
    })
}

fn plan(args: &Create, output: Output) -> Result<Vec<Plan>, Failure> {
    let path = &args.paths[0];
    if let Some(name) = args.profile.as_ref().or(args.emulate.as_ref()) {
        let profile = profile::find(name)
            .map_err(|error| Failure::invalid(error.to_string()).help("`vsl profiles` lists them"))?;
        let Some(card) = profile.flash() else {
            return Err(Failure::invalid(format!("{name} is a {}: no device can be laid out like it", profile.kind()))
                .help("choose a flash card; `vsl profiles` says which are"));
        };
        if args.paths.len() > 1 {
            return Err(Failure::invalid(format!("{name} makes a device a module, each in a file of its own"))
                .help("name one path; --size makes a device on several files"));
        }
        let emulation = |module: u32| {
            let seed = args.seed.wrapping_add(u64::from(module) * SEEDS_APART);
            args.emulate.is_some().then_some(Emulation { scale: args.scale, seed })
        };
        let device = |path, module| Plan {
            paths: vec![path],
            parity: 0,
            emulation: emulation(module),
            advertised_bytes: card.module.advertised_bytes,
            raw_bytes: card.module.raw_bytes,
            profile: Some(profile.name.clone()),
        };
        return match args.module {
            Some(module) if module >= card.modules => {
                Err(Failure::invalid(format!("module {module}: {name} has {} modules", card.modules))
                    .help(format!("choose one from 0 to {}", card.modules - 1)))
            }
            Some(module) => Ok(vec![device(path.clone(), module)]),
            None if card.modules == 1 => Ok(vec![device(path.clone(), 0)]),
            None => Ok((0..card.modules).map(|module| device(module_path(path, module), module)).collect()),
        };
    }
    let files = args.paths.len() as u32;
    let parity = args.parity.unwrap_or(u32::from(files > 1));
    if parity >= files {
        return Err(Failure::invalid(format!("--parity {parity} of {files} files leaves none for data"))
            .help("name more files, or choose less parity"));
    }
    let data_files = u64::from(files - parity);
    let Some(advertised_bytes) = args.size else {
        return Err(Failure::invalid("none of --size, --profile and --emulate says how large the device is"));
    };
    let raw_bytes = match args.raw {
        Some(raw) if raw < advertised_bytes => {
            let raw = size::show(raw);
            return Err(Failure::invalid(format!("--raw {raw} is less than --size {}", size::show(advertised_bytes)))
                .help("the raw capacity holds the advertised one and a reserve; 28 % more is usual"));
        }
        Some(raw) => raw,
        None => {
            let percent = args.over_provisioning.unwrap_or(DEFAULT_OVER_PROVISIONING);
            let reserve = advertised_bytes as f64 * percent / 100.0;
            let reserve = match args.over_provisioning {
                // Rounded down to whole bytes; beyond 64 bits it stays there, and the sum below is refused.
                Some(_) => reserve as u64,
                None => (reserve as u64).max(SMALLEST_RESERVE * data_files),
            };
            if args.over_provisioning.is_none() {
                let reserve = size::show(reserve);
                output.note(&format!("over-provisioning: {reserve} (--over-provisioning or --raw choose another; {DEFAULT_OVER_PROVISIONING} % by default)"));
            }
            advertised_bytes
                .checked_add(reserve)
                .ok_or_else(|| Failure::invalid(format!("--size {} is too large", size::show(advertised_bytes))))?
        }
    };
    let paths = args.paths.clone();
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

fn make_all(args: &Create, plans: &[Plan], secret: Option<&Secret>, made: &mut Vec<Info>) -> Result<(), Failure> {
    for plan in plans {
        made.push(make(args, plan, secret)?);
        if args.drills
            && let Some(info) = made.last_mut()
        {
            *info = device::mark_for_drills(&info.paths, true)?;
        }
    }
    Ok(())
}

fn make(args: &Create, plan: &Plan, secret: Option<&Secret>) -> Result<Info, CreateError> {
    let options = options(args, plan);
    match (plan.emulation, &plan.profile, secret) {
        (Some(emulation), Some(profile), _) => {
            let options = EmulateOptions { profile: profile.clone(), emulation, format: options.format };
            device::create_emulated(&plan.paths[0], &options)
        }
        (_, _, Some(secret)) => device::create_encrypted(&plan.paths, &options, secret),
        (_, _, None) => device::create(&plan.paths, &options),
    }
}

fn options(args: &Create, plan: &Plan) -> CreateOptions {
    let stem = plan.paths[0].file_stem().unwrap_or_default().to_string_lossy();
    // A label holds 63 bytes; a name that does not fit is cut between characters.
    let fitting = stem.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 63).last();
    let label = args.label.clone().unwrap_or_else(|| stem[..fitting.unwrap_or(0)].to_string());
    CreateOptions {
        advertised_bytes: plan.advertised_bytes,
        raw_bytes: plan.raw_bytes,
        profile: plan.profile.clone(),
        parity: plan.parity,
        format: FormatOptions { sector_bytes: args.sector, capacity: args.capacity, label },
    }
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
