//! A light reader of Triton's intermediate text (`NAME.ttir`): the kernel's parameters, what they were specialized for, and which of them
//! are written.
//!
//! Read off Triton 3.9.0: `tt.func public @NAME(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("x"(#loc)), ...)`, then lines
//! `%r = op %a, %b : types`. Triton itself passes what stands there and two pointers more.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::types::parts;

/// The function of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub arguments: Vec<Argument>,
    /// The Python file that defines it and the line there, from 1, where the text says so.
    pub place: Option<(String, u32)>,
}

/// A parameter of a kernel of Triton's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What the author calls it.
    pub name: String,
    /// Its type: `f32`, `i64`; of a pointer what it points to.
    pub ty: String,
    /// Whether it is a pointer.
    pub is_pointer: bool,
    /// Of a pointer: whether something is written through it. It is said to be where that cannot be told.
    pub is_written: bool,
    /// What the value is a multiple of, for which the code was made.
    pub divisibility: Option<u32>,
    /// What else the code was made for that is not understood here.
    pub unknown: Vec<String>,
}

/// Reads the kernel of a text.
///
/// # Errors
/// Why it cannot be read.
pub fn function(text: &str) -> Result<Function, String> {
    let (_, rest) = text.split_once("tt.func public @").ok_or("it has no `tt.func public`")?;
    let (name, rest) = rest.split_once('(').ok_or("the kernel has no parameters")?;
    let name = name.trim().trim_matches('"').to_owned();
    let end = closing(rest).ok_or("the parameters do not end")?;
    let (list, body) = rest.split_at(end);
    let locations = locations(text);
    let mut arguments = Vec::new();
    let mut place = None;
    let mut values = Vec::new();
    for part in arguments_of(list) {
        let (value, argument) =
            argument(part, &locations).ok_or_else(|| format!("a parameter cannot be read: `{part}`"))?;
        if place.is_none() {
            place = part.rsplit_once(" loc(").and_then(|(_, location)| named(location, &locations).1);
        }
        values.push(value);
        arguments.push(argument);
    }
    let pointers: Vec<bool> = arguments.iter().map(|argument: &Argument| argument.is_pointer).collect();
    let written = written(body, &values, &pointers);
    for (at, argument) in arguments.iter_mut().enumerate() {
        argument.is_written =
            argument.is_pointer && written.as_ref().is_none_or(|written| written.contains(&at));
    }
    Ok(Function { name, arguments, place })
}

/// The parameters of a list, each once; a text between quotes is one word.
fn arguments_of(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0_usize, false, 0);
    let mut found = Vec::new();
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b')' | b'>' | b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(list[start..].trim());
    found.retain(|part| !part.is_empty());
    found
}

/// Where the parenthesis that stands before a text is closed.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0_usize, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(at),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What lines such as `#loc12 = loc("x_ptr"(#loc))` say of a location, without `loc(`.
fn locations(text: &str) -> BTreeMap<&str, &str> {
    let line = |line| str::split_once(line, " = loc(").filter(|(place, _)| place.starts_with('#'));
    text.lines().filter_map(line).collect()
}

/// The name of a location, and the file and the line that it ends at. Triton puts the name of a local variable around that of the argument which
/// it was assigned from: the innermost name is the argument's.
fn named<'t>(
    location: &'t str,
    locations: &BTreeMap<&'t str, &'t str>,
) -> (Option<&'t str>, Option<(String, u32)>) {
    const DEEPEST: usize = 64;
    let (mut name, mut rest) = (None, location);
    for _ in 0..DEEPEST {
        if rest.starts_with('#') {
            let end = rest.find(')').unwrap_or(rest.len());
            match locations.get(&rest[..end]) {
                Some(inner) => rest = inner,
                None => break,
            }
        }
        let Some((text, behind)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
            break;
        };
        if let Some(place) = behind.strip_prefix(':') {
            let line = place.split(':').next().unwrap_or_default().parse().ok();
            return (name, line.map(|line| (text.to_owned(), line)));
        }
        name = Some(text);
        match behind.strip_prefix('(') {
            Some(inner) => rest = inner,
            None => break,
        }
    }
    (name, None)
}

