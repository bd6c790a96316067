//! Classifies NVRTC's messages by the wording of 13.0, on which no other module may depend; others are [`Cause::Other`].

/// Cause of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cause {
    /// An included file is in no include folder.
    MissingFile(String),
    /// Undeclared name.
    UndefinedName(String),
    /// A class or namespace lacks this member.
    NoMember {
        /// Qualified class or namespace.
        scope: String,
        /// Member.
        member: String,
    },
    /// The name before `::`, at which the caret is, is undeclared.
    UnknownScope,
    /// Missing `;`.
    ExpectedSemicolon,
    /// Another syntax error.
    Syntax,
    /// Syntax error from which the parser does not recover.
    UnrecoverableSyntax,
    /// Unexpected end of the text.
    EndOfFile,
    /// Function without `__global__` or `__device__`.
    UnmarkedFunction,
    /// The parameters exceed their limit.
    ParameterSpace(Excess),
    /// The static shared memory exceeds its limit.
    SharedMemory(Excess),
    /// A kernel's name denotes several functions.
    Overloaded(String),
    /// A kernel's name cannot be resolved; another message gives the reason.
    NameExpression,
    /// Rejected option, named in the text.
    Option(String),
    /// NVRTC did not return: its process did not start, or crashed.
    NoResult,
    /// Any other cause.
    #[default]
    Other,
}

/// A kernel's excess over a limit, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// Kernel's bytes.
    pub needed: u64,
    /// Limit.
    pub limit: u64,
    /// Kernel's mangled name.
    pub symbol: Option<String>,
}

impl Cause {
    pub(super) fn parse(text: &str) -> Cause {
        let after = |start: &str| text.split_once(start).map(|(_, rest)| rest);
        let quoted = |start: &str| after(start)?.split('"').next().map(str::to_owned);
        if let Some(file) = quoted("cannot open source file \"") {
            Cause::MissingFile(file)
        } else if let Some((scope, member)) = text.split_once("\" has no member \"") {
            let scope = scope.split('"').next_back().unwrap_or_default().to_owned();
            Cause::NoMember { scope, member: member.trim_end_matches('"').to_owned() }
        } else if let Some(name) = quoted("identifier \"").filter(|_| text.contains("\" is undefined")) {
            Cause::UndefinedName(name)
        } else if let Some(name) = quoted("instance of overloaded function \"") {
            Cause::Overloaded(name)
        } else if let Some(excess) =
            after("Formal parameter space overflowed (").and_then(|rest| excess(text, rest))
        {
            Cause::ParameterSpace(excess)
        } else if let Some(excess) = after("uses too much shared data (").and_then(|rest| excess(text, rest))
        {
            Cause::SharedMemory(excess)
        } else if text.starts_with("A function without execution space annotations") {
            Cause::UnmarkedFunction
        } else if text.starts_with("Error in parsing name expression") {
            Cause::NameExpression
        } else if text.starts_with("name followed by \"::\" must be") {
            Cause::UnknownScope
        } else if text == "expected a \";\"" {
            Cause::ExpectedSemicolon
        } else if text.starts_with("expected a")
            || text.starts_with("attribute")
            || text.ends_with(" is not allowed")
        {
            Cause::Syntax
        } else {
            Cause::Other
        }
    }
}

/// Parses `32768 bytes, max 32764)` or `0x13880 bytes, 0xc000 max)`.
fn excess(text: &str, rest: &str) -> Option<Excess> {
    let (needed, rest) = rest.split_once(" bytes")?;
    let (_, rest) = rest.split_once(", ")?;
    let limit = rest.trim_start_matches("max ").split([' ', ')']).next()?;
    let bytes = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    Some(Excess { needed: bytes(needed)?, limit: bytes(limit)?, symbol: symbol(text).map(str::to_owned) })
}

/// Parses `Entry function 'k' uses` or `in function k`.
fn symbol(text: &str) -> Option<&str> {
    let quoted = text.split_once("function '").and_then(|(_, rest)| rest.split('\'').next());
    quoted.or_else(|| text.split_once("in function ").map(|(_, symbol)| symbol.trim()))
}

/// Parses ptxas's `Instruction 'griddepcontrol' requires .target sm_90 or higher`.
pub(super) fn required_arch(line: &str) -> Option<u32> {
    line.split_once("requires .target sm_")?.1.strip_suffix(" or higher")?.parse().ok()
}
