//! Sorts short lists with little code: `sort_unstable` has some 5 KB per type.

use std::collections::BinaryHeap;

/// Returns the values in order.
#[must_use]
pub fn sorted<T: Ord>(values: Vec<T>) -> Vec<T> {
    BinaryHeap::from(values).into_sorted_vec()
}

/// Returns the distinct values in order.
#[must_use]
pub fn sorted_set<T: Ord>(values: Vec<T>) -> Vec<T> {
    let mut values = sorted(values);
    values.dedup();
    values
}
