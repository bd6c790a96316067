//! `[[combinations]]`: which choices of types and formats there are.

use super::super::CombinationDecl;
use super::super::form::{Form, Section};
use super::{lines, names};

/// All of them, in the file's order.
pub(super) fn read(
    form: &mut Form<'_>,
    root: &mut Section<'_>,
    broken: &mut Vec<String>,
) -> Vec<CombinationDecl> {
    let sections = form.tables(root, "combinations");
    sections.into_iter().map(|section| combination(form, section, broken)).collect()
}

fn combination(form: &mut Form<'_>, mut section: Section<'_>, broken: &mut Vec<String>) -> CombinationDecl {
    let range = section.range.clone();
    let types = lines(form, &mut section, "types", broken, names::alternatives);
    let formats = lines(form, &mut section, "formats", broken, names::alternatives);
    form.finish(&section);
    CombinationDecl { types, formats, range }
}
