//! The best step where every row's error follows the figures as a straight line.

/// Errors beyond this count by their size, smaller ones by its square (the pseudo-Huber loss): a row that the model has no mechanism for does not
/// bend all the others. As a logarithm of model over published.
const SOFT: f64 = 0.08;

/// What a figure that moves costs, beside the rows: a factor of e costs about half as much as a row at [`SOFT`]. It decides what the rows leave open.
const STIFF: f64 = 0.5;

/// The loss of one row.
pub fn loss(error: f64) -> f64 {
    ((1.0 + (error / SOFT).powi(2)).sqrt() - 1.0) * 2.0
}

/// By how much to move the logarithms of the figures, within `-most..=most` each. `errors` holds a row's error now, `slopes` one list a figure:
/// by how much each row's error grows with the logarithm of the figure.
pub fn step(errors: &[f64], slopes: &[Vec<f64>], most: f64) -> Vec<f64> {
    let mut moves = vec![0.0; slopes.len()];
    let mut errors = errors.to_vec();
    // One figure after the other by Newton's method: the loss is convex, so this ends at its least value.
    for _ in 0..500 {
        let mut furthest = 0.0_f64;
        for (at, slopes) in moves.iter_mut().zip(slopes) {
            let (mut slope, mut bend) = (2.0 * STIFF * *at, 2.0 * STIFF);
            for (error, along) in errors.iter().zip(slopes) {
                let root = (1.0 + (error / SOFT).powi(2)).sqrt();
                slope += 2.0 * error / SOFT.powi(2) / root * along;
                // The bend of the parabola that touches the loss here and is nowhere below it.
                bend += 2.0 / SOFT.powi(2) / root * along * along;
            }
            let to = (*at - slope / bend).clamp(-most, most);
            for (error, along) in errors.iter_mut().zip(slopes) {
                *error += along * (to - *at);
            }
            furthest = furthest.max((to - *at).abs());
            *at = to;
        }
        if furthest < 1e-5 {
            break;
        }
    }
    moves
}
