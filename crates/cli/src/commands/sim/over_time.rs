//! Results over time, as a table.

use lab::results::{Results, duration};

/// Every interval of every measured phase.
pub fn rows(results: &Results) -> String {
    let mut text = String::new();
    for phase in results.measured() {
        text.push_str(&format!(
            "\n{:<12} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>6}\n",
            phase.name, "read IOPS", "write IOPS", "MB/s", "mean", "p99", "max", "WA"
        ));
        for row in &phase.series {
            let all = &row.ops.all;
            let p99 = all.latency.percentile(99.0).map_or_else(|| "-".into(), |ns| duration(ns as f64));
            let amplification =
                row.device_use.write_amplification.map_or_else(|| "-".into(), |split| format!("{:.2}", split.total));
            text.push_str(&format!(
                "{:>10.3} s {:>10.0} {:>10.0} {:>9.1} {:>9} {:>9} {:>9} {:>6}\n",
                row.end_seconds,
                row.ops.read.iops,
                row.ops.write.iops,
                all.bytes_per_second / 1e6,
                duration(all.latency.mean_ns),
                p99,
                duration(all.latency.max_ns as f64),
                amplification
            ));
        }
    }
    text
}
