//! `vsl sure-erase`.

use std::io::IsTerminal;
use std::time::Duration;

use daemon::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::args::SureErase;
use crate::confirm;
use crate::output::Output;

/// How often the progress bar is drawn.
const TICK: Duration = Duration::from_millis(200);

pub fn sure_erase(args: &SureErase, output: Output) -> Result<(), Failure> {
    let (path, info) = super::detached(&args.device)?;
    if !args.yes {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let question = format!("It is overwritten and cannot be brought back. Type {name} to go on:");
        confirm::ask(&super::describe(&info), &question, &name)?;
    }
    let bar = bar(output, info.raw_bytes)?;
    let result = device::sure_erase(&path, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let info = result?;
    output.result(&json!({ "devices": [super::info_json(&info)] }), || {
        format!("erased and formatted {}: {}, UUID {}\n", path.display(), size::show(info.bytes()), info.uuid)
    })
}

/// A progress bar, on a terminal only.
fn bar(output: Output, bytes: u64) -> Result<ProgressBar, Failure> {
    if output.json || !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()));
    }
    let style = ProgressStyle::with_template("erasing {bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
        .map_err(|error| Failure::failed(format!("the progress bar: {error}")))?;
    let bar = ProgressBar::new(bytes).with_style(style);
    bar.enable_steady_tick(TICK);
    Ok(bar)
}
