//! Some of the code objects of a bundle or a node, numbered anew in the order in which they are first asked for.
//!
//! Never touches the code itself, which stays compressed.

use crate::code::CodeObject;
use crate::model::CodeRef;

/// The code objects that stay, each once.
#[derive(Debug)]
pub struct Kept<'a> {
    all: &'a [CodeObject],
    /// Where each of `all` is among `code`.
    places: Vec<Option<u32>>,
    code: Vec<CodeObject>,
}

impl<'a> Kept<'a> {
    /// None of `all`, so far.
    #[must_use]
    pub fn of(all: &'a [CodeObject]) -> Kept<'a> {
        Kept { all, places: vec![None; all.len()], code: Vec::new() }
    }

    /// The references with the new numbers; what they refer to stays. One that refers to nothing is left out.
    pub fn renumbered(&mut self, references: &[CodeRef]) -> Vec<CodeRef> {
        let renumbered = references.iter().filter_map(|reference| {
            Some(CodeRef { code: self.place(reference.code as usize)?, ..reference.clone() })
        });
        renumbered.collect()
    }

    /// What stays.
    #[must_use]
    pub fn into_code(self) -> Vec<CodeObject> {
        self.code
    }

    fn place(&mut self, index: usize) -> Option<u32> {
        let place = self.places.get_mut(index)?;
        if place.is_none() {
            let new = u32::try_from(self.code.len()).ok()?;
            self.code.push(self.all.get(index)?.clone());
            *place = Some(new);
        }
        *place
    }
}
