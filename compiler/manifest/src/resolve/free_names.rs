use cubinder_expr::{Syntax, SyntaxKind};

/// Omits `bound` and variables of comprehensions. The parser bounds the depth.
pub(super) fn free_names<'s>(syntax: &'s Syntax, bound: &mut Vec<&'s str>, visit: &mut dyn FnMut(&str)) {
    match &syntax.kind {
        SyntaxKind::Int(_) | SyntaxKind::Float(_) | SyntaxKind::Bool(_) | SyntaxKind::Str(_) => {}
        SyntaxKind::Name(name) => {
            if !bound.contains(&name.as_str()) {
                visit(name);
            }
        }
        SyntaxKind::Array(items) => items.iter().for_each(|item| free_names(item, bound, visit)),
        SyntaxKind::Unary(_, operand) | SyntaxKind::Field { object: operand, .. } => {
            free_names(operand, bound, visit);
        }
        SyntaxKind::Binary(_, left, right) | SyntaxKind::Index { array: left, index: right } => {
            free_names(left, bound, visit);
            free_names(right, bound, visit);
        }
        SyntaxKind::Conditional { condition, then, otherwise } => {
            [condition, then, otherwise].into_iter().for_each(|part| free_names(part, bound, visit));
        }
        // Functions have their own namespace.
        SyntaxKind::Call { function, args, .. } => {
            visit(function);
            args.iter().for_each(|arg| free_names(arg, bound, visit));
        }
        SyntaxKind::Comprehension { body, variable, over, condition, .. } => {
            free_names(over, bound, visit);
            bound.push(variable);
            free_names(body, bound, visit);
            condition.iter().for_each(|condition| free_names(condition, bound, visit));
            bound.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use cubinder_expr::parse;

    use super::*;

    fn names(text: &str, params: &[&'static str]) -> Vec<String> {
        let mut names = Vec::new();
        free_names(&parse(text).unwrap(), &mut params.to_vec(), &mut |name| names.push(name.to_owned()));
        names
    }

    #[test]
    fn variables_and_parameters_are_no_uses() {
        assert_eq!(names("[x + n for x in x.shape if x > k]", &[]), ["x", "n", "k"]);
        assert_eq!(names("f(x) + y[i] - (a if b else 'c')", &["i", "y"]), ["f", "x", "b", "a"]);
        assert_eq!(names("[1 for i in range(3)] == [i]", &[]), ["range", "i"]);
    }
}
