//! How far off the models are, over many rows.

use serde::Serialize;

use super::measure::Measured;

/// Errors of some rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What they have in common: a source's name, or `all`.
    pub name: String,
    /// Rows that were run.
    pub rows: usize,
    /// Rows that could not be run.
    pub not_run: usize,
    /// Median of the absolute errors, per cent.
    pub median_percent: f64,
    /// 90th percentile of the absolute errors, per cent.
    pub p90_percent: f64,
}

impl Summary {
    /// Of some rows.
    pub fn of<'a>(name: &str, rows: impl IntoIterator<Item = &'a Measured>) -> Summary {
        let (mut errors, mut not_run) = (Vec::new(), 0);
        for row in rows {
            match row.error_percent {
                Some(error) => errors.push(error.abs()),
                None => not_run += 1,
            }
        }
        errors.sort_by(f64::total_cmp);
        Summary {
            name: name.into(),
            rows: errors.len(),
            not_run,
            median_percent: quantile(&errors, 0.5),
            p90_percent: quantile(&errors, 0.9),
        }
    }
}

/// One summary for each source in the order of the rows, and one of everything; each followed by one of the rows that were kept apart, where
/// there are any.
pub fn summaries(rows: &[Measured]) -> Vec<Summary> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.row.source.as_str()) {
            names.push(&row.row.source);
        }
    }
    let mut summaries = Vec::new();
    let mut add = |name: &str, rows: &[&Measured]| {
        summaries.push(Summary::of(name, rows.iter().copied()));
        let kept_apart = rows.iter().copied().filter(|row| row.row.is_kept_apart());
        if kept_apart.clone().next().is_some() {
            summaries.push(Summary::of(&format!("{name}, kept apart"), kept_apart));
        }
    };
    for name in names {
        add(name, &rows.iter().filter(|row| row.row.source == name).collect::<Vec<_>>());
    }
    add("all", &rows.iter().collect::<Vec<_>>());
    summaries
}

/// Between the two values next to it, in proportion. 0 of nothing.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    sorted[low] + (sorted[(low + 1).min(last)] - sorted[low]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_their_neighbours() {
        let sorted: Vec<f64> = (0..=10).map(f64::from).collect();
        assert_eq!((quantile(&sorted, 0.5), quantile(&sorted, 0.9)), (5.0, 9.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.5);
        assert_eq!((quantile(&[7.0], 0.9), quantile(&[], 0.9)), (7.0, 0.0));
    }
}