fn argument<'t>(part: &'t str, locations: &BTreeMap<&'t str, &'t str>) -> Option<(&'t str, Argument)> {
    let (value, rest) = part.split_once(':')?;
    let value = value.trim();
    let (rest, location) = match rest.rsplit_once(" loc(") {
        Some((rest, location)) => (rest, Some(location)),
        None => (rest, None),
    };
    let (ty, attributes) = match rest.split_once('{') {
        Some((ty, attributes)) => (ty.trim(), attributes.rsplit_once('}')?.0),
        None => (rest.trim(), ""),
    };
    let name = location.and_then(|location| named(location, locations).0);
    let name = name.unwrap_or_else(|| value.trim_start_matches('%')).to_owned();
    let pointee = ty.strip_prefix("!tt.ptr<").and_then(|ty| ty.strip_suffix('>'));
    let mut argument = Argument {
        name,
        ty: pointee.map_or(ty, |pointee| pointee.split(',').next().unwrap_or_default()).trim().to_owned(),
        is_pointer: pointee.is_some(),
        is_written: false,
        divisibility: None,
        unknown: Vec::new(),
    };
    for attribute in parts(attributes).into_iter().filter(|attribute| !attribute.is_empty()) {
        let (key, number) = attribute.split_once('=').unwrap_or((attribute, ""));
        let number = number.split(':').next().unwrap_or_default().trim().parse::<u32>().ok();
        match (key.trim(), number) {
            ("tt.divisibility", Some(number)) if number > 0 => argument.divisibility = Some(number),
            (key, _) => argument.unknown.push(key.to_owned()),
        }
    }
    value.starts_with('%').then_some((value, argument))
}

/// Operations that write through their first operand. Others that write have other names, and are not understood.
const STORES: [&str; 3] = ["tt.store", "tt.atomic_rmw", "tt.atomic_cas"];

/// The dialects whose operations are understood as far as is needed here.
const DIALECTS: [&str; 6] = ["tt", "arith", "math", "scf", "cf", "ub"];

/// Words of operations that may write through any of their operands, or of which it is not known what they give.
const DARK: [&str; 5] = ["tt.call", "descriptor", "scf.while", "async", "elementwise"];

/// The parameters through which something is written, by their places; nothing where that cannot be told.
///
/// Which values come from which is followed backwards from what is written through: what an operation gives may come from each of its operands.
/// Where that leads to memory, to a value that nothing defines, or to no pointer at all, nothing is known of any parameter.
fn written(body: &str, values: &[&str], pointers: &[bool]) -> Option<BTreeSet<usize>> {
    let flow = Flow::read(body, values)?;
    let of_pointers = flow.from(pointers);
    if flow.stored.iter().any(|value| !of_pointers[*value]) {
        return None;
    }
    let mut found = BTreeSet::new();
    let mut seen = vec![false; flow.sources.len()];
    let mut open = flow.stored;
    while let Some(value) = open.pop() {
        if std::mem::replace(&mut seen[value], true) {
            continue;
        }
        match &flow.sources[value] {
            Sources::Memory | Sources::Unknown => return None,
            // A number moves a pointer, and is none.
            Sources::Parameter => found.extend(pointers[value].then_some(value)),
            Sources::Values(sources) => open.extend(sources),
        }
    }
    Some(found)
}

/// What a value comes from.
#[derive(Debug, Clone, PartialEq)]
enum Sources {
    /// Nothing in the text gives it.
    Unknown,
    /// It is a parameter.
    Parameter,
    /// It was loaded: a pointer that lay in memory may point anywhere.
    Memory,
    /// These values.
    Values(Vec<usize>),
}

/// Which values come from which, and what is written through.
struct Flow<'t> {
    /// The numbers of values: those of the parameters are their places.
    numbers: HashMap<&'t str, usize>,
    sources: Vec<Sources>,
    stored: Vec<usize>,
}

