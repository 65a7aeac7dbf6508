//! `vsl format`.

use daemon::{Failure, Paths, Target};
use device::FormatOptions;
use serde_json::json;

use super::opener;
use crate::args::Format;
use crate::confirm;
use crate::output::Output;

pub fn format(args: &Format, output: Output) -> Result<(), Failure> {
    if args.predict {
        return super::predict::predict(args, output);
    }
    let (paths, info) = super::detached(&args.device)?;
    let options = FormatOptions {
        sector_bytes: args.sector.unwrap_or(info.sector_bytes),
        capacity: args.address_space.or(args.zones).unwrap_or(args.capacity),
        label: args.label.clone().unwrap_or_else(|| info.label.clone()),
    };
    if info.encryption.is_some() && !args.encrypt && !args.plain {
        return Err(Failure::invalid(format!("{} is encrypted", Target::Files(paths)))
            .help("say --encrypt, for a new key, or --plain, to store what comes as it is"));
    }
    let secret = opener::for_new_format(args.encrypt, &args.opener)?;
    if !args.yes {
        confirm::ask(&super::describe(&info), "Format it? Type yes:", "yes")?;
    }
    Paths::from_environment().forget_staged(&info)?;
    let info = device::format(&paths, &options, secret.as_ref())?;
    output.result(&json!({ "devices": [super::info_json(&info)] }), || {
        format!("formatted {}: {}, UUID {}\n", Target::Files(paths), super::extent(&info), info.uuid)
    })
}
