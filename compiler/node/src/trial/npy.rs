//! NumPy's `.npy` and `.npz` files (`numpy.lib.format`, versions 1.0 to 3.0). Other crates' recursion is unbounded.
//! Memory grows with data, not with stated lengths; [`StoredTensor::within`] limits inflated tensors. Reads `bf16`,
//! `f8` and `i4` (one per byte) from `ml_dtypes` (`|V2`, `|V1`), integers of their size, or wider types (rounded).

use std::io::{Read, Seek, Write};

use cubinder_expr::DataType;

use super::array::{Array, Number, count, decode};

const MAX_RANK: usize = 32;
/// In bytes; NumPy writes a few hundred.
const MAX_HEADER: usize = 4096;

/// Tensor with its header read.
pub struct StoredTensor<'f> {
    format: ElementFormat,
    is_fortran: bool,
    shape: Vec<i64>,
    data: Box<dyn Read + 'f>,
}

#[derive(Debug, Clone, Copy)]
struct ElementFormat {
    kind: Kind,
    /// In bytes.
    size: usize,
    is_big_endian: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Int,
    UInt,
    Bool,
    /// NumPy's descriptor for other packages' types.
    Void,
}

/// Reads a `.npy` header; fails for elements other than numbers and booleans.
pub fn read<'f>(mut from: impl Read + 'f) -> Result<StoredTensor<'f>, String> {
    let mut start = [0; 8];
    from.read_exact(&mut start).map_err(|_| "not a `.npy` file")?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err("not a `.npy` file".to_owned());
    }
    let [.., major, _] = start;
    let length = match major {
        1 => usize::from(u16::from_le_bytes(exactly(&mut from)?)),
        2 | 3 => u32::from_le_bytes(exactly(&mut from)?) as usize,
        major => return Err(format!("unknown format version {major}, expected 1 to 3")),
    };
    if length > MAX_HEADER {
        return Err(format!("its header has {length} bytes, the maximum is {MAX_HEADER}"));
    }
    let mut header = vec![0; length];
    from.read_exact(&mut header).map_err(|error| cut_off(&error))?;
    let Header { descr, fortran_order, shape } =
        Header::parse(str::from_utf8(&header).map_err(|_| "its header is not UTF-8")?)?;
    let format = ElementFormat::parse(&descr)?;
    if count(&shape).and_then(|count| count.checked_mul(format.size)).is_none() {
        return Err(format!("the size of {shape:?} exceeds the address space"));
    }
    Ok(StoredTensor { format, is_fortran: fortran_order, shape, data: Box::new(from) })
}

fn exactly<const N: usize>(from: &mut impl Read) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).map_err(|error| cut_off(&error))?;
    Ok(bytes)
}

fn cut_off(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "it is truncated".to_owned(),
        _ => error.to_string(),
    }
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<i64>,
}

impl Header {
    /// Parses a header: JSON except for quotes, tuples, capitals and trailing commas.
    fn parse(text: &str) -> Result<Header, String> {
        let to_json = [
            ("'", "\""),
            ("(", "["),
            (")", "]"),
            (": True", ": true"),
            (": False", ": false"),
            (", ]", "]"),
            (",]", "]"),
            (", }", "}"),
            (",}", "}"),
        ];
        let json = to_json.iter().fold(text.to_owned(), |json, (python, other)| json.replace(python, other));
        if json.contains("\"descr\": [") {
            return Err("its elements are records, expected numbers".to_owned());
        }
        let is_shape = |header: &Header| {
            header.shape.len() <= MAX_RANK && header.shape.iter().all(|extent| *extent >= 0)
        };
        let header = serde_json::from_str(&json).ok().filter(is_shape);
        header.ok_or_else(|| format!("invalid header `{}`", text.trim()))
    }
}

impl<'f> StoredTensor<'f> {
    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Returns the tensor; fails if it has more than `most` elements.
    pub fn within(self, most: usize) -> Result<StoredTensor<'f>, String> {
        match count(&self.shape) {
            Some(elements) if elements <= most => Ok(self),
            _ => Err(format!("its shape is {:?}, expected at most {most} elements", self.shape)),
        }
    }

    /// Reads the tensor as `ty`; fails for a wrong length or element.
    pub fn array(self, ty: DataType) -> Result<Array, String> {
        let StoredTensor { format, is_fortran, shape, mut data } = self;
        let elements = count(&shape).unwrap_or(0);
        let length = elements.saturating_mul(format.size);
        let mut bytes = Vec::new();
        let text = |error: std::io::Error| error.to_string();
        data.by_ref().take(length as u64).read_to_end(&mut bytes).map_err(text)?;
        if bytes.len() < length {
            return Err(format!(
                "it is truncated: its header specifies {elements} elements of {} bytes",
                format.size
            ));
        }
        // Verifies an archive's checksum.
        if data.read(&mut [0]).map_err(text)? != 0 {
            return Err(format!("it is longer than its header specifies: the shape is {shape:?}"));
        }
        if !is_fortran && format.is_verbatim(ty) {
            return Array::new(ty, shape, bytes);
        }
        let number = |index: usize| {
            let place = if is_fortran { column_major(index, &shape) } else { index };
            let start = place.saturating_mul(format.size);
            format.number(ty, bytes.get(start..start.saturating_add(format.size)).unwrap_or(&[]))
        };
        Array::try_of_numbers(ty, shape.clone(), (0..elements).map(number))
    }
}

