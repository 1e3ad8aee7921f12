//! An order in which rows that are alike stand together.

use crate::data::Rows;

/// Row numbers by class, then by the two columns that matter most to the row, then by how much the first does.
///
/// A value matters by its size times the root mean square of its column, since queries are like rows. `rank` gives
/// the rank of the column of the stored value at a position, below `n_ranks`.
pub(super) fn alike(
    items: &Rows,
    rank: impl Fn(usize) -> u32,
    n_ranks: usize,
    classes: Option<&[u32]>,
) -> Vec<u32> {
    let mut squares = vec![0.0; n_ranks];
    for (at, value) in items.values().iter().enumerate() {
        squares[rank(at) as usize] += value * value;
    }
    let mut keys: Vec<(u128, u32)> = (0..items.n_rows())
        .map(|row| {
            let (mut first, mut second) = ((0.0, 0), (0.0, 0));
            for at in items.starts()[row]..items.starts()[row + 1] {
                let (value, rank) = (items.values()[at], rank(at));
                let weight = value * value * squares[rank as usize];
                if weight > first.0 {
                    (first, second) = ((weight, rank), first);
                } else if weight > second.0 {
                    second = (weight, rank);
                }
            }
            let class = classes.map_or(0, |classes| classes[row]);
            let parts = [class, first.1, second.1, !(first.0 as f32).to_bits()];
            let key = parts
                .iter()
                .fold(0, |key, &part| key << 32 | u128::from(part));
            (key, row as u32)
        })
        .collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, row)| row).collect()
}
