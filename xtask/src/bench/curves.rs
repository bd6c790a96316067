use serde::{Deserialize, Serialize};

/// Sorted by `x`, positive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<[f64; 2]>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Growth {
    pub(super) from: [f64; 2],
    pub(super) to: [f64; 2],
    /// `y` grows as `x` to this power (least squares of logarithms); `None` for two points.
    pub(super) exponent: Option<f64>,
    pub(super) steps: Vec<f64>,
}

/// Number of points to fit, from the end: fixed costs affect large inputs least.
const FITTED: usize = 3;

impl Curve {
    pub(super) fn growth(&self) -> Option<Growth> {
        let all: Vec<[f64; 2]> = self.drawable().collect();
        let points = &all[all.len().saturating_sub(FITTED)..];
        let [from, .., to] = points else { return None };
        let steps: Vec<f64> = points.windows(2).map(slope).collect();
        let is_grown = steps.iter().all(|step| step.is_finite());
        let exponent = (points.len() == FITTED).then(|| slope(points));
        is_grown.then_some(Growth { from: *from, to: *to, exponent, steps })
    }

    pub(super) fn drawable(&self) -> impl Iterator<Item = [f64; 2]> + '_ {
        self.points
            .iter()
            .copied()
            .filter(|point| point.iter().all(|value| value.is_finite() && *value > 0.0))
    }
}

fn slope(points: &[[f64; 2]]) -> f64 {
    let mean = |axis: usize| points.iter().map(|point| point[axis].ln()).sum::<f64>() / points.len() as f64;
    let means = [mean(0), mean(1)];
    let deviation = |axis: usize, point: &[f64; 2]| point[axis].ln() - means[axis];
    let covariance: f64 = points.iter().map(|point| deviation(0, point) * deviation(1, point)).sum();
    covariance / points.iter().map(|point| deviation(0, point).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[[f64; 2]]) -> Curve {
        Curve { name: "a < b".to_owned(), points: points.to_vec() }
    }

    #[test]
    fn growth_is_the_power_over_the_last_three_points() {
        let growth = |points: &[[f64; 2]]| curve(points).growth();
        let is_near = |found: f64, power: f64| (found - power).abs() < 1e-9;
        let square = growth(&[[1.0, 90.0], [10.0, 100.0], [100.0, 10_000.0], [1000.0, 1_000_000.0]]).unwrap();
        assert!(is_near(square.exponent.unwrap(), 2.0), "{square:?}");
        assert_eq!((square.from, square.to), ([10.0, 100.0], [1000.0, 1_000_000.0]));
        let bent = growth(&[[1.0, 1.0], [10.0, 10.0], [100.0, 1000.0]]).unwrap();
        assert!(is_near(bent.exponent.unwrap(), 1.5), "{bent:?}");
        assert!(bent.steps.iter().zip([1.0, 2.0]).all(|(step, power)| is_near(*step, power)), "{bent:?}");
        let two = growth(&[[1.0, 1.0], [100.0, 50.0]]).unwrap();
        assert_eq!((two.exponent, two.steps.len()), (None, 1));
        assert_eq!(growth(&[[1.0, 1.0]]), None);
        assert_eq!(growth(&[[10.0, 10.0], [10.0, 20.0]]), None, "as much work twice");
        assert_eq!(growth(&[[10.0, 0.0], [100.0, 20.0]]), None);
    }
}
