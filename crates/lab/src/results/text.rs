//! Results for people.

use std::fmt::Write;

use card::Nanos;

use super::{CacheUse, DeviceUse, Ended, Flow, Phase, Results};
use crate::workload::Load;

/// A span of time with three digits: 12.3 µs, 1.23 ms.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if unit == "ns" || value >= 100.0 { 0 } else { if value >= 10.0 { 1 } else { 2 } };
    format!("{value:.digits$} {unit}")
}

/// A moment of a run, such as 1 h 02 min 03 s.
pub fn clock(now: Nanos) -> String {
    let seconds = now / 1_000_000_000;
    match seconds {
        0..60 => format!("{:.3} s", now as f64 / 1e9),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min {:02} s", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

/// A whole number with commas between thousands.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The measured phases as tables.
pub fn table(results: &Results) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for phase in results.measured() {
        let _ = phase_table(&mut text, phase, results);
    }
    match &results.ended {
        Ended::Complete => {}
        Ended::Interrupted => text.push_str("interrupted: these are the results up to there\n"),
        Ended::Failed(reason) => {
            let _ = writeln!(text, "ended early: {reason}");
        }
    }
    text
}

fn phase_table(text: &mut String, phase: &Phase, results: &Results) -> std::fmt::Result {
    let open = results.workload.phases.iter().any(|one| one.name == phase.name && one.loads.iter().any(Load::is_open));
    let loop_kind = if phase.loads.is_empty() {
        "idle"
    } else if open {
        "open loop, latency from the intended start"
    } else {
        "closed loop"
    };
    writeln!(text, "{}: {} s, {loop_kind}", phase.name, trimmed(phase.seconds))?;
    if phase.loads.len() > 1 {
        for load in &phase.loads {
            flows(text, &load.name, load.ops.each())?;
        }
        flows(text, "all", phase.total.each())?;
    } else {
        flows(text, "", phase.total.each())?;
    }
    if phase.total.read.requests > 0 && phase.total.write.requests > 0 {
        flows(text, "", [("total", &phase.total.all)].into_iter())?;
    }
    if phase.not_started > 0 {
        writeln!(
            text,
            "  {} arrivals were due and not started: the device does not keep up with the rate",
            phase.not_started
        )?;
    }
    if phase.total.all.requests > 0 {
        writeln!(
            text,
            "  outstanding  {:.1} ({:.1} at the device, where a request takes {})",
            phase.outstanding,
            phase.outstanding_at_device,
            duration(phase.device_latency_ns)
        )?;
    }
    device(text, &phase.device_use)
}

fn flows<'a>(text: &mut String, name: &str, flows: impl Iterator<Item = (&'static str, &'a Flow)>) -> std::fmt::Result {
    for (op, flow) in flows {
        let latency = &flow.latency;
        let name = if name.is_empty() { op.to_owned() } else { format!("{name} {op}") };
        writeln!(
            text,
            "  {name:<12} {} IOPS, {:.1} MB/s, latency mean {}, max {}, deviation {}, {} samples",
            grouped(flow.iops),
            flow.bytes_per_second / 1e6,
            duration(latency.mean_ns),
            duration(latency.max_ns as f64),
            duration(latency.stddev_ns),
            grouped(latency.samples as f64)
        )?;
        let percentiles: Vec<String> = latency
            .percentiles
            .iter()
            .filter(|entry| entry.percent >= 50.0)
            .map(|entry| format!("p{} {}", entry.percent, duration(entry.ns as f64)))
            .collect();
        if !percentiles.is_empty() {
            writeln!(text, "  {:<12} {}", "", percentiles.join(", "))?;
        }
    }
    Ok(())
}

fn device(text: &mut String, used: &DeviceUse) -> std::fmt::Result {
    if let Some(amplification) = used.write_amplification {
        writeln!(
            text,
            "  write amplification {:.3}: groomed {:.3}, parity {:.3}, padding {:.3}, metadata {:.3}",
            amplification.total,
            amplification.groomed,
            amplification.parity,
            amplification.padding,
            amplification.metadata
        )?;
    }
    if !used.placed_bytes.is_empty() {
        let written = used.placed_bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0);
        let written: Vec<String> = written.map(|(at, bytes)| format!("{at}: {}", size::show(*bytes))).collect();
        writeln!(text, "  placements   {}", written.join(", "))?;
    }
    if used.read_retries > 0 {
        writeln!(text, "  read again   {} times, because data are old", grouped(used.read_retries as f64))?;
    }
    if used.map_reads > 0 {
        writeln!(text, "  map          {} pages read from flash", grouped(used.map_reads as f64))?;
    }
    let shares: Vec<String> =
        [("dies", used.die_utilisation), ("data path", used.data_path_utilisation), ("link", used.link_utilisation)]
            .into_iter()
            .filter_map(|(name, share)| share.map(|share| format!("{name} {:.1} %", share * 100.0)))
            .collect();
    if !shares.is_empty() {
        writeln!(text, "  busy         {}", shares.join(", "))?;
    }
    if used.joules > 0.0 {
        let warm = used.celsius.map(|celsius| format!(", {celsius:.1} °C")).unwrap_or_default();
        writeln!(text, "  energy       {:.1} J, {:.2} W{warm}", used.joules, used.watts)?;
    }
    if let Some(counts) = used.erase_counts {
        writeln!(
            text,
            "  erases       {}; of a block {} to {}, mean {:.2}, deviation {:.2}",
            used.erases, counts.min, counts.max, counts.mean, counts.deviation
        )?;
    }
    if let Some(years) = used.years_to_wear_out {
        writeln!(text, "  worn out     in {} at this rate of writing", span_of_years(years))?;
    }
    used.objects.as_ref().map_or(Ok(()), |used| used.text(text))?;
    used.cache.as_ref().map_or(Ok(()), |used| cache(text, used))
}

fn cache(text: &mut String, used: &CacheUse) -> std::fmt::Result {
    let ratio = used.hit_ratio.map_or_else(|| "nothing read".into(), |ratio| format!("hit ratio {ratio:.3}"));
    writeln!(
        text,
        "  cache        {ratio}: read {} from it and {} from behind; filled in {}",
        size::show(used.hit_bytes),
        size::show(used.missed_bytes),
        size::show(used.filled_bytes)
    )?;
    if used.dirty_peak_bytes > 0 {
        writeln!(
            text,
            "  dirty        at most {} of {}, at the end {}; written behind {}",
            size::show(used.dirty_peak_bytes),
            size::show(used.dirty_limit_bytes),
            size::show(used.dirty_bytes),
            size::show(used.written_back_bytes)
        )?;
    }
    writeln!(text, "of the cache's flash:")?;
    device(text, &used.module)
}

fn span_of_years(years: f64) -> String {
    match years {
        years if years >= 10.0 => format!("{years:.0} years"),
        years if years >= 1.0 => format!("{years:.1} years"),
        years => format!("{:.0} days", years * 365.25),
    }
}

fn trimmed(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (ns, text) in
            [(17.0, "17 ns"), (1234.0, "1.23 µs"), (45_678.0, "45.7 µs"), (678_900.0, "679 µs"), (2.5e9, "2.50 s")]
        {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(clock(1_500_000_000), "1.500 s");
        assert_eq!(clock(3_723_000_000_000), "1 h 02 min 03 s");
        assert_eq!(grouped(1_234_567.0), "1,234,567");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(span_of_years(0.5), "183 days");
    }
}
