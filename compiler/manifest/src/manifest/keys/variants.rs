//! `[[variants]]`.

use cubinder_model::MAX_VARIANT_ID;

use super::names::{Constant, ElementTypes, Formats};
use super::*;

table! {
    /// One way to compute the operator.
    struct Variant = VARIANT: "variants[]" as "[[variants]]" {
        /// TensorRT's tactic id; unique.
        id: VariantId = Required, "1";
        /// When the variant may run: a boolean over attributes, shapes and alignments.
        guard: Expression = Default("true"), "\"numel(y) % 4 == 0 and aligned(x, 16)\"";
        /// Alternatives of type parameters that it serves. Default: all.
        types: Lines<ElementTypes> = Optional, "T = [\"f16\"]";
        /// Alternatives of format parameters that it serves. Default: all.
        formats: Lines<Formats> = Optional, "F = [\"hwc8\"]";
        /// Constants of this variant.
        constants: Lines<Constant> = Optional, "VEC = 4";
    }
}

value_types! {
    /// Variant number.
    VariantId -> Located<i32>: "integer from 1 to 1000000",
        json!({ "type": "integer", "minimum": 1, "maximum": MAX_VARIANT_ID }), id;
}

pub(super) fn only_variant() -> VariantDecl {
    VariantDecl {
        id: Located { value: 1, range: 0..0 },
        types: Vec::new(),
        formats: Vec::new(),
        guard: None,
        constants: Vec::new(),
        range: 0..0,
    }
}

impl Declaration for VariantDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&VARIANT], but_for: None };

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<VariantDecl> {
        let range = section.range.clone();
        let Variant { id, guard, types, formats, constants } = Row::read_all(toml, section);
        Some(VariantDecl {
            id: id?,
            types: types.unwrap_or_default(),
            formats: formats.unwrap_or_default(),
            guard,
            constants: constants.unwrap_or_default(),
            range,
        })
    }
}

fn id(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<i32>> {
    let number = toml.integer(entry)?;
    let id = i32::try_from(number).ok().filter(|id| (1..=MAX_VARIANT_ID).contains(id));
    if id.is_none() {
        toml.report(BadVariantId { most: MAX_VARIANT_ID, found: number, place: toml.span(entry) });
    }
    id.map(|value| Located { value, range: entry.range.clone() })
}
