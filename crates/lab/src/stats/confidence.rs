//! Means over repeats, and how sure they are: Student's t.

/// Upper 97.5 % quantiles of Student's distribution with 1 to 30 degrees of freedom (any table of it, such as NIST/SEMATECH
/// e-Handbook, 1.3.6.7.2).
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The upper 97.5 % quantile; between whole degrees of freedom that of the fewer, which is the wider.
pub fn quantile(degrees: f64) -> f64 {
    match degrees {
        degrees if degrees < 1.0 => f64::INFINITY,
        degrees if degrees <= 30.0 => QUANTILES[degrees as usize - 1],
        degrees if degrees <= 60.0 => 2.042,
        degrees if degrees <= 120.0 => 2.000,
        _ => 1.980,
    }
}

/// A mean over repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Of how many.
    pub count: usize,
    /// Variance of a single one; 0 of a single one.
    pub variance: f64,
}

impl Mean {
    /// Of these; `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = if count > 1 { squares / (count - 1) as f64 } else { 0.0 };
        Some(Mean { mean, count, variance })
    }

    /// Half the width of the interval that holds the true mean with 95 % confidence; `None` of a single value.
    pub fn half_width(&self) -> Option<f64> {
        (self.count > 1).then(|| quantile((self.count - 1) as f64) * self.error())
    }

    /// Standard error of the mean.
    fn error(&self) -> f64 {
        (self.variance / self.count as f64).sqrt()
    }
}

/// Another mean less this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The difference.
    pub difference: f64,
    /// Half the width of its interval with 95 % confidence, by Welch's test.
    pub half_width: f64,
}

impl Difference {
    /// Between two means; `None` where one of them has a single value: then nothing is known of the noise.
    pub fn between(one: &Mean, other: &Mean) -> Option<Difference> {
        if one.count < 2 || other.count < 2 {
            return None;
        }
        let (a, b) = (one.variance / one.count as f64, other.variance / other.count as f64);
        let difference = other.mean - one.mean;
        if a + b == 0.0 {
            return Some(Difference { difference, half_width: 0.0 });
        }
        // Welch and Satterthwaite.
        let degrees = (a + b).powi(2) / (a * a / (one.count - 1) as f64 + b * b / (other.count - 1) as f64);
        Some(Difference { difference, half_width: quantile(degrees) * (a + b).sqrt() })
    }

    /// It is more than noise explains.
    pub fn is_real(&self) -> bool {
        self.difference.abs() > self.half_width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: mean 5, variance ((4+1+0+1+4)/4) 2.5, error sqrt(0.5), times 2.776.
    #[test]
    fn an_interval_as_worked_by_hand() {
        let mean = Mean::of(&[3.0, 4.0, 5.0, 6.0, 7.0]).expect("values");
        assert_eq!((mean.mean, mean.variance, mean.count), (5.0, 2.5, 5));
        assert!((mean.half_width().expect("five") - 1.962_928).abs() < 1e-3);
        assert_eq!(Mean::of(&[1.0]).expect("one").half_width(), None);
        assert_eq!(Mean::of(&[]), None);
    }

    /// Two samples of four: means 10 and 13, variances 2/3 each, so the error is sqrt(1/3) and there are 6 degrees of freedom.
    #[test]
    fn a_difference_as_worked_by_hand() {
        let one = Mean::of(&[9.0, 10.0, 10.0, 11.0]).expect("values");
        let other = Mean::of(&[12.0, 13.0, 13.0, 14.0]).expect("values");
        let difference = Difference::between(&one, &other).expect("known");
        assert_eq!(difference.difference, 3.0);
        assert!((difference.half_width - 2.447 / 3f64.sqrt()).abs() < 1e-3, "{}", difference.half_width);
        assert!(difference.is_real());
        assert!(!Difference::between(&one, &one).expect("known").is_real());
        assert_eq!(Difference::between(&one, &Mean::of(&[5.0]).expect("one")), None);
    }

    #[test]
    fn quantiles_fall_towards_the_normal_distribution() {
        assert_eq!(quantile(0.5), f64::INFINITY);
        let falling: Vec<f64> = (1..200).map(|degrees| quantile(f64::from(degrees))).collect();
        assert!(falling.windows(2).all(|pair| pair[0] >= pair[1]));
        assert_eq!(quantile(1e9), 1.98);
    }
}
