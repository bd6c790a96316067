//! Some of the code objects of a bundle or a node, numbered anew in the order in which they are first asked for.
//!
//! Never touches the code itself, which stays compressed.

use std::collections::BTreeMap;

use crate::code::CodeObject;
use crate::model::CodeRef;

/// The code objects that stay, each once.
#[derive(Debug)]
pub struct CodeSubset<'a> {
    all: &'a [CodeObject],
    /// Where those of `all` that stay are among `code`: what a node takes is up to its own code, however much there is.
    new_indices: BTreeMap<usize, u32>,
    code: Vec<CodeObject>,
}

impl<'a> CodeSubset<'a> {
    /// None of `all`, so far.
    #[must_use]
    pub fn new(all: &'a [CodeObject]) -> CodeSubset<'a> {
        CodeSubset { all, new_indices: BTreeMap::new(), code: Vec::new() }
    }

    /// The references with the new numbers; what they refer to stays. One that refers to nothing is left out.
    pub fn renumbered(&mut self, references: &[CodeRef]) -> Vec<CodeRef> {
        let renumbered = references.iter().filter_map(|reference| {
            Some(CodeRef { code: self.new_index(reference.code as usize)?, ..reference.clone() })
        });
        renumbered.collect()
    }

    /// What stays.
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
