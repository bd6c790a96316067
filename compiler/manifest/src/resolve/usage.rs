use std::collections::BTreeSet;

use super::declarations::{Declarations, tensors};
use super::errors::{SameCodeForEachValue, UnusedInExpressions, UnusedInKernels, UnusedInput, UnusedScratch};
use crate::diagnostic::Diagnostic;

/// Name that the manifest does not use; kernels may.
#[derive(Debug, Clone, PartialEq)]
pub struct UnusedName {
    /// Name, as in `manifest::`.
    pub name: String,
    /// Warning if no kernel uses it.
    pub warning: Diagnostic,
}

/// `in_rows` are the names in guards and launches.
pub(super) fn unused(
    declared: Declarations<'_>,
    used: &BTreeSet<String>,
    in_rows: &BTreeSet<String>,
) -> (Vec<Diagnostic>, Vec<UnusedName>) {
    let (mut warnings, mut in_kernels) = (Vec::new(), Vec::new());
    let tensor_parameters: BTreeSet<&String> = tensors(declared.manifest)
        .flat_map(|tensor| [Some(tensor.ty), tensor.format])
        .flatten()
        .map(|name| &name.value)
        .collect();
    let names = declared.names().into_iter().map(|it| (it.kind, it.name));
    let of_variants = declared.variant_constants().map(|decl| ("constant", &decl.name));
    let mut seen = BTreeSet::new();
    for (kind, located) in names.chain(of_variants) {
        let (name, mut span) = (located.value.as_str(), declared.span(&located.range));
        let attribute = if kind == "attribute" { declared.attribute(name) } else { None };
        let specialize = attribute.and_then(|decl| decl.specialize.as_ref());
        let is_used = if specialize.is_some() { in_rows } else { used }.contains(name);
        if is_used || name.is_empty() {
            continue;
        }
        let warning: Diagnostic = match kind {
            "attribute" | "function" => {
                if let Some(values) = specialize {
                    span = declared.span(&values.range);
                    let warning = SameCodeForEachValue { name, span }.into();
                    in_kernels.push(UnusedName { name: name.to_owned(), warning });
                    continue;
                }
                // Undeclared attributes would vanish; `one_of` rejects other values.
                let one_of = attribute.and_then(|decl| decl.one_of.as_ref());
                if one_of.is_some_and(|values| values.value.len() == 1) {
                    continue;
                }
                UnusedInExpressions { kind, name, span }.into()
            }
            "scratch buffer" => UnusedScratch { name, span }.into(),
            "input" => {
                let has_values = declared.input(name).is_some_and(|input| input.values.is_some());
                let advice = match has_values {
                    true => "use its values in the shape of an output, such as `NAME.values[0]`",
                    false => "pass it to the kernel: `<parameter> = \"NAME\"`",
                };
                UnusedInput { name, span, advice: advice.replace("NAME", name) }.into()
            }
            "output" => continue,
            "type parameter" | "format parameter" if tensor_parameters.contains(&located.value) => continue,
            _ if !seen.insert(name) => continue,
            _ => {
                // Expressions cannot use tables.
                let place = match kind {
                    "table" => "in the kernel",
                    _ => "in the manifest, or in the kernel",
                };
                let warning = UnusedInKernels { kind, name, span, place }.into();
                in_kernels.push(UnusedName { name: name.to_owned(), warning });
                continue;
            }
        };
        warnings.push(warning);
    }
    (warnings, in_kernels)
}
