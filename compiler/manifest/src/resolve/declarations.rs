use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use cubinder_expr as expr;

use super::free_names::free_names;
use crate::diagnostic::{Source, Span, suggest};
use crate::manifest::{
    Alternative, AttributeDecl, ConstantDecl, FunctionDecl, InputDecl, Located, Manifest, Parameter, Text,
};

#[derive(Clone, Copy)]
pub(super) struct Declarations<'m> {
    pub(super) manifest: &'m Manifest,
    pub(super) source: &'m Arc<Source>,
}

pub(super) struct DeclaredName<'m> {
    pub(super) kind: &'static str,
    pub(super) name: &'m Located<String>,
    pub(super) is_in_header: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Tensor<'m> {
    pub(super) name: &'m Located<String>,
    pub(super) ty: &'m Located<String>,
    pub(super) format: Option<&'m Located<String>>,
}

pub(super) fn tensors(manifest: &Manifest) -> impl Iterator<Item = Tensor<'_>> {
    let inputs = manifest.inputs.iter().map(|decl| (&decl.name, &decl.ty, &decl.format));
    let outputs = manifest.outputs.iter().map(|decl| (&decl.name, &decl.ty, &decl.format));
    inputs.chain(outputs).map(|(name, ty, format)| Tensor { name, ty, format: format.as_ref() })
}

pub(super) fn is_declared<T: Alternative>(parameters: &[Parameter<T>], name: &str) -> bool {
    parameters.iter().any(|parameter| parameter.name.value == name)
        || T::EACH.iter().any(|alternative| alternative.word() == name)
}

impl<'m> Declarations<'m> {
    pub(super) fn span(self, range: &Range<usize>) -> Span {
        Span::new(self.source, range.clone())
    }

    pub(super) fn spans<'r>(self, ranges: impl IntoIterator<Item = &'r Range<usize>>) -> Vec<Span> {
        ranges.into_iter().map(|range| self.span(range)).collect()
    }

    pub(super) fn is_broken(self, name: &str) -> bool {
        self.manifest.broken.iter().any(|broken| broken == name)
    }

    pub(super) fn attribute(self, name: &str) -> Option<&'m AttributeDecl> {
        self.manifest.attributes.iter().find(|decl| decl.name.value == name)
    }

    pub(super) fn input(self, name: &str) -> Option<&'m InputDecl> {
        self.manifest.inputs.iter().find(|decl| decl.name.value == name)
    }

    pub(super) fn function(self, name: &str) -> Option<&'m FunctionDecl> {
        self.manifest.functions.iter().find(|decl| decl.name.value == name)
    }

    pub(super) fn scratch_buffer(self, name: &str) -> Option<u32> {
        let mut buffers = (0..).zip(&self.manifest.scratch);
        buffers.find(|(_, decl)| decl.name.value == name).map(|(index, _)| index)
    }

    pub(super) fn constants(self) -> impl Iterator<Item = &'m ConstantDecl> {
        self.manifest.constants.iter().chain(self.variant_constants())
    }

    pub(super) fn variant_constants(self) -> impl Iterator<Item = &'m ConstantDecl> {
        self.manifest.variants.iter().flat_map(|variant| &variant.constants)
    }

    pub(super) fn names_by_kind(self) -> impl Iterator<Item = DeclaredName<'m>> {
        let manifest = self.manifest;
        let named =
            |kind, is_in_header| move |name: &'m Located<String>| DeclaredName { kind, name, is_in_header };
        let attributes = manifest.attributes.iter().map(|decl| DeclaredName {
            kind: "attribute",
            name: &decl.name,
            is_in_header: decl.specialize.is_some(),
        });
        attributes
            .chain(manifest.inputs.iter().map(|decl| &decl.name).map(named("input", false)))
            .chain(manifest.outputs.iter().map(|decl| &decl.name).map(named("output", false)))
            .chain(manifest.types.iter().map(|decl| &decl.name).map(named("type parameter", true)))
            .chain(manifest.formats.iter().map(|decl| &decl.name).map(named("format parameter", true)))
            .chain(manifest.constants.iter().map(|decl| &decl.name).map(named("constant", true)))
            .chain(manifest.functions.iter().map(|decl| &decl.name).map(named("function", false)))
            .chain(manifest.tables.iter().map(|decl| &decl.name).map(named("table", true)))
            .chain(manifest.scratch.iter().map(|decl| &decl.name).map(named("scratch buffer", false)))
            // Already reported.
            .filter(|declared| !declared.name.value.is_empty())
    }

    /// Returns names in source order, without variants' constants.
    pub(super) fn names(self) -> Vec<DeclaredName<'m>> {
        let mut names: Vec<DeclaredName<'m>> = self.names_by_kind().collect();
        names.sort_by_key(|declared| declared.name.range.start);
        names
    }

    /// Includes called functions. Skips unparsable texts.
    pub(super) fn reachable_names(self, text: &Text, visit: &mut dyn FnMut(&str)) {
        let mut seen = BTreeSet::new();
        let mut texts = vec![(text, Vec::new())];
        while let Some((text, mut params)) = texts.pop() {
            let Ok(syntax) = expr::parse(&text.value) else { continue };
            let mut names = Vec::new();
            free_names(&syntax, &mut params, &mut |name| names.push(name.to_owned()));
            for name in names.into_iter().filter(|name| seen.insert(name.clone())) {
                visit(&name);
                if let Some(decl) = self.function(&name) {
                    texts.push((&decl.body, decl.params.iter().map(|param| param.value.as_str()).collect()));
                }
            }
        }
    }
}

pub(super) fn nearest<'m>(
    word: &str,
    names: impl Iterator<Item = &'m Located<String>> + Clone,
) -> Option<&'m Located<String>> {
    let near = suggest(word, names.clone().map(|name| name.value.as_str()))?;
    names.into_iter().find(|name| name.value == near)
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}
