//! `vsl cache`.

use std::fmt::Write;
use std::path::Path;

use daemon::Failure;
use daemon::api::{
    CacheEstimates, CacheRequest, CacheSettingsRequest, CacheView, Caches, DeleteCacheRequest, OpenRequest,
    RoomEstimate,
};
use hyper::Method;

use crate::args::cache::{Cache, What};
use crate::confirm;
use crate::output::Output;

pub fn cache(args: &Cache, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let shown = |view: &CacheView| output.result(view, || words(view));
    match &args.what {
        What::List => {
            let listed: Caches = client.get("/caches")?;
            output.result(&listed, || table(&listed))
        }
        What::Status { name } => shown(&client.get(&format!("/caches/{name}"))?),
        What::Create { name, cache, behind, mode, share, limit } => {
            let mut request = CacheRequest {
                name: name.clone(),
                cache: cache.clone(),
                mode: Some(mode.name().into()),
                share: Some(*share),
                limit_bytes: *limit,
                ..CacheRequest::default()
            };
            // A device's name has no slash in it.
            if behind.contains("://") {
                request.address = Some(behind.clone());
            } else if behind.contains('/') || Path::new(behind).exists() {
                let path = std::path::absolute(behind).map_err(|error| Failure::io(Path::new(behind), &error))?;
                request.path = Some(path);
            } else {
                request.device = Some(behind.clone());
            }
            shown(&client.send(Method::POST, "/caches", &request)?)
        }
        What::Open { name, mode, unchanged } => {
            let request = OpenRequest { mode: mode.map(|mode| mode.name().into()), unchanged: *unchanged };
            shown(&client.send(Method::POST, &format!("/caches/{name}/open"), &request)?)
        }
        What::Set { name, share, limit } => {
            let request = CacheSettingsRequest { share: *share, limit_bytes: *limit };
            shown(&client.send(Method::POST, &format!("/caches/{name}/settings"), &request)?)
        }
        What::Flush { name } => shown(&client.send(Method::POST, &format!("/caches/{name}/flush"), &())?),
        What::Delete { name, force, discard, yes } => {
            if !yes {
                let what = match discard {
                    true => format!("delete the cached volume {name} with what is not behind yet"),
                    false => format!("delete the cached volume {name}; everything goes behind before"),
                };
                confirm::ask_before(&what, "Delete it? Type yes:", "yes")?;
            }
            let request = DeleteCacheRequest { confirm: name.clone(), force: *force, discard: *discard };
            let left: Caches = client.send(Method::POST, &format!("/caches/{name}/delete"), &request)?;
            output.result(&left, || format!("deleted {name}\n"))
        }
    }
}

/// Of what was read, how much the cache had, per cent.
fn hits(view: &CacheView) -> Option<f64> {
    let read = view.hit_bytes + view.missed_bytes;
    (read > 0).then(|| view.hit_bytes as f64 * 100.0 / read as f64)
}

fn words(view: &CacheView) -> String {
    let mut text = format!("{}: {}, {}\n", view.name, view.mode, view.health);
    let mut line = |what: &str, said: String| {
        // A string takes whatever is written to it.
        let _ = writeln!(text, "  {what:<12} {said}");
    };
    line("cache", view.cache.clone());
    line("behind", view.behind.clone());
    let limit = view.limit_bytes.map_or_else(|| "no limit".into(), |limit| format!("limit {}", size::short(limit)));
    line("share", format!("{}, {limit}", view.share));
    let Some(bytes) = view.bytes else { return text };
    line("capacity", size::show(bytes));
    line("cached", size::short(view.cached_bytes));
    match hits(view) {
        Some(percent) => {
            line("hits", format!("{percent:.1} % of {} read", size::short(view.hit_bytes + view.missed_bytes)));
        }
        None => line("hits", "nothing was read yet".into()),
    }
    line("copied", size::short(view.filled_bytes));
    if view.mode == "write-back" || view.dirty_bytes > 0 {
        let (dirty, limit) = (size::short(view.dirty_bytes), size::short(view.dirty_limit_bytes));
        line("dirty", format!("{dirty} of at most {limit}"));
        line("written back", size::short(view.written_back_bytes));
    }
    if view.failed_copies > 0 {
        line("damaged", format!("{} copies, which the store behind answered for", view.failed_copies));
    }
    if let Some(found) = &view.estimates {
        text.push_str(&rooms(found));
    }
    text
}

/// A table of what other rooms would do. Nothing before anything was read.
fn rooms(found: &CacheEstimates) -> String {
    let read: Vec<(&RoomEstimate, f64)> = found.rooms.iter().filter_map(|room| Some((room, room.hit_ratio?))).collect();
    if read.is_empty() {
        return String::new();
    }
    let own = found.hit_ratio.map_or_else(|| "-".into(), |ratio| format!("{:.1} %", ratio * 100.0));
    let mut text = format!("  of the last {} read, {own} hit; with other rooms:\n", size::short(found.read_bytes));
    for (room, ratio) in read {
        let full = if room.full { "" } else { "  (not full yet)" };
        // A string takes whatever is written to it.
        let _ = writeln!(text, "  {:>12} {:>5.1} %{full}", size::short(room.room_bytes), ratio * 100.0);
    }
    text
}

fn table(listed: &Caches) -> String {
    let mut text = format!(
        "{:<20} {:<13} {:<9} {:>9} {:>6} {:>9} {:>9} {:>5} {:>9}  {:<12} {}\n",
        "name", "mode", "state", "capacity", "hits", "dirty", "cached", "share", "limit", "cache", "behind"
    );
    for view in &listed.caches {
        let bytes = view.bytes.map_or_else(|| "-".into(), size::short);
        let hits = hits(view).map_or_else(|| "-".into(), |percent| format!("{percent:.0} %"));
        let limit = view.limit_bytes.map_or_else(|| "-".into(), size::short);
        // A string takes whatever is written to it.
        let _ = writeln!(
            text,
            "{:<20} {:<13} {:<9} {bytes:>9} {hits:>6} {:>9} {:>9} {:>5} {limit:>9}  {:<12} {}",
            view.name,
            view.mode,
            view.state,
            size::short(view.dirty_bytes),
            size::short(view.cached_bytes),
            view.share,
            view.cache,
            view.behind
        );
    }
    text
}
