//! `[[combinations]]`.

use super::names::{ElementTypes, Formats};
use super::*;

table! {
    /// Allowed types and formats.
    struct Combination = COMBINATION: "combinations[]" as "[[combinations]]" {
        /// Alternatives of type parameters. Default: all.
        types: Lines<ElementTypes> = Optional, "T = [\"f16\"]";
        /// Alternatives of format parameters. Default: all.
        formats: Lines<Formats> = Optional, "F = [\"linear\", \"hwc8\"]";
    }
}

impl Declaration for CombinationDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&COMBINATION], but_for: None };

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<CombinationDecl> {
        let range = section.range.clone();
        let Combination { types, formats } = Row::read_all(toml, section);
        Some(CombinationDecl {
            types: types.unwrap_or_default(),
            formats: formats.unwrap_or_default(),
            range,
        })
    }
}