impl<'t> Flow<'t> {
    fn read(body: &'t str, values: &[&'t str]) -> Option<Flow<'t>> {
        let mut flow = Flow { numbers: HashMap::new(), sources: Vec::new(), stored: Vec::new() };
        for value in values {
            let number = flow.number(value);
            *flow.sources.get_mut(number)? = Sources::Parameter;
        }
        // Two parameters of one name are none.
        if flow.sources.len() != values.len() {
            return None;
        }
        let mut regions: Vec<Region<'_>> = Vec::new();
        for line in body.lines() {
            let code = line.split(" loc(").next().unwrap_or_default().trim();
            let (results, operation) = match code.split_once(" = ") {
                Some((results, operation)) if results.starts_with('%') => (names(results), operation),
                _ => (Vec::new(), code),
            };
            let word = operation.split([' ', '(']).next().unwrap_or_default().trim_matches('"');
            flow.operation(word, &results, operation, &regions)?;
            if code.starts_with('}') {
                let closed = regions.pop();
                // `} else {` goes on with what the branch before gives.
                if let Some(region) = closed.filter(|_| code.ends_with('{')) {
                    regions.push(region);
                }
            } else if code.ends_with('{') {
                let carried = if word == "scf.for" { carried(operation) } else { Vec::new() };
                let carried = carried.into_iter().map(|(name, _)| name).collect();
                regions.push(Region { carried, results });
            }
        }
        Some(flow)
    }

    fn operation(
        &mut self,
        word: &str,
        results: &[&'t str],
        operation: &'t str,
        regions: &[Region<'t>],
    ) -> Option<()> {
        let dialect = word.split_once('.').map(|(dialect, _)| dialect);
        let is_known = dialect.is_none_or(|dialect| DIALECTS.contains(&dialect));
        if !is_known || DARK.iter().any(|dark| word.contains(dark)) {
            return None;
        }
        let operands = names(operation);
        if STORES.contains(&word) {
            let pointer = self.number(operands.first()?);
            self.stored.push(pointer);
        }
        match word {
            "scf.yield" => {
                let Some(region) = regions.last() else { return Some(()) };
                for (at, operand) in operands.iter().enumerate() {
                    let carried = region.carried.get(at).into_iter().chain(&region.results);
                    carried.for_each(|name| self.flow(operand, name));
                }
            }
            "tt.load" => results.iter().for_each(|name| self.set(name, Sources::Memory)),
            // What it gives, the lines in it say.
            "scf.if" => results.iter().for_each(|name| self.define(name)),
            "scf.for" => {
                let carried = carried(operation);
                for (name, start) in &carried {
                    self.flow(start, name);
                    results.iter().for_each(|result| self.flow(start, result));
                }
                if let Some((counter, bounds)) = operands.split_first() {
                    bounds.iter().take(3).for_each(|bound| self.flow(bound, counter));
                }
            }
            _ => {
                // A pointer and how far from it: where it points to, the pointer says.
                let sources = if word == "tt.addptr" { 1 } else { operands.len() };
                for result in results {
                    self.define(result);
                    operands.iter().take(sources).for_each(|operand| self.flow(operand, result));
                }
            }
        }
        Some(())
    }

    /// Which values may come from the parameters for which `these` holds.
    fn from(&self, these: &[bool]) -> Vec<bool> {
        let mut results: Vec<Vec<usize>> = vec![Vec::new(); self.sources.len()];
        for (value, sources) in self.sources.iter().enumerate() {
            if let Sources::Values(sources) = sources {
                sources.iter().for_each(|source| results[*source].push(value));
            }
        }
        let mut reached = vec![false; self.sources.len()];
        let mut open: Vec<usize> = these.iter().enumerate().filter_map(|(at, is)| is.then_some(at)).collect();
        while let Some(value) = open.pop() {
            if !std::mem::replace(&mut reached[value], true) {
                open.extend(&results[value]);
            }
        }
        reached
    }

    fn number(&mut self, name: &'t str) -> usize {
        let next = self.sources.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.sources.push(Sources::Unknown);
        }
        number
    }

    fn set(&mut self, name: &'t str, sources: Sources) {
        let number = self.number(name);
        self.sources[number] = sources;
    }

    /// Something gives this value.
    fn define(&mut self, name: &'t str) {
        let number = self.number(name);
        if self.sources[number] == Sources::Unknown {
            self.sources[number] = Sources::Values(Vec::new());
        }
    }

    /// What `from` comes from, `to` may come from.
    fn flow(&mut self, from: &'t str, to: &'t str) {
        self.define(to);
        let (from, to) = (self.number(from), self.number(to));
        if let Sources::Values(sources) = &mut self.sources[to] {
            sources.push(from);
        }
    }
}

