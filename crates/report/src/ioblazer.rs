//! Results as IOBlazer writes them.

use std::fmt::Write;

use lab::run::Run;

use crate::ReportError;

/// Longer than this, an I/O counts as a long one. IOBlazer's own bound is in none of our sources.
const LONG_NS: u64 = 50_000_000;

/// A line for each step that was measured, in IOBlazer's columns; which step it is stands in the last one.
///
/// # Errors
/// A histogram of the journal cannot be read.
pub fn ioblazer_csv(run: &Run) -> Result<String, ReportError> {
    let mut text = String::from(
        "Actual duration,Total I/Os,Total bytes,IOPS,B/s,Average latency (us),Maximum latency (us),Long I/Os,Test\n",
    );
    for (part, step) in run.measured() {
        let mut long = 0;
        for cell in &step.cells {
            let histogram = cell.histogram().map_err(|problem| ReportError::Damaged {
                part: part.plan.part.clone(),
                step: step.step.clone(),
                problem,
            })?;
            long += histogram.len() - histogram.count_between(0, LONG_NS);
        }
        let all = &step.total.all;
        let (mean, most) = (all.latency.mean_ns / 1e3, all.latency.max_ns as f64 / 1e3);
        let _ = writeln!(
            text,
            "{:.3},{},{},{:.1},{:.0},{mean:.1},{most:.1},{long},{}/{}",
            step.seconds, all.requests, all.bytes, all.iops, all.bytes_per_second, part.plan.part, step.step
        );
    }
    Ok(text)
}
