//! `vsl kv`: looks into a key-value store.

use std::io::Read;
use std::path::Path;

use daemon::Failure;
use openvsl::kv::{Entry, KvError, Options, Pool, Store};
use openvsl::{Device, OpenError};
use serde_json::json;

use crate::args::kv::{InPool, Kv, What};
use crate::output::{Output, raw};

pub fn kv(args: &Kv, output: Output) -> Result<(), Failure> {
    let device = open(&args.device)?;
    let failed = |error: KvError| failure(&args.device, &error);
    if let What::Create { max_value } = args.what {
        let options = Options { max_value_bytes: usize::try_from(max_value).unwrap_or(usize::MAX) };
        let store = Store::create(device, &options).map_err(failed)?;
        return close(store, &args.device);
    }
    let store = Store::open(device).map_err(failed)?;
    match &args.what {
        What::Create { .. } => {}
        What::Get { key, pool } => {
            let pool = find(&store, pool, &args.device)?;
            let Some(value) = store.get(&pool, key.as_bytes()).map_err(failed)? else {
                return Err(Failure::not_found(format!("{}: no key '{key}'", args.device))
                    .help(format!("`vsl kv {} list` lists the keys", args.device)));
            };
            raw(&value)?;
        }
        What::Put { key, value, file, pool } => {
            let value = match (value, file) {
                (Some(value), _) => value.clone().into_bytes(),
                (None, Some(path)) => std::fs::read(path).map_err(|error| Failure::io(path, &error))?,
                (None, None) => {
                    let mut value = Vec::new();
                    // One byte more than any value has is enough to refuse it.
                    let limit = store.max_value_bytes() as u64 + 1;
                    let read = std::io::stdin().take(limit).read_to_end(&mut value);
                    read.map_err(|error| Failure::failed(format!("standard input: {error}")))?;
                    value
                }
            };
            let pool = match &pool.pool {
                Some(name) => store.pool(name).map_err(failed)?,
                None => store.default_pool(),
            };
            store.put(&pool, key.as_bytes(), &value).map_err(failed)?;
        }
        What::Delete { key, pool } => {
            let pool = find(&store, pool, &args.device)?;
            store.delete(&pool, key.as_bytes()).map_err(failed)?;
        }
        What::List { pool } => {
            let pool = find(&store, pool, &args.device)?;
            let mut entries = store.iter(&pool).collect::<Result<Vec<Entry>, _>>().map_err(failed)?;
            entries.sort_by(|one, other| one.key.cmp(&other.key));
            let key = |entry: &Entry| String::from_utf8_lossy(&entry.key).into_owned();
            let shown: Vec<_> =
                entries.iter().map(|entry| json!({ "key": key(entry), "value_bytes": entry.value.len() })).collect();
            output.result(&json!({ "keys": shown }), || {
                entries.iter().map(|entry| format!("{}\t{}\n", entry.value.len(), key(entry).escape_debug())).collect()
            })?;
        }
        What::Pools => {
            let pools = store.pools().map_err(failed)?;
            output.result(&json!({ "pools": pools }), || {
                pools.iter().map(|name| format!("{}\n", name.escape_debug())).collect()
            })?;
        }
        What::Sweep => {
            let records = store.sweep().map_err(failed)?;
            output.result(&json!({ "records": records }), || format!("{records} records\n"))?;
        }
    }
    close(store, &args.device)
}

/// The device by the name under which the service has it, or by its file.
fn open(device: &str) -> Result<Device, Failure> {
    let opened = |result: Result<Device, OpenError>| {
        result.map_err(|error| Failure::failed(error.to_string()).help("`vsl status` lists the devices of the service"))
    };
    // Without a service every device is a file.
    if let Ok(Some(view)) = super::client().and_then(|client| client.find(device)) {
        return opened(Device::connect(view.text("nvme_uri")));
    }
    opened(Device::open(Path::new(device)))
}

/// The pool that was named, which must be there: looking makes none.
fn find(store: &Store, named: &InPool, device: &str) -> Result<Pool, Failure> {
    let Some(name) = &named.pool else { return Ok(store.default_pool()) };
    let failed = |error: KvError| failure(device, &error);
    if !store.pools().map_err(failed)?.contains(name) {
        return Err(Failure::not_found(format!("{device}: no pool '{name}'"))
            .help(format!("`vsl kv {device} pools` lists them")));
    }
    store.pool(name).map_err(failed)
}

fn close(store: Store, device: &str) -> Result<(), Failure> {
    store.into_space().close().map_err(|error| failure(device, &error.into()))
}

fn failure(device: &str, error: &KvError) -> Failure {
    let text = format!("{device}: {error}");
    match error {
        KvError::Key { .. } | KvError::Value { .. } | KvError::PoolName { .. } | KvError::Invalid { .. } => {
            Failure::invalid(text)
        }
        KvError::NoStore => {
            Failure::failed(text).help(format!("`vsl kv {device} create` makes one, on an empty device"))
        }
        _ => Failure::failed(text),
    }
}