/// The lines between braces.
struct Region<'t> {
    /// The values that a loop carries round.
    carried: Vec<&'t str>,
    /// The values that it gives.
    results: Vec<&'t str>,
}

/// The values that a loop carries round, each with what it begins with: `iter_args(%p = %2, %q = %1)`.
fn carried(operation: &str) -> Vec<(&str, &str)> {
    let list = operation.split_once("iter_args(").and_then(|(_, rest)| rest.split_once(')'));
    let pairs = list.into_iter().flat_map(|(list, _)| list.split(','));
    let name = |text| names(text).first().copied();
    pairs.filter_map(|pair| pair.split_once('=')).filter_map(|(a, b)| Some((name(a)?, name(b)?))).collect()
}

/// The values of a line: `%x`, `%r_3`; of `%r:2` and `%r#1` the name before.
fn names(line: &str) -> Vec<&str> {
    let starts = line.match_indices('%').map(|(at, _)| at);
    let name = |at: usize| {
        let rest = &line[at + 1..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))
            .unwrap_or(rest.len());
        &line[at..at + 1 + end]
    };
    starts.map(name).filter(|name| name.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#loc = loc(\"k.py\":7:1)\n#loc12 = loc(\"y_ptr\"(#loc))\nmodule {\n  \
        tt.func public @add(%x_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc(\"x_ptr\"(#loc)), %arg1: !tt.ptr<f32, 1> loc(#loc12), \
        %n: i64 {tt.divisibility = 8 : i32, tt.odd = 1 : i32} loc(\"n\"(#loc)), %alpha: f32) attributes {noinline = false} {\n    \
        %0 = tt.splat %x_ptr : !tt.ptr<f16> -> tensor<4x!tt.ptr<f16>> loc(#loc)\n    \
        %1 = tt.load %0 : tensor<4x!tt.ptr<f16>> loc(#loc)\n    \
        %2 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>> loc(#loc)\n    \
        %3:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %2, %q = %1) -> (tensor<4xf32>) {\n    \
        tt.store %p, %1 : tensor<4x!tt.ptr<f32>> loc(#loc)\n    }\n    tt.return loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n";

    #[test]
    fn parameters_are_read() {
        let function = function(TEXT).unwrap();
        assert_eq!(function.name, "add");
        let shown: Vec<String> = function
            .arguments
            .iter()
            .map(|it| {
                format!(
                    "{} {}{} {} {:?} {:?}",
                    it.name,
                    it.ty,
                    if it.is_pointer { "*" } else { "" },
                    it.is_written,
                    it.divisibility,
                    it.unknown
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "x_ptr f16* false Some(16) []",
                "y_ptr f32* true None []",
                "n i64 false Some(8) [\"tt.odd\"]",
                "alpha f32 false None []",
            ]
        );
    }

    #[test]
    fn what_cannot_be_told_is_written() {
        let called = TEXT.replace("tt.return", "tt.call @f(%0)\n tt.return");
        assert!(function(&called).unwrap().arguments[0].is_written);
        let from_memory = TEXT.replace("tt.store %p", "tt.store %1");
        assert!(function(&from_memory).unwrap().arguments[..2].iter().all(|it| it.is_written));
        let scattered = TEXT.replace("tt.store %p", "%4 = tt.addptr %p, %1 : tensor<4xi32>\n tt.store %4");
        let arguments = function(&scattered).unwrap().arguments;
        assert_eq!((arguments[0].is_written, arguments[1].is_written), (false, true));
        // Pointers that a loop exchanges.
        let exchanged = TEXT
            .replace("%q = %1)", "%q = %0)")
            .replace("loc(#loc)\n    }\n", "loc(#loc)\n    scf.yield %q, %p : tensor<4xf32>\n    }\n");
        assert_ne!(exchanged, TEXT);
        assert!(function(&exchanged).unwrap().arguments[..2].iter().all(|it| it.is_written));
    }

    /// Whether each parameter of a kernel with these lines is written through.
    fn is_written(lines: &str) -> Vec<bool> {
        let text = format!(
            "module {{\n tt.func public @k(%x: !tt.ptr<f32> loc(\"x\"), %y: !tt.ptr<f32> loc(\"y\"), %n: i32 loc(\"n\")) \
             attributes {{noinline = false}} {{\n{lines}\n tt.return\n }}\n}}\n"
        );
        function(&text).unwrap().arguments.iter().map(|argument| argument.is_written).collect()
    }

    #[test]
    fn pointers_are_followed_through_branches_and_loops() {
        let branch = "%c = arith.cmpi sgt, %n, %n : i32\n %1 = scf.if %c -> (!tt.ptr<f32>) {\n \
            %5 = tt.addptr %y, %n : !tt.ptr<f32>, i32\n scf.yield %5 : !tt.ptr<f32>\n } else {\n \
            scf.yield %y : !tt.ptr<f32>\n }\n tt.store %1, %n : !tt.ptr<f32>";
        assert_eq!(is_written(branch), [false, true, false]);
        let other = branch.replace("else {\n scf.yield %y", "else {\n scf.yield %x");
        assert_eq!(is_written(&other), [true, true, false]);
        let turn = "%0 = scf.for %i = %n to %n step %n iter_args(%p = %x) -> (!tt.ptr<f32>) : i32 {\n \
            scf.yield %y : !tt.ptr<f32>\n }\n tt.store %0, %n : !tt.ptr<f32>";
        assert_eq!(is_written(turn), [true, true, false]);
        let chosen = "%0 = arith.select %c, %x, %y : !tt.ptr<f32>\n tt.store %0, %n : !tt.ptr<f32>";
        assert_eq!(is_written(&format!("%c = arith.cmpi sgt, %n, %n : i32\n{chosen}")), [true, true, false]);
        // Where it leads to nothing that is known, or to no pointer at all, everything may be written.
        for lines in [
            chosen,
            "tt.store %n, %n : !tt.ptr<f32>",
            "^bb1(%p: !tt.ptr<f32>):\n tt.store %p, %n : !tt.ptr<f32>",
            "strange.write %x, %n\n tt.store %y, %n : !tt.ptr<f32>",
        ] {
            assert_eq!(is_written(lines), [true, true, false], "{lines}");
        }
    }

    #[test]
    fn the_innermost_name_is_the_parameters() {
        let text = "#loc = loc(\"k.py\":7:1)\n#loc10 = loc(\"y_ptr\"(#loc))\n#loc11 = loc(\"p\"(#loc10))\nmodule {\n \
            tt.func public @k(%p: !tt.ptr<f32> loc(\"p\"(#loc10)), %p_0: !tt.ptr<f32> loc(#loc11), %z: i32 loc(\"z\"), %a: i32) {\n }\n}\n";
        let function = function(text).unwrap();
        let names: Vec<&str> = function.arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["y_ptr", "y_ptr", "z", "a"]);
        assert_eq!(function.place, Some(("k.py".to_owned(), 7)));
    }

    #[test]
    fn long_texts_are_read_in_time() {
        let parameters: Vec<String> =
            (0..200).map(|at| format!("%x{at}: !tt.ptr<f32> loc(\"x{at}\")")).collect();
        let mut text = format!("module {{\n tt.func public @k({}) {{\n", parameters.join(", "));
        let all: Vec<String> = (0..200).map(|at| format!("%x{at}")).collect();
        text.push_str(&format!("%0 = arith.select {} : f32\n", all.join(", ")));
        let mut at = 0;
        while text.len() < 1 << 20 {
            text.push_str(&format!("%{} = arith.select %{at}, %{at} : f32\n", at + 1));
            at += 1;
        }
        text.push_str(&format!("tt.store %{at}, %0 : f32\n}}\n}}\n"));
        let start = std::time::Instant::now();
        let function = function(&text).unwrap();
        assert!(function.arguments.iter().all(|argument| argument.is_written));
        // It is a tenth of that with optimizations.
        assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        for text in [
            "",
            "tt.func public @k",
            "tt.func public @k(",
            "tt.func public @k(x: i32)",
            "tt.func public @k(%x)",
        ] {
            assert!(function(text).is_err(), "{text}");
        }
    }
}
