//! A conditional logit, fitted by penalized maximum likelihood.
//!
//! The chance of choosing option `o` is `exp(w·x(o)) / Σ exp(w·x)`. The weights maximize the
//! log-likelihood of what was chosen less `½ Σ w²`, which has one maximum; Newton's method
//! finds it.

/// A choice among options: each option's features, and which was chosen.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) rows: Vec<Vec<f64>>,
    pub(super) chosen: usize,
}

/// The most steps.
const STEPS: usize = 100;
/// A gain smaller than this ends the search.
const LEAST_GAIN: f64 = 1e-9;
/// A step shorter than this in every weight ends it too.
const LEAST_STEP: f64 = 1e-6;

/// The weights of `width` features that explain the choices best.
pub(super) fn fit(choices: &[Chosen], width: usize) -> Vec<f64> {
    let mut weights = vec![0.0; width];
    let mut value = objective(choices, &weights);
    for _ in 0..STEPS {
        let (gradient, curvature) = derivatives(choices, &weights);
        let mut step = solve(curvature, gradient);
        // A full step may overshoot; half of it, again and again, cannot.
        let (next, gained) = loop {
            let next: Vec<f64> = weights
                .iter()
                .zip(&step)
                .map(|(w, step)| w + step)
                .collect();
            let gained = objective(choices, &next) - value;
            if gained >= 0.0 || is_short(&step) {
                break (next, gained);
            }
            for part in &mut step {
                *part /= 2.0;
            }
        };
        if gained < 0.0 {
            break;
        }
        weights = next;
        value += gained;
        if gained < LEAST_GAIN || is_short(&step) {
            break;
        }
    }
    weights
}

fn is_short(step: &[f64]) -> bool {
    step.iter().all(|part| part.abs() < LEAST_STEP)
}

/// The chances of the options of a choice.
fn chances(rows: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let scores: Vec<f64> = rows.iter().map(|row| dot(row, weights)).collect();
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let odds: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
    let total: f64 = odds.iter().sum();
    odds.into_iter().map(|odds| odds / total).collect()
}

fn dot(row: &[f64], weights: &[f64]) -> f64 {
    row.iter().zip(weights).map(|(x, w)| x * w).sum()
}

fn objective(choices: &[Chosen], weights: &[f64]) -> f64 {
    let likelihood: f64 = choices
        .iter()
        .map(|choice| chances(&choice.rows, weights)[choice.chosen].ln())
        .sum();
    likelihood - dot(weights, weights) / 2.0
}

/// The gradient of the objective, and the negative of its matrix of second derivatives, which
/// is positive definite.
fn derivatives(choices: &[Chosen], weights: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let width = weights.len();
    let mut gradient: Vec<f64> = weights.iter().map(|w| -w).collect();
    let mut curvature = vec![vec![0.0; width]; width];
    for (place, row) in curvature.iter_mut().enumerate() {
        row[place] = 1.0;
    }
    for Chosen { rows, chosen } in choices {
        let chances = chances(rows, weights);
        let mut mean = vec![0.0; width];
        for (row, chance) in rows.iter().zip(&chances) {
            mean.iter_mut()
                .zip(row)
                .for_each(|(mean, x)| *mean += chance * x);
        }
        for (part, (x, mean)) in gradient.iter_mut().zip(rows[*chosen].iter().zip(&mean)) {
            *part += x - mean;
        }
        for (row, chance) in rows.iter().zip(&chances) {
            let apart: Vec<f64> = row.iter().zip(&mean).map(|(x, mean)| x - mean).collect();
            for (line, left) in curvature.iter_mut().zip(&apart) {
                for (cell, right) in line.iter_mut().zip(&apart) {
                    *cell += chance * left * right;
                }
            }
        }
    }
    (gradient, curvature)
}

/// Solves `matrix · x = right` for a positive definite matrix, by elimination.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let width = right.len();
    for pivot in 0..width {
        let (above, below) = matrix.split_at_mut(pivot + 1);
        let row = &above[pivot];
        let (solved, rest) = right.split_at_mut(pivot + 1);
        for (line, value) in below.iter_mut().zip(rest) {
            let factor = line[pivot] / row[pivot];
            line.iter_mut()
                .zip(row)
                .for_each(|(cell, above)| *cell -= factor * above);
            *value -= factor * solved[pivot];
        }
    }
    let mut solution = vec![0.0; width];
    for place in (0..width).rev() {
        let known = dot(&matrix[place], &solution);
        solution[place] = (right[place] - known) / matrix[place][place];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 up to 1, the same each time.
    fn numbers() -> impl FnMut() -> f64 {
        let mut draws = crate::explore::Draws::new(7, 0);
        move || draws.draw()
    }

    /// Choices that somebody with these weights would make.
    fn choices(weights: &[f64], count: usize) -> Vec<Chosen> {
        let mut number = numbers();
        let choice = |_| {
            let rows: Vec<Vec<f64>> = (0..4)
                .map(|_| weights.iter().map(|_| 4.0 * number() - 2.0).collect())
                .collect();
            let mut left = number();
            let chances = chances(&rows, weights);
            let chosen = chances.iter().position(|chance| {
                left -= chance;
                left < 0.0
            });
            Chosen {
                rows,
                chosen: chosen.unwrap_or(3),
            }
        };
        (0..count).map(choice).collect()
    }

    #[test]
    fn at_the_fit_no_direction_goes_up() {
        let choices = choices(&[1.0, -0.5, 0.0], 200);
        let weights = fit(&choices, 3);
        let (gradient, _) = derivatives(&choices, &weights);
        assert!(
            gradient.iter().all(|part| part.abs() < 1e-5),
            "{gradient:?}"
        );
        let best = objective(&choices, &weights);
        for place in 0..3 {
            for step in [-0.01, 0.01] {
                let mut other = weights.clone();
                other[place] += step;
                assert!(objective(&choices, &other) < best);
            }
        }
    }

    #[test]
    fn the_weights_behind_many_choices_are_found_again() {
        let truth = [1.0, -0.5, 0.25, 0.0];
        let weights = fit(&choices(&truth, 4000), 4);
        for (found, truth) in weights.iter().zip(truth) {
            assert!((found - truth).abs() < 0.08, "{weights:?}");
        }
    }

    #[test]
    fn without_choices_all_weights_are_zero_and_clear_ones_stay_finite() {
        assert!(fit(&[], 3).iter().all(|weight| *weight == 0.0));
        // Whoever always takes the same would have endless weights, if they cost nothing.
        let same = Chosen {
            rows: vec![vec![1.0], vec![0.0]],
            chosen: 0,
        };
        let [weight] = fit(&vec![same; 50], 1)[..] else {
            panic!("one weight per feature");
        };
        assert!((2.0..5.0).contains(&weight), "{weight}");
    }
}
