use super::extent::Extent;
use super::term::TermId;
use crate::sorting::sorted_set;

/// Revertible facts about terms.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// A term with a fact has a value in its scope.
    known: Vec<Option<Extent>>,
    /// Results in this or an enclosing scope.
    seen: Vec<Option<Extent>>,
    /// First minus second, for integers.
    differences: Vec<(TermId, TermId, (i128, i128))>,
    log: Vec<(Table, TermId, Option<Extent>)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Table {
    Known,
    Seen,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    log: usize,
    differences: usize,
}

impl Facts {
    /// Returns the fact about a term.
    pub fn known(&self, id: TermId) -> Option<&Extent> {
        self.known.get(id as usize)?.as_ref()
    }

    pub(super) fn seen(&self, id: TermId) -> Option<&Extent> {
        self.seen.get(id as usize)?.as_ref()
    }

    pub(super) fn set(&mut self, id: TermId, extent: Extent) {
        let before = self.replace(Table::Known, id, Some(extent));
        self.log.push((Table::Known, id, before));
    }

    pub(super) fn see(&mut self, id: TermId, extent: Extent) {
        let before = self.replace(Table::Seen, id, Some(extent));
        self.log.push((Table::Seen, id, before));
    }

    fn replace(&mut self, table: Table, id: TermId, extent: Option<Extent>) -> Option<Extent> {
        let table = if table == Table::Known { &mut self.known } else { &mut self.seen };
        if id as usize >= table.len() {
            table.resize(id as usize + 1, None);
        }
        std::mem::replace(table.get_mut(id as usize)?, extent)
    }

    pub(super) fn difference(&self, left: TermId, right: TermId) -> (i128, i128) {
        if left == right {
            return (0, 0);
        }
        let mut range = (i128::MIN, i128::MAX);
        for &(first, second, (low, high)) in &self.differences {
            if (first, second) == (left, right) {
                range = (range.0.max(low), range.1.min(high));
            } else if (second, first) == (left, right) {
                range = (range.0.max(-high), range.1.min(-low));
            }
        }
        range
    }

    pub(super) fn differ(&mut self, left: TermId, right: TermId, (low, high): (i128, i128)) {
        // Exceeds all differences of 64-bit integers; can be negated.
        const END: i128 = 1 << 66;
        self.differences.push((left, right, (low.clamp(-END, END), high.clamp(-END, END))));
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { log: self.log.len(), differences: self.differences.len() }
    }

    pub(super) fn back_to(&mut self, mark: Mark) {
        self.differences.truncate(mark.differences);
        while self.log.len() > mark.log
            && let Some((table, id, before)) = self.log.pop()
        {
            self.replace(table, id, before);
        }
    }

    pub(super) fn learned_since(&self, mark: Mark) -> Vec<(TermId, Extent)> {
        let changes = self.log.get(mark.log..).unwrap_or_default();
        let known = changes.iter().filter(|(table, ..)| *table == Table::Known);
        let ids = sorted_set(known.map(|(_, id, _)| *id).collect());
        ids.into_iter().filter_map(|id| Some((id, self.known(id)?.clone()))).collect()
    }

    /// Clears earlier results and makes facts permanent.
    pub fn settle(&mut self) {
        self.seen.clear();
        self.log.clear();
    }
}
