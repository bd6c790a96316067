//! A subset of a bundle's or node's code objects, in order of first use. Never unpacks.

use std::collections::BTreeMap;

use crate::code::CodeObject;
use crate::model::CodeRef;

/// The kept code objects, without duplicates.
#[derive(Debug)]
pub struct CodeSubset<'a> {
    all: &'a [CodeObject],
    /// Indices in `all` to indices in `code`; a map: `all` may be large.
    new_indices: BTreeMap<usize, u32>,
    code: Vec<CodeObject>,
}

impl<'a> CodeSubset<'a> {
    /// Creates an empty subset of `all`.
    #[must_use]
    pub fn new(all: &'a [CodeObject]) -> CodeSubset<'a> {
        CodeSubset { all, new_indices: BTreeMap::new(), code: Vec::new() }
    }

    /// Returns the valid references with new indices; keeps their code.
    pub fn renumbered(&mut self, references: &[CodeRef]) -> Vec<CodeRef> {
        let renumbered = references.iter().filter_map(|reference| {
            Some(CodeRef { code: self.new_index(reference.code as usize)?, ..reference.clone() })
        });
        renumbered.collect()
    }

    /// Returns the code objects that stay.
    #[must_use]
    pub fn into_code(self) -> Vec<CodeObject> {
        self.code
    }

    fn new_index(&mut self, index: usize) -> Option<u32> {
        if let Some(place) = self.new_indices.get(&index) {
            return Some(*place);
        }
        let code = self.all.get(index)?.clone();
        let place = u32::try_from(self.code.len()).ok()?;
        self.code.push(code);
        self.new_indices.insert(index, place);
        Some(place)
    }
}
