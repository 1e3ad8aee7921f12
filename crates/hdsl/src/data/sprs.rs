//! Conversions to and from the sparse matrices of the crate `sprs`.

use super::rows::Rows;
use crate::error::{Error, Result};
use sprs::{CsMat, CsMatI, SpIndex};

/// The same rows in `sprs`'s compressed row storage.
impl From<&Rows> for CsMat<f64> {
    fn from(rows: &Rows) -> Self {
        let indices = rows.indices().iter().map(|&index| index as usize).collect();
        let shape = (rows.n_rows(), rows.n_features());
        let (starts, values) = (rows.starts().to_vec(), rows.values().to_vec());
        CsMat::new(shape, starts, indices, values)
    }
}

/// The rows of a matrix in either storage order. Columns beyond 2^32 - 1 and values that are not finite are errors.
impl<I: SpIndex, P: SpIndex> TryFrom<&CsMatI<f64, I, P>> for Rows {
    type Error = Error;

    fn try_from(matrix: &CsMatI<f64, I, P>) -> Result<Self> {
        if matrix.is_csc() {
            return Rows::try_from(&matrix.to_csr());
        }
        let starts = matrix
            .indptr()
            .to_proper()
            .iter()
            .map(|start| start.index())
            .collect();
        let index = |index: &I| {
            u32::try_from(index.index())
                .map_err(|_| Error::data(format!("column {} is above 2^32 - 1", index.index())))
        };
        let indices: Result<Vec<u32>> = matrix.indices().iter().map(index).collect();
        Rows::from_parts(matrix.cols(), starts, indices?, matrix.data().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_survive_either_storage_order() {
        let rows = Rows::from_parts(4, vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0, -2.0, 5.0]);
        let rows = rows.unwrap();
        let matrix = CsMat::from(&rows);
        assert_eq!((matrix.shape(), matrix.nnz()), ((3, 4), 3));
        assert_eq!(matrix.get(0, 3), Some(&-2.0));
        assert_eq!(Rows::try_from(&matrix).unwrap(), rows);
        assert_eq!(Rows::try_from(&matrix.to_csc()).unwrap(), rows);
        let narrow: CsMatI<f64, u16, u32> = matrix.to_other_types();
        assert_eq!(Rows::try_from(&narrow).unwrap(), rows);
    }

    #[test]
    fn columns_and_values_are_checked() {
        let matrix =
            |column, value| CsMat::new((1, 1 << 33), vec![0, 1], vec![column], vec![value]);
        let error = Rows::try_from(&matrix(1 << 32, 1.0))
            .unwrap_err()
            .to_string();
        assert_eq!(error, "column 4294967296 is above 2^32 - 1");
        assert!(Rows::try_from(&matrix(0, f64::NAN)).is_err());
    }
}
