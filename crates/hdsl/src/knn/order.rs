//! An order in which similar rows are close to each other.

use crate::data::Rows;

/// Row numbers by class, then by the two columns with the largest weights in the row, then by the larger weight.
///
/// The weight of a value is its square times the sum of squares of its column, since queries are like rows.
pub(crate) fn similar_together(items: &Rows, classes: Option<&[u32]>) -> Vec<u32> {
    let mut squares = vec![0.0; items.n_features()];
    for (&column, value) in items.indices().iter().zip(items.values()) {
        squares[column as usize] += value * value;
    }
    let mut keys: Vec<([u32; 4], u32)> = (0u32..)
        .zip(items.iter())
        .map(|(number, row)| {
            let (mut first, mut second) = ((0.0, 0), (0.0, 0));
            for (column, value) in row.iter() {
                let weight = value * value * squares[column as usize];
                if weight > first.0 {
                    (first, second) = ((weight, column), first);
                } else if weight > second.0 {
                    second = (weight, column);
                }
            }
            let class = classes.map_or(0, |classes| classes[number as usize]);
            let key = [class, first.1, second.1, !(first.0 as f32).to_bits()];
            (key, number)
        })
        .collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, row)| row).collect()
}
