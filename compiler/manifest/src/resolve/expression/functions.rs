//! Checks helper functions in each row's scope.

use std::collections::BTreeSet;

use cubinder_expr as expr;
use cubinder_expr::Function;

use super::{Compiler, mentions};
use crate::resolve::rows::Row;

impl Compiler<'_> {
    pub(super) fn add_functions(&mut self, rows: &[Row]) {
        for decl in &self.declared.manifest.functions {
            match expr::parse(&decl.body.value) {
                Ok(body) => {
                    let params: Vec<String> = decl.params.iter().map(|param| param.value.clone()).collect();
                    self.use_names(&body, &params, true);
                    self.functions.push((decl, Function { params, body }));
                }
                Err(error) => {
                    self.report_error(&decl.body, &error, None);
                    self.broken_functions.insert(&decl.name.value);
                }
            }
        }
        let mut sound = BTreeSet::new();
        for row in rows {
            let first = self.first_alike.get(row.index).copied();
            if !sound.contains(&first) && self.check_functions(row) {
                sound.insert(first);
            }
        }
    }

    fn check_functions(&mut self, row: &Row) -> bool {
        // Guards may call functions.
        let scope = self.guard_scope(row);
        let functions = self.functions.clone();
        let (mut errors, mut too_large) = (Vec::new(), BTreeSet::new());
        // One report per indirect call path is too many.
        let (mut broken, mut callers, mut unchecked) =
            (self.broken_functions.clone(), BTreeSet::new(), BTreeSet::new());
        let mut is_right = true;
        for (decl, function) in &functions {
            let name = decl.name.value.as_str();
            if calls(function, &callers) || calls(function, &unchecked) {
                unchecked.insert(name);
                continue;
            }
            if calls(function, &broken) {
                callers.insert(name);
            }
            for error in expr::check_function(name, function, &scope.scope) {
                is_right = false;
                if error.is_about_size {
                    too_large.insert(name);
                } else if error.function.is_none() {
                    broken.insert(name);
                }
                errors.push((*decl, function, error));
            }
        }
        is_right &= callers.is_empty() && unchecked.is_empty();
        let is_broken = |function: &String| broken.contains(function.as_str());
        errors.retain(|(_, _, error)| !error.function.as_ref().is_some_and(is_broken));
        for (decl, function, error) in &errors {
            // Their callers are too large themselves.
            if !error.is_about_size {
                self.report_error(&decl.body, error, scope.row);
            } else if !calls(function, &too_large) {
                self.report_error(&decl.body, error, None);
            }
        }
        // Keeps functions' errors independent.
        self.broken_functions.extend(broken.into_iter().chain(too_large).chain(callers));
        self.broken_functions.extend(unchecked.iter().copied());
        self.unchecked_functions.extend(unchecked);
        is_right
    }
}

fn calls(function: &Function, names: &BTreeSet<&str>) -> bool {
    mentions(&function.body, &mut function.params.iter().map(String::as_str).collect(), names)
}