fn column_major(number: usize, shape: &[i64]) -> usize {
    let (mut rest, mut stride, mut place) = (number, count(shape).unwrap_or(0), 0);
    for extent in shape.iter().rev().map(|extent| usize::try_from(*extent).unwrap_or(1).max(1)) {
        stride /= extent;
        place += rest % extent * stride;
        rest /= extent;
    }
    place
}

impl ElementFormat {
    /// Parses `<f4`, `|i1`, `=u2`.
    fn parse(descr: &str) -> Result<ElementFormat, String> {
        let unknown = || {
            format!("its elements are `{descr}`, expected floats of 2, 4 or 8 bytes, integers or booleans")
        };
        let mut letters = descr.chars();
        let (order, kind) = (letters.next(), letters.next());
        let size: usize = letters.as_str().parse().map_err(|_| unknown())?;
        let kind = match (kind, size) {
            (Some('f'), 2 | 4 | 8) => Kind::Float,
            (Some('i'), 1 | 2 | 4 | 8) => Kind::Int,
            (Some('u'), 1 | 2 | 4 | 8) => Kind::UInt,
            (Some('b'), 1) => Kind::Bool,
            (Some('V'), 1 | 2) => Kind::Void,
            _ => return Err(unknown()),
        };
        match order {
            Some('<' | '|' | '=' | '>') => {
                Ok(ElementFormat { kind, size, is_big_endian: order == Some('>') })
            }
            _ => Err(unknown()),
        }
    }

    fn is_verbatim(self, ty: DataType) -> bool {
        let (descr, written) = descr(ty);
        let is_alike = |own: ElementFormat| (own.kind, own.size) == (self.kind, self.size);
        let is_in_order = self.size == 1 || !self.is_big_endian;
        // Any nonzero byte is `True`.
        is_in_order
            && written == ty
            && ty != DataType::Bool
            && ElementFormat::parse(descr).is_ok_and(is_alike)
    }

    fn code(self, part: &[u8]) -> u64 {
        let join = |code, byte: &u8| code << 8 | u64::from(*byte);
        if self.is_big_endian { part.iter().fold(0, join) } else { part.iter().rev().fold(0, join) }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // reinterprets bits
    fn number(self, ty: DataType, part: &[u8]) -> Result<Number, String> {
        let code = self.code(part);
        let has_bits = ty.size().is_some_and(|size| size as usize == self.size);
        match (self.kind, self.size) {
            (Kind::UInt | Kind::Void, _)
                if has_bits && matches!(ty, DataType::F16 | DataType::Bf16 | DataType::F8) =>
            {
                Ok(decode(ty, code))
            }
            (Kind::Void, 1) if ty == DataType::I4 => Ok(decode(ty, code)),
            (Kind::Void, size) => Err(format!(
                "its elements are {size} bytes of an unknown type, but the tensor is `{}`",
                ty.name()
            )),
            (Kind::Float, 2) => Ok(decode(DataType::F16, code)),
            (Kind::Float, 4) => Ok(decode(DataType::F32, code)),
            (Kind::Float, _) => Ok(Number::Float(f64::from_bits(code))),
            (Kind::Bool, _) => Ok(Number::Int(i64::from(code != 0))),
            (Kind::UInt, _) => i64::try_from(code)
                .map(Number::Int)
                .map_err(|_| format!("{code} exceeds 64-bit signed integers")),
            (Kind::Int, size) => {
                let shift = 64 - 8 * size as u32;
                Ok(Number::Int((code << shift) as i64 >> shift))
            }
        }
    }
}

fn descr(ty: DataType) -> (&'static str, DataType) {
    match ty {
        DataType::F32 | DataType::Bf16 | DataType::F8 => ("<f4", DataType::F32),
        DataType::F16 => ("<f2", DataType::F16),
        DataType::I8 | DataType::I4 => ("|i1", DataType::I8),
        DataType::I32 => ("<i4", DataType::I32),
        DataType::I64 => ("<i8", DataType::I64),
        DataType::U8 => ("|u1", DataType::U8),
        DataType::Bool => ("|b1", DataType::Bool),
    }
}

/// Returns a `.npy` file: without loss, `bf16` and `f8` become 32-bit floats, `i4` 8-bit integers. Fails for a `bool` above 1.
pub fn write(array: &Array) -> Result<Vec<u8>, String> {
    let (descr, ty) = descr(array.ty());
    let shape: String = array.shape().iter().map(|extent| format!("{extent}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(length).map_err(|_| "it has too many dimensions")?.to_le_bytes());
    bytes.extend(format!("{header:<width$}\n", width = length - 1).into_bytes());
    if ty == array.ty() && ty != DataType::Bool {
        bytes.extend(array.bytes());
    } else {
        bytes.extend(Array::of_numbers(ty, array.shape().to_vec(), array.numbers())?.bytes());
    }
    Ok(bytes)
}

/// `.npz` archive.
#[derive(Debug)]
pub struct Archive<R>(zip::ZipArchive<R>);

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive.
    pub fn open(file: R) -> Result<Archive<R>, String> {
        let archive = zip::ZipArchive::new(file).map_err(|error| format!("not a `.npz` file: {error}"))?;
        Ok(Archive(archive))
    }

    /// Returns the UTF-8 names of its tensors.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let names = self.0.file_names().filter_map(Result::ok);
        names.filter_map(|name| Some(name.strip_suffix(".npy")?.to_owned())).collect()
    }

    /// Opens a tensor.
    pub fn tensor(&mut self, name: &str) -> Result<StoredTensor<'_>, String> {
        let Some(index) = self.0.index_for_name(&format!("{name}.npy")) else {
            let names = self.names();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(format!(
                "unknown tensor `{name}`; it contains {}",
                crate::manifest::toml_reader::list(&names)
            ));
        };
        read(self.0.by_index(index).map_err(|error| error.to_string())?)
    }
}

