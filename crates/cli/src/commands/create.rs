//! `vsl create`.

use daemon::Failure;
use daemon::api::CreateRequest;
use serde_json::json;

use super::opener;
use crate::args::Create;
use crate::output::Output;

pub fn create(args: &Create, output: Output) -> Result<(), Failure> {
    let secret = opener::for_new_format(args.encrypt, &args.opener)?;
    let made = daemon::create::create(&request(args), secret.as_ref(), &|note| output.note(note))?;
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

/// The same in the API's words.
fn request(args: &Create) -> CreateRequest {
    CreateRequest {
        paths: args.paths.clone(),
        parity: args.parity,
        size_bytes: args.size,
        raw_bytes: args.raw,
        over_provisioning_percent: args.over_provisioning,
        profile: args.profile.clone(),
        emulate: args.emulate.clone(),
        scale: Some(args.scale),
        seed: Some(args.seed),
        module: args.module,
        sector_bytes: Some(args.sector),
        capacity: Some(args.capacity.to_string()),
        label: args.label.clone(),
        drills: args.drills,
        ..CreateRequest::default()
    }
}
