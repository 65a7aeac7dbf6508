//! `vsl sure-erase`.

use std::time::Duration;

use daemon::Failure;
use serde_json::json;

use crate::args::SureErase;
use crate::confirm;
use crate::output::Output;
use crate::progress::bar;

/// How often the progress bar is drawn.
const TICK: Duration = Duration::from_millis(200);

pub fn sure_erase(args: &SureErase, output: Output) -> Result<(), Failure> {
    let (paths, info) = super::detached(&args.device)?;
    let path = &paths[0];
    if !args.yes {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let question = format!("It is overwritten and cannot be brought back. Type {name} to go on:");
        confirm::ask(&super::describe(&info), &question, &name)?;
    }
    let bar = bar(output, "erasing [{wide_bar}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")?;
    bar.set_length(info.raw_bytes);
    bar.enable_steady_tick(TICK);
    let result = device::sure_erase(path, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let info = result?;
    output.result(&json!({ "devices": [super::info_json(&info)] }), || {
        format!("erased and formatted {}: {}, UUID {}\n", path.display(), size::show(info.bytes()), info.uuid)
    })
}
