use crate::diagnostic::suggest;
use crate::errors::UnknownName;
use crate::query::{Mistake, Part};

pub(super) fn unknown(part: Part, what: &str, name: &str, known: &[&str]) -> Mistake {
    let list = match known {
        [] => format!("the plugin has no {what}s"),
        known => format!("the plugin has `{}`", known.join("`, `")),
    };
    let near = suggest(name, known.iter().copied());
    let error = UnknownName { what, name, known: list, near };
    Mistake::new(part, name, error).near(near)
}

pub(super) fn check_names<'k, V>(
    part: Part,
    what: &str,
    given: &[(String, V)],
    known: &[&'k str],
    mistakes: &mut Vec<Mistake>,
) -> Vec<&'k str> {
    let misnamed = given.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    mistakes.extend(misnamed.clone().map(|(name, _)| unknown(part, what, name, known)));
    misnamed.filter_map(|(name, _)| suggest(name, known.iter().copied())).collect()
}
