//! `vsl create`.

use std::cell::RefCell;

use daemon::Failure;
use daemon::api::CreateRequest;
use serde_json::json;

use super::opener;
use crate::args::Create;
use crate::output::Output;

pub fn create(args: &Create, output: Output) -> Result<(), Failure> {
    let secret = opener::for_new_format(args.encrypt, &args.opener)?;
    let notes = RefCell::new(Vec::new());
    let objects = args.objects.as_ref().map(|address| daemon::create::Objects {
        place: super::objects::place(address, args.endpoint.as_deref()),
        limits: media::object::Limits {
            behind_bytes: args.max_behind,
            behind_ms: u64::from(args.max_behind_seconds) * 1000,
            local_bytes: args.max_local,
            lease_ms: args.lease * 1000,
            ..media::object::Limits::default()
        },
    });
    let note = |note: &str| notes.borrow_mut().push(note.to_string());
    let made = daemon::create::create(&request(args), secret.as_ref(), objects.as_ref(), &note)
        .map_err(|failure| failure.helped_by("create"))?;
    let devices: Vec<_> = made.iter().map(super::info_json).collect();
    output.result(&json!({ "devices": devices }), || {
        let lines = made.iter().map(|info| {
            format!(
                "made {}: {}, UUID {}\n",
                info.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
                super::extent(info),
                info.uuid
            )
        });
        lines.collect()
    })?;
    // Nothing is remarked on what was not made.
    notes.into_inner().iter().for_each(|note| output.note(note));
    Ok(())
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
        capacity: Some(args.address_space.or(args.zones).unwrap_or(args.capacity).to_string()),
        label: args.label.clone(),
        drills: args.drills,
        ..CreateRequest::default()
    }
}
