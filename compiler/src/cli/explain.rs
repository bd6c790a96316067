use clap::Args;
use clap::builder::StringValueParser;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::rules;

use super::output::print;
use super::suggestions;

pub(super) const LONG_ABOUT: &str = "\
Explain the rule with the code of a message: its meaning, why it matters, how to fix violations, and examples. Without a \
code, list all rules.";

#[derive(Args)]
pub(super) struct Arguments {
    /// Rule code: C0101, c0101 or 101
    #[arg(value_parser = suggestions::rule_code(StringValueParser::new()), hide_possible_values = true)]
    code: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let Some(code) = &arguments.code else {
        let lines = rules::CATALOGUE.iter().map(|rule| format!("{}  {}\n", rule.code, rule.title()));
        print(&lines.collect::<String>());
        return Ok(true);
    };
    if let Some(rule) = rules::find(code) {
        print(&rule.plain());
        return Ok(true);
    }
    let help = match rules::nearest(code) {
        _ if rules::is_retired(code) => "this rule was removed, and its code is not reused".to_owned(),
        Some(rule) => format!("did you mean `{}`, {}?", rule.code, rule.title()),
        None => "`cubinder explain` lists all rules".to_owned(),
    };
    Err(Diagnostic::error(format!("unknown rule `{code}`")).help(help))?
}
