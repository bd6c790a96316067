//! What is checked, with the places of everything in it.

use cubinder_bundle::expr::Expr;
use cubinder_bundle::proof::Domain;
use cubinder_bundle::{Launch, Plugin, Target, Variant};

use super::formula::{constant, is_positive};
use crate::diagnostic::Span;
use crate::manifest::{LaunchDecl, Text, VariantDecl};
use crate::resolve::{Resolved, Unit};

/// A plugin and its manifest.
pub(super) struct Site<'r> {
    pub(super) resolved: &'r Resolved,
    pub(super) plugin: &'r Plugin,
    /// What is compiled for, as far as it is known.
    pub(super) targets: Vec<Target>,
    /// For each row and each axis of its grid: that it launches blocks; none where that is plain.
    filled: Vec<Vec<Option<Expr>>>,
}

/// A launch of a row with its places.
#[derive(Clone, Copy)]
pub(super) struct LaunchSite<'r> {
    /// Index of the row in the table of variants.
    pub(super) row: usize,
    pub(super) launch: &'r Launch,
    pub(super) decl: &'r LaunchDecl,
}

impl<'r> Site<'r> {
    /// The targets of the manifest come before those that are given.
    pub(super) fn new(resolved: &'r Resolved, targets: &[Target]) -> Site<'r> {
        let own: Vec<Target> = resolved.manifest.compile.targets.iter().map(|target| target.value).collect();
        let targets = if own.is_empty() { targets.to_vec() } else { own };
        let plugin = &resolved.draft.plugin;
        let axes = |variant: &Variant| {
            variant
                .launches
                .first()
                .map(|launch| launch.grid.iter().map(is_filled).collect())
                .unwrap_or_default()
        };
        Site { resolved, plugin, targets, filled: plugin.variants.iter().map(axes).collect() }
    }

    /// For each axis of a row's grid: that it is above 0.
    pub(super) fn filled(&self, row: usize) -> &[Option<Expr>] {
        self.filled.get(row).map_or(&[], Vec::as_slice)
    }

    /// Everything that the plugin allows.
    pub(super) fn domain(&self) -> Domain<'r> {
        Domain::of(self.plugin)
    }

    pub(super) fn variant(&self, row: usize) -> Option<&'r Variant> {
        self.plugin.variants.get(row)
    }

    pub(super) fn guard(&self, row: usize) -> Option<&'r Expr> {
        self.variant(row)?.guard.as_ref().map(|guard| &guard.expr)
    }

    /// The declaration behind a row.
    pub(super) fn variant_decl(&self, row: usize) -> Option<&'r VariantDecl> {
        let id = self.variant(row)?.id;
        self.resolved.manifest.variants.iter().find(|decl| decl.id.value == id)
    }

    /// Where the guard of a row is.
    pub(super) fn guard_span(&self, row: usize) -> Option<Span> {
        Some(self.span(self.variant_decl(row)?.guard.as_ref()?))
    }

    /// Where a row is declared: its id, or the plugin's name where the manifest has no table of variants.
    pub(super) fn variant_span(&self, row: usize) -> Span {
        match self.variant_decl(row) {
            Some(decl) if !decl.id.range.is_empty() => {
                Span::new(&self.resolved.source, decl.id.range.clone())
            }
            _ => self.resolved.name_span.clone(),
        }
    }

    /// How messages call a row.
    pub(super) fn describe(&self, row: usize) -> String {
        match self.variant(row) {
            Some(variant) if variant.label.is_empty() => format!("variant {}", variant.id),
            Some(variant) => format!("variant {} ({})", variant.id, variant.label),
            None => format!("row {row}"),
        }
    }

    /// `variant 1 (T=f16)`, or the first of several and how many more.
    pub(super) fn describe_all(&self, rows: &[usize]) -> String {
        match rows {
            [] => String::new(),
            [row] => self.describe(*row),
            [first, others @ ..] => format!("{} and {} more", self.describe(*first), others.len()),
        }
    }

    pub(super) fn span(&self, text: &Text) -> Span {
        Span::new(&self.resolved.source, text.range.clone())
    }

    pub(super) fn units(&self) -> &'r [Unit] {
        &self.resolved.draft.units
    }

    /// Every launch of every row.
    pub(super) fn launches(&self) -> impl Iterator<Item = LaunchSite<'r>> + '_ {
        self.units().iter().filter_map(|unit| {
            let launch = self.variant(unit.variant)?.launches.get(unit.launch)?;
            let decl = self.resolved.manifest.launches.get(unit.launch)?;
            Some(LaunchSite { row: unit.variant, launch, decl })
        })
    }
}

fn is_filled(axis: &Expr) -> Option<Expr> {
    constant(axis).is_none().then(|| is_positive(axis))
}
