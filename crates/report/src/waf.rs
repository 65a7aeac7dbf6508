//! Write amplification of policies, as charts.

use chart::{Axis, Chart, Mark, Plot, Series, Unit};
use lab::waf::{Measured, Setup};

/// A chart for each workload, amplification against over-provisioning, and one for each cell of the policy `shown` at the middle
/// over-provisioning: what share of the LEBs each stream wrote, over time.
pub fn waf_charts(setup: &Setup, measured: &[Measured], shown: &str) -> Vec<Chart> {
    let mut charts = Vec::new();
    for workload in distinct(measured.iter().map(|cell| cell.workload.as_str())) {
        let cells: Vec<&Measured> = measured.iter().filter(|cell| cell.workload == workload).collect();
        charts.push(amplification(setup, &workload, &cells));
        let of_policy: Vec<&Measured> = cells.into_iter().filter(|cell| cell.policy == shown).collect();
        if let Some(cell) = of_policy.get(of_policy.len() / 2) {
            charts.push(streams(cell));
        }
    }
    charts
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.iter().any(|other| other == name) {
            found.push(name.to_string());
        }
    }
    found
}

fn amplification(setup: &Setup, workload: &str, cells: &[&Measured]) -> Chart {
    let series = distinct(cells.iter().map(|cell| cell.policy)).into_iter().map(|policy| {
        let of_policy = cells.iter().filter(|cell| cell.policy == policy);
        let points = of_policy.map(|cell| (cell.over_provisioning_percent, cell.write_amplification));
        Series::line(policy.clone(), points.collect()).mark(Mark::Marked)
    });
    let space = if setup.as_published {
        "Several streams keep a free segment each, as in the peers' simulators."
    } else {
        "All policies have the same space."
    };
    Chart {
        id: format!("waf-{workload}"),
        title: format!("Write amplification, {workload}"),
        sees: "how many sectors are written for each sector that the host writes, by policy and spare space.".into(),
        context: vec![format!(
            "{} sectors, segments of {}, {} drive writes. {space}",
            setup.sectors,
            lab::waf::medium::SEGMENT,
            setup.drive_writes
        )],
        x: Axis::new("Over-provisioning", Unit::Percent),
        y: Axis::new("Write amplification", Unit::Plain).from_data(),
        plot: Plot::Lines(series.collect()),
        ..Chart::default()
    }
}

fn streams(cell: &Measured) -> Chart {
    let count = cell.streams.first().map_or(0, |shares| shares.len());
    let series = (0..count).filter(|stream| cell.streams.iter().any(|shares| shares[*stream] > 0.0)).map(|stream| {
        let points = (1..).zip(&cell.streams).map(|(at, shares)| (f64::from(at), shares[stream] * 100.0));
        Series::line(format!("stream {stream}"), points.collect())
    });
    Chart {
        id: format!("streams-{}", cell.workload),
        title: format!("Streams of {}, {}", cell.policy, cell.workload),
        sees: "what share of the erase blocks in use was written by each stream, over time.".into(),
        context: vec![format!("{:.0} % over-provisioning.", cell.over_provisioning_percent)],
        x: Axis::new("Drive writes", Unit::Plain).whole(),
        y: Axis::new("Erase blocks in use", Unit::Percent).between(0.0, 100.0),
        plot: Plot::Lines(series.collect()),
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use chart::Size;
    use lab::waf::Policy;

    use super::*;

    #[test]
    fn each_policy_has_a_line_and_a_marker_of_its_own() {
        let measured = |policy: Policy, over_provisioning_percent| Measured {
            workload: "uniform".into(),
            over_provisioning_percent,
            policy: policy.name(),
            write_amplification: 2.0 + f64::from(policy.code()),
            theory: None,
            slots_a_sector: 1.1,
            over_time: vec![2.0],
            streams: vec![Default::default()],
            policy_bytes_a_sector: 0.0,
            erases: None,
            sectors_a_second: 1e6,
        };
        let policies = Policy::BY_THEMSELVES;
        let cells: Vec<Measured> =
            policies.iter().flat_map(|policy| [measured(*policy, 7.0), measured(*policy, 15.0)]).collect();
        let setup = Setup { sectors: 65_536, drive_writes: 24, loops: 1, as_published: false, wear: None, seed: 1 };
        let [chart] = &waf_charts(&setup, &cells, "none")[..] else { panic!("one workload is one chart") };
        let svg = chart.svg(Size::Normal);
        let looks = |before: &str| {
            let classes = svg.split(before).skip(1).filter_map(|rest| rest.split('"').next());
            classes.map(str::to_owned).collect::<HashSet<_>>().len()
        };
        assert_eq!((looks("class=\"ln "), looks("class=\"mk ")), (policies.len(), policies.len()), "{svg}");
    }
}
