//! One file for each group of commands.

mod access;
mod alerts;
mod array;
mod attachment;
mod backup;
mod cache;
mod clone;
mod connect;
mod create;
mod doctor;
mod drill;
mod erase;
mod format;
mod generate;
mod history;
mod hosts;
mod key;
mod kv;
mod lab;
mod man;
mod migrate;
mod notify;
mod objects;
mod opener;
mod predict;
mod profiles;
mod published;
mod redundancy;
mod replicate;
mod resize;
mod scan;
mod serve;
mod service;
mod settings;
mod sim;
mod snapshot;
mod status;
mod streams;
mod top;
mod trace;

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::ExitCode;

use daemon::api::DeviceView;
use daemon::{Failure, Paths, Target};
use device::{Info, State};

use crate::args::Command;
use crate::client::Client;
use crate::output::Output;

/// Carries a command out.
///
/// # Errors
/// What went wrong, and what to do.
pub fn run(command: &Command, output: Output) -> Result<ExitCode, Failure> {
    match command {
        Command::Up(args) => service::up(args, output)?,
        Command::Down(args) => service::down(args, output)?,
        Command::Create(args) => create::create(args, output)?,
        Command::Format(args) => format::format(args, output)?,
        Command::Attach(args) => attachment::attach(args, output)?,
        Command::Detach(args) => attachment::detach(args, output)?,
        Command::Connect(args) => connect::connect(args, output)?,
        Command::Disconnect(args) => connect::disconnect(args, output)?,
        Command::Scan(args) => scan::scan(args, output)?,
        Command::Objects(args) => objects::objects(args, output)?,
        Command::Status(args) => return status::status(args, output),
        Command::Config(args) => settings::config(args, output)?,
        Command::SureErase(args) => erase::sure_erase(args, output)?,
        Command::Scrub(args) => return redundancy::scrub(args, output),
        Command::Optimise(args) => redundancy::optimise(args, output)?,
        Command::Rebuild(args) => redundancy::rebuild(args, output)?,
        Command::Resize(args) => resize::resize(args, output)?,
        Command::Drill(args) => drill::drill(args, output)?,
        Command::Snapshot(args) => snapshot::snapshot(args, output)?,
        Command::Clone(args) => clone::clone(args, output)?,
        Command::Array(args) => array::array(args, output)?,
        Command::Cache(args) => cache::cache(args, output)?,
        Command::Migrate(args) => return migrate::migrate(args, output),
        Command::Kv(args) => kv::kv(args, output)?,
        Command::Backup(args) => backup::backup(args, output)?,
        Command::Restore(args) => backup::restore(args, output)?,
        Command::Events(args) => drill::events(args, output)?,
        Command::Key(args) => key::key(args, output)?,
        Command::Beacon(args) => settings::beacon(args, output)?,
        Command::Trim(args) => settings::trim(args, output)?,
        Command::Top(args) => top::top(args, output)?,
        Command::Alerts(args) => alerts::alerts(args, output)?,
        Command::Audit(args) => access::audit(args, output)?,
        Command::History(what) => history::history(what, output)?,
        Command::Console => access::console(output)?,
        Command::Account(what) => access::account(what, output)?,
        Command::Hosts(args) => hosts::hosts(args, output)?,
        Command::Doctor => return doctor::doctor(output),
        Command::Bugreport(args) => hosts::bug_report(args, output)?,
        Command::Profiles => profiles::list(output)?,
        Command::Sim(args) => return sim::sim(args, output),
        Command::Published(args) => return published::published(args, output),
        Command::Trace(args) => return trace::trace(args, output),
        Command::Lab(args) => return lab::lab(args, output),
        Command::Serve(args) => serve::serve(args)?,
        Command::Completions { shell } => generate::completions(*shell)?,
        Command::Man { directory } => man::man(directory.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The service's client.
fn client() -> Result<Client, Failure> {
    Client::new(&Paths::from_environment())
}

/// A device that the service has, and that did not fail.
fn attached(client: &Client, device: &str) -> Option<DeviceView> {
    client.find(device).ok().flatten().filter(|view| view.state() != Some(State::Error))
}

/// The files of a device that must not be attached.
fn detached(device: &str) -> Result<(Vec<PathBuf>, Info), Failure> {
    // Without a service nothing of it is attached; who else has the file, its lock tells.
    if let Some(view) = attached(&client()?, device) {
        return Err(Failure::conflict(format!("{} ({}) is attached", view.text("name"), view.text("path")))
            .help(format!("`vsl detach {}` first", view.text("name"))));
    }
    let Target::Files(paths) = Target::parse(device)? else {
        return Err(Failure::invalid(format!("{device}: memory is not detached")).help("name a device's file"));
    };
    let info = Info { paths: paths.clone(), ..device::inspect(&paths[0])? };
    Ok((paths, info))
}

/// What a user should know of a device before it is gone.
fn describe(info: &Info) -> String {
    let paths: Vec<String> = info.paths.iter().map(|path| path.display().to_string()).collect();
    let label = if info.label.is_empty() { "without a label".into() } else { format!("label \"{}\"", info.label) };
    // Only an attached device knows its mapped sectors. What its files take on disk bounds what it holds.
    let files = info.paths.iter().map(|path| path.metadata().ok().filter(|file| file.is_file()));
    let taken: Option<u64> = files.map(|file| file.map(|file| file.blocks() * 512)).sum();
    let taken = taken.map(|bytes| format!(", {} taken on disk", size::show(bytes))).unwrap_or_default();
    format!(
        "everything on {} ({label}, capacity {}{taken}, UUID {}, attached {} times since its format)",
        paths.join(", "),
        size::show(info.bytes()),
        info.uuid,
        info.attaches
    )
}

/// How large a device is, in sectors or zones.
fn extent(info: &Info) -> String {
    let size = size::show(info.bytes());
    match &info.zones {
        None => format!("{size} in {} sectors of {} bytes", info.sectors, info.sector_bytes),
        Some(zones) => format!(
            "{size} in {} zones of {}, of which {} can be written",
            zones.count,
            size::show(zones.size_bytes),
            size::show(zones.capacity_bytes)
        ),
    }
}

/// A detached device as JSON.
fn info_json(info: &Info) -> DeviceView {
    DeviceView::detached(&info.paths[..], Ok(info.clone()))
}
