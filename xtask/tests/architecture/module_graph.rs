//! Each crate's module graph, from paths that start with `crate::`, `super::`, `self::` or a child's name.
//!
//! An edge joins two children of one module if code in or below one names an item in or below the other. Children and
//! parents may be named. Skips `#[cfg(test)]`; resolves only modules and re-exports (`use`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, ItemUse, Lit, Macro, Meta, MetaNameValue, UseTree};

/// Segments of a path as written, with `crate` or `super` first.
type Names = Vec<String>;

/// Names below the crate.
type ModulePath = Vec<String>;

#[derive(Default)]
struct Module {
    children: BTreeSet<String>,
    imports: BTreeMap<String, Names>,
    paths: BTreeSet<Names>,
}

struct Folders<'a> {
    own: &'a Path,
    below: &'a Path,
}

pub(crate) struct Modules {
    all: BTreeMap<ModulePath, Module>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cycle {
    parent: ModulePath,
    children: Vec<String>,
    edges: Vec<String>,
}

impl Cycle {
    fn title(&self) -> String {
        let parent = if self.parent.is_empty() { "crate".to_owned() } else { self.parent.join("::") };
        format!("{parent}: {}", self.children.join(", "))
    }
}

impl std::fmt::Display for Cycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} depend on each other", self.title())?;
        self.edges.iter().try_for_each(|edge| writeln!(f, "  {edge}"))
    }
}

impl Modules {
    /// Reads the crate with root file `root` (`src/lib.rs`). Fails for missing files and other languages.
    pub(crate) fn read(root: &Path) -> Result<Modules> {
        let mut modules = Modules { all: BTreeMap::new() };
        let folder = root.parent().context("the root has no folder")?;
        modules.read_file(root, folder, Vec::new())?;
        Ok(modules)
    }

    /// Reads a module's file. `folder` has the children's; `#[path]` is relative to the file's folder.
    fn read_file(&mut self, file: &Path, folder: &Path, at: ModulePath) -> Result<()> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse {}", file.display()))?;
        self.add(&parsed.items, &Folders { own: file.parent().unwrap_or(folder), below: folder }, at)
    }

    fn add(&mut self, items: &[Item], folders: &Folders<'_>, at: ModulePath) -> Result<()> {
        let mut visitor = Visitor(Module::default());
        for item in items {
            match item {
                Item::Mod(module) if is_test(&module.attrs) => {}
                Item::Mod(module) => self.add_child(module, folders, &at, &mut visitor.0)?,
                other => visitor.visit_item(other),
            }
        }
        self.all.insert(at, visitor.0);
        Ok(())
    }

    fn add_child(
        &mut self,
        module: &ItemMod,
        folders: &Folders<'_>,
        at: &[String],
        into: &mut Module,
    ) -> Result<()> {
        let name = module.ident.to_string();
        into.children.insert(name.clone());
        let below = folders.below.join(&name);
        let child: ModulePath = at.iter().cloned().chain([name.clone()]).collect();
        if let Some((_, items)) = &module.content {
            return self.add(items, &Folders { own: &below, below: &below }, child);
        }
        let file = match path_attribute(&module.attrs) {
            Some(path) => folders.own.join(path),
            None => [folders.below.join(format!("{name}.rs")), below.join("mod.rs")]
                .into_iter()
                .find(|file| file.is_file())
                .with_context(|| format!("no file of the module {}", child.join("::")))?,
        };
        self.read_file(&file, &below, child)
    }

    fn resolve(&self, at: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let mut here = at.to_vec();
        let mut rest = path.iter().peekable();
        match rest.peek()?.as_str() {
            "crate" => {
                here.clear();
                rest.next();
            }
            "self" => {
                rest.next();
            }
            "super" => {
                while rest.next_if(|name| *name == "super").is_some() {
                    here.pop()?;
                }
            }
            first if self.all.get(&here)?.children.contains(first) => {}
            _ => return None,
        }
        while let Some(name) = rest.next() {
            let module = self.all.get(&here)?;
            if module.children.contains(name) {
                here.push(name.clone());
            } else if let Some(import) = module.imports.get(name).filter(|_| depth > 0) {
                // The name is a re-export, which is followed.
                let onward: Names = import.iter().cloned().chain(rest.cloned()).collect();
                return self.resolve(&here, &onward, depth - 1).or(Some(here));
            } else {
                break;
            }
        }
        Some(here)
    }

    fn edges(&self) -> BTreeMap<(ModulePath, String, String), ModulePath> {
        /// Exceeds every chain of re-exports.
        const DEPTH: usize = 8;
        let mut edges = BTreeMap::new();
        for (at, module) in &self.all {
            for path in &module.paths {
                let Some(to) = self.resolve(at, path, DEPTH) else { continue };
                let common = at.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (at.get(common), to.get(common)) {
                    let key = (at[..common].to_vec(), from.clone(), to.clone());
                    edges.entry(key).or_insert_with(|| at.clone());
                }
            }
        }
        edges
    }

    pub(crate) fn size(&self) -> (usize, usize) {
        (self.all.len() - 1, self.edges().len())
    }

    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let edges = self.edges();
        let parents: BTreeSet<&ModulePath> = edges.keys().map(|(parent, ..)| parent).collect();
        let mut cycles = Vec::new();
        for parent in parents {
            let of_parent = || edges.iter().filter(|((of, ..), _)| of == parent);
            let graph: DiGraphMap<&str, ()> =
                of_parent().map(|((_, from, to), _)| (from.as_str(), to.as_str())).collect();
            for component in tarjan_scc(&graph).into_iter().filter(|component| component.len() > 1) {
                let is_inside = |name: &String| component.contains(&name.as_str());
                let inside = of_parent().filter(|((_, from, to), _)| is_inside(from) && is_inside(to));
                let edges =
                    inside.map(|((_, from, to), at)| format!("{from} -> {to} (in {})", at.join("::")));
                let mut children: Vec<String> = component.iter().map(|&name| name.to_owned()).collect();
                children.sort();
                cycles.push(Cycle { parent: parent.clone(), children, edges: edges.collect() });
            }
        }
        cycles
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(is_test)
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(MetaNameValue {
            path,
            value: Expr::Lit(ExprLit { lit: Lit::Str(text), .. }),
            ..
        }) if path.is_ident("path") => Some(text.value()),
        _ => None,
    })
}

struct Visitor(Module);

impl Visitor {
    fn add_use(&mut self, tree: &UseTree, mut path: Names) {
        let mut import = |name: String, path: Names| {
            self.0.imports.insert(name, path.clone());
            self.0.paths.insert(path);
        };
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.add_use(&part.tree, path);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(tree, path.clone())),
            UseTree::Name(name) if name.ident == "self" => {
                import(path.last().cloned().unwrap_or_default(), path);
            }
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                import(name.ident.to_string(), path);
            }
            UseTree::Rename(rename) => {
                path.push(rename.ident.to_string());
                import(rename.rename.to_string(), path);
            }
            UseTree::Glob(_) => {
                self.0.paths.insert(path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add_use(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// Finds paths in macro tokens, which are not parsed, by their first word.
    fn visit_macro(&mut self, found: &'ast Macro) {
        let text = found.tokens.to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        for (start, _) in words.iter().enumerate().filter(|(_, word)| matches!(**word, "crate" | "super")) {
            let path = words[start..].chunks(2).take_while(|pair| pair.len() == 1 || pair[1] == "::");
            self.0.paths.insert(path.map(|pair| pair[0].to_owned()).collect());
        }
        visit::visit_macro(self, found);
    }
}

#[cfg(test)]
mod tests;
