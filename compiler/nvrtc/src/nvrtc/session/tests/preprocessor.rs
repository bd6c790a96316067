//! A replacement for NVRTC that prints its preprocessed text in comments of a PTX kernel. Independent of the
//! include scan; evaluates conditions and macros, and reads options like NVRTC 13.0.88.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nvrtc_sys::{CompileError, Output, Program};

use crate::nvrtc::workers::WorkerOutput;

thread_local! {
    /// File to write during the compile: whether before the first read, path, bytes.
    pub(super) static WRITTEN_MEANWHILE: RefCell<Option<(bool, PathBuf, Vec<u8>)>> = const { RefCell::new(None) };
}

pub(super) fn compile(program: &Program) -> Result<WorkerOutput, CompileError> {
    let write = |is_before: bool| {
        let due = WRITTEN_MEANWHILE.take_if(|(before, ..)| *before == is_before);
        due.into_iter().for_each(|(_, path, bytes)| drop(std::fs::write(path, bytes)));
    };
    write(true);
    let result = preprocess(program);
    write(false);
    let text = result.map_err(|why| CompileError::Rejected(format!("k.cu(1): error: {why}\n")))?;
    let comments: String = text.lines().map(|line| format!("// {line}\n")).collect();
    let ptx = format!(
        ".version 9.0\n.target sm_80\n.address_size 64\n{comments}.visible .entry k()\n{{\nret;\n}}\n"
    );
    let output = Output {
        log: String::new(),
        lowered_names: vec!["k".to_owned()],
        cubin: Vec::new(),
        ptx: ptx.into_bytes(),
    };
    Ok(WorkerOutput { output, printed: None })
}

trait TakeIf<T> {
    fn take_if(&'static self, wanted: impl FnOnce(&T) -> bool) -> Option<T>;
}

impl<T> TakeIf<T> for std::thread::LocalKey<RefCell<Option<T>>> {
    fn take_if(&'static self, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.with_borrow_mut(|due| due.take_if(|due| wanted(due)))
    }
}

type Macro = (Option<Vec<String>>, String);

#[derive(Default)]
struct State {
    folders: Vec<PathBuf>,
    macros: HashMap<String, Macro>,
    out: String,
    depth: usize,
}

fn preprocess(program: &Program) -> Result<String, String> {
    let mut state = State::default();
    let mut before = Vec::new();
    let options = program.options.iter().map(|option| option.to_str().unwrap());
    let mut options = options.map(str::trim_start);
    while let Some(option) = options.next() {
        let (name, value) = match (option.strip_prefix("-D"), option.split_once('=')) {
            (Some(value), _) if !value.is_empty() => ("-D", value.to_owned()),
            (_, Some((name, value))) => (name, value.to_owned()),
            _ if ["-D", "-include", "--pre-include", "-Xptxas", "--ptxas-options"].contains(&option) => {
                (option, options.next().unwrap_or_default().to_owned())
            }
            _ => (option, String::new()),
        };
        match name {
            "-D" | "--define-macro" => {
                let (name, body) = value.split_once('=').unwrap_or((&value, "1"));
                state.define(&format!("{name} {body}"));
            }
            "--include-path" => state.folders.push(value.into()),
            "-include" | "--pre-include" => before.push(value),
            "-Xptxas" | "--ptxas-options" => {
                let file = value.strip_prefix("--options-file=").or_else(|| value.strip_prefix("-optf="));
                let text = file.map(|file| std::fs::read(file).unwrap_or_default());
                state.out += &format!("ptxas {value} {text:?}\n");
            }
            _ => state.out += &format!("{option}\n"),
        }
    }
    for name in before {
        state.include(&name, true, None)?;
    }
    state.text(program.source.as_bytes(), None)?;
    Ok(state.out)
}

impl State {
    fn find(&self, name: &str, is_quoted: bool, beside: Option<&Path>) -> Option<PathBuf> {
        let name = OsStr::from_bytes(&latin(name)).to_owned();
        let beside = beside.filter(|_| is_quoted);
        let folders = beside.into_iter().chain(self.folders.iter().map(PathBuf::as_path));
        folders.map(|folder| folder.join(&name)).find(|path| path.is_file())
    }

    fn include(&mut self, name: &str, is_quoted: bool, beside: Option<&Path>) -> Result<(), String> {
        let path = self.find(name, is_quoted, beside).ok_or_else(|| format!("cannot open `{name}`"))?;
        let bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
        self.depth += 1;
        if self.depth > 30 {
            return Err("too many files".to_owned());
        }
        self.text(&bytes, path.parent())?;
        self.depth -= 1;
        Ok(())
    }

