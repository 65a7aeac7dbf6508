//! `vsl profiles`.

use daemon::{Failure, size};
use serde_json::json;

use crate::output::Output;

pub fn list(output: Output) -> Result<(), Failure> {
    let profiles = profile::all().map_err(|error| Failure::failed(error.to_string()))?;
    output.result(&json!({ "profiles": profiles }), || {
        let blocks = profiles.iter().map(|profile| {
            format!(
                "{}\n  {} {}\n  {} x {}, raw {} each\n",
                profile.name,
                profile.vendor,
                profile.product,
                profile.modules,
                size::show(profile.module.advertised_bytes),
                size::show(profile.module.raw_bytes)
            )
        });
        blocks.collect()
    })
}
