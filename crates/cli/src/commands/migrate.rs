//! `vsl migrate`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use daemon::Failure;
use daemon::api::{MoveRequest, MoveView, Opener};
use hyper::Method;

use crate::args::migrate::Migrate;
use crate::client::Client;
use crate::output::Output;
use crate::progress::{INTERRUPTED, Interrupt, bar};

/// How often it is looked how far a move is.
const LOOK: Duration = Duration::from_millis(200);

pub fn migrate(args: &Migrate, output: Output) -> Result<ExitCode, Failure> {
    // Before the move begins: Ctrl-C that comes right behind that is to be told of as well.
    Interrupt::listen()?;
    let client = super::client()?;
    let name = client.attached(&args.device)?.text("name").to_string();
    let path = format!("/devices/{name}/migrate");
    let view: MoveView = match (&args.to, args.cancel) {
        (_, true) => client.send(Method::DELETE, &path, &())?,
        (None, false) => client.get(&path)?,
        (Some(to), false) => client.send(Method::POST, &path, &request(&client, to, args)?)?,
    };
    if view.is_over() || args.no_wait {
        return told(&view, args.cancel, output);
    }
    wait(&client, &path, view, output)
}

/// A device of the service where one is called so, or lies there; otherwise a new one at that path.
fn request(client: &Client, to: &str, args: &Migrate) -> Result<MoveRequest, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| Failure::io(path, &error));
    let found = client.find(to)?.map(|view| view.text("name").to_string());
    let path = match found {
        Some(_) => None,
        None => Some(absolute(Path::new(to))?),
    };
    let key_file = args.key_file.as_deref().map(absolute).transpose()?;
    let encrypt = key_file.map(|file| Opener { passphrase: None, key_file: Some(file) });
    Ok(MoveRequest { path, target: found, encrypt, plain: args.plain, force: args.force })
}

/// Shows how far it is, up to its end or Ctrl-C.
fn wait(client: &Client, path: &str, mut view: MoveView, output: Output) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen()?;
    let bar = bar(output, "{msg} [{wide_bar}] {bytes} of {total_bytes}, {eta} left")?;
    while !view.is_over() {
        if interrupt.came() {
            bar.finish_and_clear();
            let MoveView { device, to, percent, .. } = &view;
            output.note(&format!(
                "{device}: the move to {to} goes on, {percent} % done; `vsl migrate {device}` shows it, and `vsl migrate {device} --cancel` ends it"
            ));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        bar.set_message(view.state.clone());
        bar.set_length(view.bytes);
        bar.set_position(view.done_bytes);
        std::thread::sleep(LOOK);
        view = client.get(path)?;
    }
    bar.finish_and_clear();
    told(&view, false, output)
}

fn told(view: &MoveView, cancelled: bool, output: Output) -> Result<ExitCode, Failure> {
    let MoveView { device, from, to, .. } = view;
    if view.state == "failed" {
        let why = view.error.as_deref().unwrap_or_default();
        return Err(Failure::failed(format!("{device}: not moved to {to}: {why}"))
            .help(format!("it stays on {from}; `vsl events {device}` says more")));
    }
    output.result(view, || match view.state.as_str() {
        "moved" => format!(
            "moved {device} from {from} to {to}: {} copied, {} held nothing\n{from} is detached, and no longer this device\n",
            size::show(view.copied_bytes),
            size::show(view.unmapped_bytes)
        ),
        "cancelled" if cancelled => format!("cancelled: {device} stays on {from}\n"),
        "cancelled" => format!("{device}: the move to {to} was cancelled\n"),
        _ => format!("{device}: being moved from {from} to {to}, {} % done\n", view.percent),
    })?;
    Ok(ExitCode::SUCCESS)
}
