use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::array::Number;
use super::compare::Tolerance;
use super::npy::{self, StoredTensor};
use crate::query::Query;
use crate::reported_path::as_bytes;
use crate::source;

/// Node with its data and expectations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Description.
    pub name: String,
    /// Shapes, attributes, types, formats, alignments.
    pub query: Query,
    /// Input data; random by default.
    pub inputs: Vec<(String, InputData)>,
    /// Expected values of outputs.
    pub outputs: Vec<(String, DataFile)>,
    /// Function that computes expected outputs.
    pub reference: Option<FunctionRef>,
    /// Tolerances; by default of the types.
    pub tolerance: Vec<(String, Tolerance)>,
    /// Seed of random numbers.
    pub seed: u64,
    /// Variant to run; `None`: all that may.
    pub variant: Option<i32>,
}

/// Data of an input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum InputData {
    /// Contents of a file.
    File(DataFile),
    /// These numbers, in row-major order.
    Numbers(Vec<Number>),
    /// Random numbers between these bounds.
    Range(f64, f64),
    /// Range per position of the last dimension.
    Columns(Vec<(f64, f64)>),
}

/// Tensor in a NumPy file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// `.npy` or `.npz` file.
    #[serde(with = "as_bytes")]
    pub path: PathBuf,
    /// Tensor of a `.npz` file.
    pub member: Option<String>,
}

/// Function in a Python file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionRef {
    /// File.
    #[serde(with = "as_bytes")]
    pub path: PathBuf,
    /// Function name.
    pub function: String,
}

impl DataFile {
    /// Parses `x.npy`, `data.npz` (member `tensor`) or `data.npz:x`, relative to `folder`.
    pub fn parse(text: &str, tensor: &str, folder: &Path) -> Result<DataFile, String> {
        if text.ends_with(".npy") {
            return Ok(DataFile { path: folder.join(text), member: None });
        }
        let (path, member) = match text.rsplit_once(".npz:") {
            Some((path, member)) if !member.is_empty() => (format!("{path}.npz"), member),
            _ => (text.to_owned(), tensor),
        };
        if !path.ends_with(".npz") {
            return Err("expected a NumPy file: `x.npy`, `data.npz` or `data.npz:x`".to_owned());
        }
        Ok(DataFile { path: folder.join(path), member: Some(member.to_owned()) })
    }

    fn open<T>(&self, work: impl FnOnce(StoredTensor<'_>) -> Result<T, String>) -> Result<T, String> {
        let cannot = |why: String| format!("cannot read `{}`: {why}", self.path.display());
        let file = source::open_file(&self.path).map_err(|error| cannot(error.to_string()))?;
        let file = BufReader::new(file);
        let opened = match &self.member {
            None => npy::read(file).and_then(work),
            Some(member) => npy::Archive::open(file).and_then(|mut archive| work(archive.tensor(member)?)),
        };
        opened.map_err(|why| format!("`{self}`: {why}"))
    }

    /// Returns the tensor's shape.
    pub fn shape(&self) -> Result<Vec<i64>, String> {
        self.open(|stored| Ok(stored.shape().to_vec()))
    }

    /// Reads the tensor; fails for another type or more than `most` elements.
    pub fn array(&self, ty: cubinder_expr::DataType, most: usize) -> Result<super::Array, String> {
        self.open(|stored| stored.within(most)?.array(ty))
    }
}

impl FunctionRef {
    /// Parses `scale_reference.py:scale`, relative to `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<FunctionRef, String> {
        match text.rsplit_once(':') {
            Some((path, function)) if path.ends_with(".py") && !function.is_empty() => {
                Ok(FunctionRef { path: folder.join(path), function: function.to_owned() })
            }
            _ => Err("expected a Python file and a function: `reference.py:function`".to_owned()),
        }
    }
}

impl std::fmt::Display for DataFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.member {
            None => write!(f, "{}", self.path.display()),
            Some(member) => write!(f, "{}:{member}", self.path.display()),
        }
    }
}

impl std::fmt::Display for FunctionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_functions_are_named_relative_to_a_folder() {
        let folder = Path::new("tests");
        let file = |text| DataFile::parse(text, "x", folder).map(|file| file.to_string());
        assert_eq!(file("a.npy"), Ok("tests/a.npy".to_owned()));
        assert_eq!(file("a.npz"), Ok("tests/a.npz:x".to_owned()));
        assert_eq!(file("a.npz:other"), Ok("tests/a.npz:other".to_owned()));
        for text in ["", "a.bin", "a.npz:", "a.npy:x"] {
            assert!(file(text).is_err(), "{text}");
        }
        let function = |text| FunctionRef::parse(text, folder).map(|function| function.to_string());
        assert_eq!(function("r.py:f"), Ok("tests/r.py:f".to_owned()));
        for text in ["", "r.py", "r.py:", "f", "r:f"] {
            assert!(function(text).is_err(), "{text}");
        }
    }
}
