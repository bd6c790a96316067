//! What NVRTC's messages are about.
//!
//! The only reader of the wording, which is that of NVRTC 13.0: a message in other words is [`Cause::Other`].

/// What a message is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cause {
    /// An `#include` names a file that is in no folder.
    MissingFile(String),
    /// A name without a declaration.
    UndefinedName(String),
    /// A class or a namespace without this member.
    NoMember {
        /// The class or namespace, qualified.
        scope: String,
        /// The name.
        member: String,
    },
    /// A `;` is expected.
    ExpectedSemicolon,
    /// Another error of syntax.
    Syntax,
    /// An error of syntax after which the parser does not recover.
    UnrecoverableSyntax,
    /// The text ends too early.
    EndOfFile,
    /// A function that is marked neither `__global__` nor `__device__`.
    UnmarkedFunction,
    /// A kernel has too many bytes of parameters.
    ParameterSpace(Excess),
    /// A kernel has too much static shared memory.
    SharedMemory(Excess),
    /// A kernel's name is that of several functions.
    Overloaded(String),
    /// A kernel's name cannot be resolved; another message says why.
    NameExpression,
    /// An option is rejected, which this text names.
    Option(String),
    /// Anything else.
    #[default]
    Other,
}

/// How far a kernel exceeds a limit, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// What it has.
    pub needed: u64,
    /// What it may have.
    pub limit: u64,
    /// Its mangled name.
    pub symbol: Option<String>,
}

impl Cause {
    /// Parses the text of a message.
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

/// `32768 bytes, max 32764)` or `0x13880 bytes, 0xc000 max)`, from the stages behind the front end.
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

/// The mangled name in such a message: `Entry function 'k' uses`, `in function k`.
fn symbol(text: &str) -> Option<&str> {
    let quoted = text.split_once("function '").and_then(|(_, rest)| rest.split('\'').next());
    quoted.or_else(|| text.split_once("in function ").map(|(_, symbol)| symbol.trim()))
}

/// The architecture that ptxas requires: `Instruction 'griddepcontrol' requires .target sm_90 or higher`.
pub(super) fn required_arch(line: &str) -> Option<u32> {
    line.split_once("requires .target sm_")?.1.strip_suffix(" or higher")?.parse().ok()
}
