//! `vsl resize`.

use daemon::Failure;
use daemon::api::{DeviceView, ResizeRequest};
use hyper::Method;
use serde_json::json;

use crate::args::Resize;
use crate::output::Output;

pub fn resize(args: &Resize, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let name = client.attached(&args.device)?.text("name").to_string();
    let request = ResizeRequest { size_bytes: args.size, raw_bytes: args.raw };
    let view: DeviceView = client.send(Method::POST, &format!("/devices/{name}/resize"), &request)?;
    output.result(&json!({ "devices": [view] }), || {
        let bytes = |field| size::show(view.field(field).unwrap_or_default());
        format!("resized {name}: {}, raw capacity {}\n", bytes("bytes"), bytes("raw_bytes"))
    })
}
