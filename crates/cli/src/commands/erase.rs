//! `vsl sure-erase`.

use std::time::Duration;

use daemon::{Failure, Paths, fields};
use device::{Certificate, EraseLevel};
use serde_json::json;

use super::opener;
use crate::args::SureErase;
use crate::confirm;
use crate::output::Output;
use crate::progress::{Interrupt, bar};

/// How often the progress bar is drawn.
const TICK: Duration = Duration::from_millis(200);

pub fn sure_erase(args: &SureErase, output: Output) -> Result<(), Failure> {
    let (paths, info) = super::detached(&args.paths.join(","))?;
    let path = &paths[0];
    let level = match (args.crypto, args.purge, args.clear) {
        (true, _, _) => EraseLevel::Crypto,
        (_, true, _) => EraseLevel::Purge,
        (_, _, true) => EraseLevel::Clear,
        // One that was begun goes on as it was.
        _ => info.erasing.unwrap_or(EraseLevel::Clear),
    };
    let secret = opener::for_new_format(args.encrypt, &args.opener)?;
    if !args.yes {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let question = format!("It is erased and cannot be brought back. Type {name} to go on:");
        confirm::ask(&super::describe(&info), &question, &name)?;
    }
    Paths::from_environment().forget_staged(&info)?;
    let interrupt = Interrupt::listen()?;
    let bar = bar(output, "{msg} [{wide_bar}] {bytes} of {total_bytes}, {eta} left")?;
    bar.enable_steady_tick(TICK);
    let result = device::sure_erase(&paths, level, secret.as_ref(), &mut |erased| {
        bar.set_message(erased.step);
        bar.set_length(erased.total);
        bar.set_position(erased.done);
        !interrupt.came()
    });
    bar.finish_and_clear();
    let (info, certificate) = result?;
    output.result(&json!({ "devices": [super::info_json(&info)], "certificate": certificate }), || {
        text(&certificate, info.encryption.is_some())
    })
}

/// The certificate for people.
fn text(certificate: &Certificate, encrypted: bool) -> String {
    let time = |seconds: u64| fields::show(fields::Unit::Time, &json!(seconds));
    let method = match certificate.level {
        EraseLevel::Crypto => {
            "crypto: the data key was destroyed; what is stored stays, and nothing opens it".to_string()
        }
        EraseLevel::Clear => "clear: overwritten with zeros".into(),
        EraseLevel::Purge if certificate.keys_destroyed > 0 => {
            "purge: the data key was destroyed, everything overwritten with zeros, the space given back".into()
        }
        EraseLevel::Purge => "purge: overwritten with zeros, the space given back".into(),
    };
    let paths: Vec<String> = certificate.paths.iter().map(|path| path.display().to_string()).collect();
    let lines = [
        ("erased", paths.join(", ")),
        ("label", certificate.label.clone()),
        ("UUID erased", certificate.erased_uuid.to_string()),
        ("UUID now", certificate.uuid.to_string()),
        ("NIST SP 800-88", method),
        ("keys destroyed", certificate.keys_destroyed.to_string()),
        ("zeroed", size::show(certificate.zeroed_bytes)),
        ("read back", format!("{}, as it should be", size::show(certificate.verified_bytes))),
        ("runs", certificate.runs.to_string()),
        ("began", time(certificate.began)),
        ("ended", time(certificate.ended)),
        ("encrypted now", if encrypted { "yes" } else { "no" }.into()),
    ];
    lines.iter().map(|(name, value)| format!("{name:<16}{value}\n")).collect()
}
