//! Determines parameters that an entry uses as addresses and writes through. Registers need one definition that leads to one parameter.

use std::collections::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ParamUse {
    /// Global or generic address.
    pub(super) is_address: bool,
    /// Memory at or after it is written.
    pub(super) is_written: bool,
}

#[derive(Debug, Clone, Copy)]
enum Definition<'t> {
    Parameter(usize),
    /// Copy, or the address in another state space.
    Same(&'t str),
    Sum(&'t str, &'t str),
    Other,
}

/// Registers between use and parameter.
const MOST_STEPS: usize = 64;

pub(super) fn uses(body: &str, params: &[&str]) -> Vec<ParamUse> {
    let positions: HashMap<&str, usize> = params.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let statements: Vec<Statement<'_>> = body.split(';').filter_map(Statement::read).collect();
    let mut flow = Flow { definitions: HashMap::new(), uses: vec![ParamUse::default(); params.len()] };
    for (register, definition) in statements.iter().flat_map(|statement| statement.definitions(&positions)) {
        let known = flow.definitions.entry(register);
        known.and_modify(|known| *known = Definition::Other).or_insert(definition);
    }
    for address in statements.iter().filter_map(|one| one.accessed().or_else(|| one.converted())) {
        let param = flow.itself(address).and_then(|param| flow.uses.get_mut(param));
        param.into_iter().for_each(|found| found.is_address = true);
    }
    for address in statements.iter().filter(|one| one.writes()).filter_map(Statement::accessed) {
        let param = flow.base(address).and_then(|param| flow.uses.get_mut(param));
        param.into_iter().for_each(|found| found.is_written = true);
    }
    flow.uses
}

struct Flow<'t> {
    definitions: HashMap<&'t str, Definition<'t>>,
    uses: Vec<ParamUse>,
}

impl<'t> Flow<'t> {
    fn itself(&self, mut register: &'t str) -> Option<usize> {
        for _ in 0..MOST_STEPS {
            match self.definitions.get(register)? {
                Definition::Parameter(param) => return Some(*param),
                Definition::Same(other) => register = other,
                Definition::Sum(..) | Definition::Other => return None,
            }
        }
        None
    }

    /// Returns the base parameter of an address, if only one operand of a sum is one.
    fn base(&self, mut register: &'t str) -> Option<usize> {
        let is_address = |param: &usize| self.uses.get(*param).is_some_and(|found| found.is_address);
        for _ in 0..MOST_STEPS {
            if let Some(param) = self.itself(register) {
                return Some(param).filter(is_address);
            }
            register = match self.definitions.get(register)? {
                Definition::Same(other) => other,
                Definition::Sum(one, other) => match (self.itself(one), self.itself(other)) {
                    (Some(_), Some(_)) => return None,
                    (None, Some(_)) => other,
                    (Some(_), None) => one,
                    // Sums or copies as offsets are ambiguous.
                    (None, None) => match (self.is_sum(one), self.is_sum(other)) {
                        (true, false) => one,
                        (false, true) => other,
                        _ => return None,
                    },
                },
                Definition::Parameter(_) | Definition::Other => return None,
            };
        }
        None
    }

    fn is_sum(&self, register: &'t str) -> bool {
        matches!(self.definitions.get(register), Some(Definition::Sum(..) | Definition::Same(_)))
    }
}

struct Statement<'t> {
    name: &'t str,
    operands: Vec<&'t str>,
}

impl<'t> Statement<'t> {
    fn read(text: &'t str) -> Option<Statement<'t>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        let mut text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '}'));
        // Skips labels, but not `ld.param::entry`, and guards.
        while let Some((label, rest)) = text.split_once(':')
            && label.chars().all(is_name)
            && !rest.starts_with(':')
        {
            text = rest.trim_start();
        }
        if let Some(guarded) = text.strip_prefix('@') {
            text = guarded.trim_start_matches(|c: char| c == '!' || is_name(c)).trim_start();
        }
        let (name, rest) = text.split_once(char::is_whitespace)?;
        let mut depth = 0_i32;
        let operands = rest.split(|c: char| {
            match c {
                '[' | '{' | '(' => depth += 1,
                ']' | '}' | ')' => depth -= 1,
                _ => {}
            }
            c == ',' && depth == 0
        });
        Some(Statement { name, operands: operands.map(str::trim).collect() })
    }

    fn operand(&self, at: usize) -> Option<&'t str> {
        self.operands.get(at).copied()
    }

    fn is(&self, operation: &str) -> bool {
        self.name.split('.').next() == Some(operation)
    }

    fn has(&self, word: &str) -> bool {
        self.name.split(['.', ':']).any(|part| part == word)
    }

    fn is_of_64_bits(&self) -> bool {
        ["u64", "s64", "b64"].iter().any(|ty| self.has(ty))
    }

    fn definitions(&self, params: &HashMap<&str, usize>) -> Vec<(&'t str, Definition<'t>)> {
        let Some(first) = self.operand(0).filter(|_| !self.name.starts_with('.')) else { return Vec::new() };
        let definition = match (self.operand(1), self.operand(2), self.operand(3)) {
            (Some(source), None, None) if self.is("ld") && self.has("param") => {
                let param = in_brackets(source).and_then(|name| params.get(name.trim()));
                param.map(|param| Definition::Parameter(*param))
            }
            (Some(source), None, None) if self.is("mov") || self.is("cvta") => Some(Definition::Same(source)),
            (Some(one), Some(other), None) if self.is("add") => Some(Definition::Sum(one, other)),
            _ => None,
        };
        let definition =
            definition.filter(|_| self.is_of_64_bits() && !first.contains('{')).unwrap_or(Definition::Other);
        // Vectors in braces; two predicates.
        let registers = first.split(['{', '}', ',', '|', '(', ')']).map(str::trim);
        registers.filter(|name| !name.is_empty()).map(|name| (name, definition)).collect()
    }

    fn accessed(&self) -> Option<&'t str> {
        let is_access = ["ld", "st", "atom", "red"].iter().any(|operation| self.is(operation));
        let is_other = ["param", "shared", "local", "const"].iter().any(|space| self.has(space));
        let address = self.operands.iter().find_map(|operand| in_brackets(operand))?;
        let register = address.split(['+', '-']).next().map(str::trim);
        register.filter(|_| is_access && !is_other)
    }

    fn converted(&self) -> Option<&'t str> {
        let is_global = !["shared", "local", "const", "param"].iter().any(|space| self.has(space));
        self.operand(1).filter(|_| self.is("cvta") && is_global)
    }

    fn writes(&self) -> bool {
        ["st", "atom", "red"].iter().any(|operation| self.is(operation))
    }
}

fn in_brackets(operand: &str) -> Option<&str> {
    operand.strip_prefix('[')?.split_once(']').map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests;
