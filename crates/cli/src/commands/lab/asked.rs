//! What `vsl lab` is asked for: a protocol, and devices.

use daemon::Failure;
use lab::protocol::{self, Protocol};
use lab::run::Options;

use crate::args::lab::Choice;

/// What a device of `fio:` begins with.
const FIO: &str = "fio:";

/// The protocol of a name or a file, with its text.
pub fn protocol(name: &str) -> Result<(Protocol, String), Failure> {
    let found = protocol::named(name).ok_or_else(|| {
        Failure::invalid(format!("'{name}' is neither a protocol's name nor a file"))
            .help("`vsl lab list` lists the names")
    })?;
    found.map_err(|error| Failure::invalid(error.to_string()))
}

/// What is asked of it.
pub fn options(choice: &Choice, protocol: &Protocol) -> Result<Options, Failure> {
    let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    let trace = choice.trace.as_ref().map(std::path::absolute).transpose();
    let (target, devices) = target(&choice.device, protocol)?;
    if let Some(scale) = choice.scale.filter(|_| target == "virtual") {
        for profile in devices.iter().filter_map(|name| profile::find(name).ok()) {
            card::check_scale(&profile, scale).map_err(|error| Failure::invalid(error.to_string()))?;
        }
    }
    if target != "virtual" && !choice.driver.is_empty() {
        return Err(Failure::invalid(format!("--driver {} with a {target} device", choice.driver.join(", ")))
            .help("a real device is driven by this host; --driver is for data sheets"));
    }
    if let Some(policy) = choice.groomer.filter(|_| target != "virtual") {
        return Err(Failure::invalid(format!("--groomer {} with a {target} device", policy.name()))
            .help("`vsl config DEVICE groomer` chooses that of an attached device; --groomer is for data sheets"));
    }
    let cache = choice.cache.plan()?;
    if let Some(cache) = cache.as_ref().filter(|_| target != "virtual") {
        return Err(Failure::invalid(format!("--cache {} with a {target} device", cache.profile))
            .help("`vsl cache create` puts an attached device in front of real storage; --cache is for data sheets"));
    }
    Ok(Options {
        target,
        devices,
        quick: !choice.full,
        formats: some(&choice.format),
        arrays: some(&choice.array),
        drivers: some(&choice.driver),
        groomer: choice.groomer.map(|policy| policy.name().into()),
        tests: choice.test.clone(),
        repeat: choice.repeat,
        seed: choice.seed,
        scale: choice.scale,
        // The run may be resumed from elsewhere.
        trace: trace.map_err(|error| Failure::invalid(format!("--trace: {error}")))?,
        cache,
        size: None,
        engine: None,
        buffered: false,
    })
}

/// The kind of target, and its devices.
fn target(asked: &[String], protocol: &Protocol) -> Result<(String, Vec<String>), Failure> {
    if asked.is_empty() {
        return Ok(("virtual".into(), protocol.devices.clone()));
    }
    let mut kinds = Vec::new();
    for device in asked {
        kinds.push(kind(device)?);
    }
    let (first, _) = &kinds[0];
    if let Some(((other, _), name)) = kinds.iter().zip(asked).find(|((kind, _), _)| kind != first) {
        return Err(Failure::invalid(format!("{} is a {first} device and {name} a {other} one", asked[0]))
            .help("a run has devices of one kind; run the protocol once for each, and `vsl lab compare` the runs"));
    }
    Ok((first.clone(), kinds.into_iter().map(|(_, name)| name).collect()))
}

/// What kind of device a name means, and what the lab calls it.
fn kind(device: &str) -> Result<(String, String), Failure> {
    if let Some(path) = device.strip_prefix(FIO) {
        return Ok(("fio".into(), path.into()));
    }
    if ["nbd://", "nbds://", "nbd+unix://", "nbds+unix://"].iter().any(|scheme| device.starts_with(scheme)) {
        return Ok(("nbd".into(), device.into()));
    }
    let unknown = match profile::find(device) {
        Ok(profile) => return Ok(("virtual".into(), profile.name)),
        Err(error) => error,
    };
    // The name of an attached device, if a service runs at all.
    let Ok(Some(view)) = super::super::client().and_then(|client| client.find(device)) else {
        return Err(Failure::invalid(format!("'{device}' is no device: {unknown}"))
            .help("name a data sheet, an attached device (`vsl status`), an NBD address, or fio:PATH for a file or block device"));
    };
    let Some(uri) = view.field::<String>("uri") else {
        return Err(Failure::conflict(format!("{device} is not served: it has no NBD address"))
            .help(format!("`vsl status {device}` says why")));
    };
    let emulated = view.contains_key("emulation");
    Ok((if emulated { "emulated" } else { "native" }.into(), uri))
}
