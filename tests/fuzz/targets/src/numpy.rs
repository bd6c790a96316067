//! NumPy's files: arrays have the declared size within limits, files round-trip.

use std::io::Cursor;

use cubinder_expr::DataType;
use cubinder_node::trial::npy::{self, StoredTensor};
use cubinder_node::trial::{Array, count};

use crate::{Target, seeds};

/// The readers of `.npy` and `.npz`.
pub static TARGET: Target =
    Target::new("numpy", run, seeds::numpy, include_str!("../../dictionaries/numpy.dict"));

const MOST: usize = 1 << 16;

fn run(bytes: &[u8]) {
    for ty in DataType::ALL {
        one(npy::read(bytes), ty);
    }
    let Ok(mut archive) = npy::Archive::open(Cursor::new(bytes)) else { return };
    for name in archive.names().iter().take(4) {
        for ty in DataType::ALL {
            one(archive.tensor(name), ty);
        }
    }
}

fn one(stored: Result<StoredTensor<'_>, String>, ty: DataType) {
    let Ok(stored) = stored.and_then(|stored| stored.within(MOST)) else { return };
    let shape = stored.shape().to_vec();
    assert!(count(&shape).is_some_and(|count| count <= MOST), "{shape:?}");
    let Ok(array) = stored.array(ty) else { return };
    assert_eq!(array.shape(), shape);
    let written = npy::write(&array).expect("an array has a file");
    let again = npy::read(written.as_slice())
        .and_then(|stored| stored.array(ty))
        .expect("the written file can be read");
    assert_eq!(codes(&again), codes(&array), "{}", ty.name());
}

/// Returns the elements' bits; all NaNs are equal.
fn codes(array: &Array) -> Vec<u64> {
    let code = |index| if array.get(index).as_f64().is_nan() { u64::MAX } else { array.code(index) };
    (0..array.len()).map(code).collect()
}