/// Writes an uncompressed archive.
pub fn write_archive<'a, W: Write + Seek>(
    arrays: impl Iterator<Item = (&'a str, &'a Array)>,
    to: W,
) -> Result<W, String> {
    let mut archive = zip::ZipWriter::new(to);
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(true);
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), options).map_err(|error| error.to_string())?;
        archive.write_all(&write(array)?).map_err(|error| error.to_string())?;
    }
    archive.finish().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn header(descr: &str, order: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({shape}), }}\n")
    }

    fn numbers(descr: &str, data: &[u8], ty: DataType) -> Result<Vec<f64>, String> {
        let size: usize = descr[2..].parse().unwrap();
        let bytes = file(&header(descr, "False", &format!("{},", data.len() / size)), data);
        Ok(read(bytes.as_slice())?.array(ty)?.numbers().map(Number::as_f64).collect())
    }

    fn array(bytes: &[u8]) -> Result<Array, String> {
        read(bytes)?.array(DataType::F32)
    }

    #[test]
    fn every_type_is_read_as_it_was_written() {
        for ty in DataType::ALL {
            let array =
                super::super::data::random(ty, &[3, 5], super::super::data::default_range(ty), 1).unwrap();
            let bytes = write(&array).unwrap();
            assert!(bytes.len() > 128 && bytes[..10 + 118].ends_with(b"\n"), "the data is aligned");
            assert_eq!(read(bytes.as_slice()).unwrap().array(ty).unwrap(), array, "{}", ty.name());
        }
    }

    #[test]
    fn bits_of_types_that_numpy_lacks() {
        let bf16 = [0x80, 0x3f, 0x00, 0xc0];
        for descr in ["<V2", "|V2", "<u2"] {
            assert_eq!(numbers(descr, &bf16, DataType::Bf16), Ok(vec![1.0, -2.0]), "{descr}");
        }
        assert_eq!(
            numbers("<u2", &bf16, DataType::I32),
            Ok(vec![16256.0, 49152.0]),
            "exact values become numbers"
        );
        for descr in ["|V1", "|u1"] {
            assert_eq!(numbers(descr, &[0x38, 0x7e], DataType::F8), Ok(vec![1.0, 448.0]), "{descr}");
        }
        assert_eq!(numbers("|V1", &[0x0f, 0x07], DataType::I4), Ok(vec![-1.0, 7.0]));
        assert_eq!(numbers("|i1", &[0xff, 0x07], DataType::I4), Ok(vec![-1.0, 7.0]));
        assert!(numbers("|i1", &[8], DataType::I4).is_err());
        assert!(numbers("|V2", &bf16, DataType::F32).is_err());
        assert_eq!(numbers("<f8", &1.000_000_1_f64.to_le_bytes(), DataType::Bf16), Ok(vec![1.0]), "rounded");
        assert!(numbers("<f4", &0.5_f32.to_le_bytes(), DataType::I32).is_err());
        assert_eq!(numbers(">i4", &[0, 0, 1, 0], DataType::I64), Ok(vec![256.0]));
        assert_eq!(numbers("|b1", &[0, 1, 7], DataType::Bool), Ok(vec![0.0, 1.0, 1.0]));
    }

    #[test]
    fn columns_become_rows() {
        let data: Vec<u8> = (0..6).collect();
        let bytes = file(&header("|i1", "True", "2, 3"), &data);
        let array = read(bytes.as_slice()).unwrap().array(DataType::I8).unwrap();
        assert_eq!(array.numbers().map(Number::as_f64).collect::<Vec<_>>(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for text in [
            "{}",
            "{'descr': '<f4'}",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
            "((((((((((((((((((",
        ] {
            assert!(array(&file(text, &[0; 4])).is_err(), "{text}");
        }
        assert!(array(b"").is_err());
        assert!(array(b"\x93NUMPY\x09\x00\x00\x00").is_err());
        for order in ["False", "True"] {
            for descr in ["<f4", ">f4"] {
                let whole = file(&header(descr, order, "1"), &[0; 4]);
                assert!(array(&whole).is_ok());
                assert!((0..whole.len()).all(|end| array(&whole[..end]).is_err()));
            }
        }
    }

    #[test]
    fn archives_hold_tensors_by_name() {
        let one = Array::of_numbers(DataType::I32, vec![], [Number::Int(5)].into_iter()).unwrap();
        let bytes = write_archive([("x", &one), ("y", &one)].into_iter(), Cursor::new(Vec::new())).unwrap();
        let mut archive = Archive::open(bytes).unwrap();
        assert_eq!(archive.names(), ["x", "y"]);
        let stored = archive.tensor("y").unwrap();
        assert_eq!(stored.shape(), [0_i64; 0]);
        assert_eq!(stored.array(DataType::I32), Ok(one.clone()));
        assert!(archive.tensor("z").err().unwrap().contains("it contains `x`, `y`"));
        assert!(Archive::open(Cursor::new(b"PK")).is_err());
    }

    #[test]
    fn a_tensor_is_read_as_far_as_its_header_says_and_no_further_than_it_may() {
        let mut bomb = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        bomb.start_file("x.npy", options).unwrap();
        bomb.write_all(&file(&header("|i1", "False", "16777216,"), &vec![0; 1 << 24])).unwrap();
        bomb.start_file("y.npy", options).unwrap();
        bomb.write_all(&file(&header("|i1", "False", "3,"), &vec![7; 1 << 24])).unwrap();
        let bytes = bomb.finish().unwrap();
        assert!(bytes.get_ref().len() < 1 << 16, "{}", bytes.get_ref().len());
        let mut archive = Archive::open(bytes).unwrap();
        assert!(archive.tensor("x").unwrap().within(1000).is_err());
        let short = archive.tensor("y").unwrap().within(3).unwrap().array(DataType::I8);
        assert_eq!(short, Err("it is longer than its header specifies: the shape is [3]".to_owned()));
        assert_eq!(
            archive.tensor("x").unwrap().within(1 << 24).unwrap().array(DataType::I8).unwrap().len(),
            1 << 24
        );
    }

    #[test]
    fn a_changed_bit_of_an_archive_is_found() {
        for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
            let options = zip::write::SimpleFileOptions::default().compression_method(method);
            let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
            archive.start_file("x.npy", options).unwrap();
            let data: Vec<u8> = (0..64).map(|at: u8| at.wrapping_mul(73)).collect();
            archive.write_all(&file(&header("|i1", "False", "64,"), &data)).unwrap();
            let whole = archive.finish().unwrap().into_inner();
            let array = |bytes: Vec<u8>| {
                let mut archive = Archive::open(Cursor::new(bytes)).ok()?;
                let stored = archive.tensor("x").ok()?;
                stored.array(DataType::I8).ok()
            };
            let right = array(whole.clone()).unwrap();
            for at in 0..whole.len() {
                let mut changed = whole.clone();
                changed[at] ^= 4;
                let found = array(changed);
                assert!(found.is_none_or(|found| found == right), "{method:?}: byte {at}");
            }
        }
    }

    #[test]
    fn a_long_tensor_comes_in_parts() {
        let elements = 20_001;
        let data: Vec<u8> = (0..elements).flat_map(|at| (at as u16).to_be_bytes()).collect();
        for (ty, descr) in [(DataType::I32, ">u2"), (DataType::I64, ">u2")] {
            let bytes = file(&header(descr, "False", &format!("{elements},")), &data);
            let array = read(bytes.as_slice()).unwrap().array(ty).unwrap();
            assert!(array.numbers().enumerate().all(|(at, number)| number == Number::Int(at as i64)));
            assert_eq!(read(write(&array).unwrap().as_slice()).unwrap().array(ty), Ok(array));
        }
    }
}