    fn text(&mut self, bytes: &[u8], beside: Option<&Path>) -> Result<(), String> {
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let text = without_comments(&text.replace("\\\r\n", "").replace("\\\n", ""));
        // Per `#if`: whether its lines are active, and its `#else`.
        let mut conditions: Vec<(bool, bool)> = Vec::new();
        for line in text.lines() {
            let counts = conditions.iter().all(|(counts, _)| *counts);
            let trimmed = line.trim();
            let Some(directive) = trimmed.strip_prefix('#').or_else(|| trimmed.strip_prefix("%:")) else {
                if counts && !trimmed.is_empty() {
                    let expanded = self.expand(trimmed, beside);
                    self.out += &format!("{expanded}\n");
                }
                continue;
            };
            let directive = directive.trim_start();
            let length = directive.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (word, rest) = directive.split_at(length.unwrap_or(directive.len()));
            match word {
                "if" => {
                    let holds = counts && self.expand(rest, beside).trim() != "0";
                    conditions.push((holds, counts && !holds));
                }
                "ifdef" => {
                    let holds = counts && self.macros.contains_key(rest.trim());
                    conditions.push((holds, counts && !holds));
                }
                "else" => {
                    if let Some(last) = conditions.last_mut() {
                        *last = (last.1, false);
                    }
                }
                "endif" => drop(conditions.pop()),
                "define" if counts => self.define(rest.trim()),
                "include" if counts => {
                    let name = self.expand(rest, beside);
                    let (name, is_quoted) = named(&name).ok_or("no name")?;
                    self.include(&name, is_quoted, beside)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn define(&mut self, text: &str) {
        let end = text.find([' ', '(']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let (params, body) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((params, body)) => {
                (Some(params.split(',').map(|param| param.trim().to_owned()).collect()), body)
            }
            None => (None, rest),
        };
        self.macros.insert(name.to_owned(), (params, body.trim().to_owned()));
    }

    fn expand(&self, text: &str, beside: Option<&Path>) -> String {
        let mut text = text.to_owned();
        for _ in 0..8 {
            match self.replaced(&text, beside) {
                Some(next) => text = next,
                None => break,
            }
        }
        text
    }

    fn replaced(&self, text: &str, beside: Option<&Path>) -> Option<String> {
        for (start, end) in words(text) {
            let (before, word, after) = (&text[..start], &text[start..end], &text[end..]);
            let arguments = after.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
            if word == "__has_include" {
                let (argument, after) = arguments?;
                let (name, is_quoted) = named(&self.expand(argument, beside))?;
                let found = u8::from(self.find(&name, is_quoted, beside).is_some());
                return Some(format!("{before}{found}{after}"));
            }
            match self.macros.get(word) {
                None => {}
                Some((None, body)) => return Some(format!("{before}{body}{after}")),
                Some((Some(params), body)) => {
                    let Some((arguments, after)) = arguments else { continue };
                    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
                    let mut made = String::new();
                    let mut last = 0;
                    for (start, end) in words(body) {
                        made += &body[last..start];
                        let param = params.iter().position(|param| param == &body[start..end]);
                        let argument = param.and_then(|index| arguments.get(index));
                        made += argument.unwrap_or(&&body[start..end]);
                        last = end;
                    }
                    made += &body[last..];
                    let parts: Vec<&str> = made.split("##").map(str::trim).collect();
                    return Some(format!("{before}{}{after}", parts.concat()));
                }
            }
        }
        None
    }
}

fn words(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut quote = None;
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match quote {
            Some(close) if c == close => quote = None,
            Some(_) => {}
            None => {
                let is_word = c.is_ascii_alphanumeric() || c == '_';
                if is_word {
                    start = start.or(Some(at));
                } else if let Some(start) = start.take() {
                    found.push((start, at));
                }
                quote = (c == '"').then_some('"');
            }
        }
    }
    found
}

fn named(text: &str) -> Option<(String, bool)> {
    let text = text.trim();
    let within = |open: char, close: char| Some(text.strip_prefix(open)?.split_once(close)?.0.to_owned());
    within('"', '"').map(|name| (name, true)).or_else(|| within('<', '>').map(|name| (name, false)))
}

fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        out += &rest[..at];
        rest = &rest[at..];
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            out.push(' ');
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            let end = match rest.starts_with('"') {
                true => rest[1..].find(['"', '\n']).map_or(rest.len(), |end| end + 2),
                false => 1,
            };
            out += &rest[..end];
            end
        };
        rest = &rest[skipped..];
    }
    out + rest
}
