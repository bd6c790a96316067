//! The wire format of protocol buffers, over a file that may be larger than memory.
//!
//! Owns: keys, lengths and numbers, and skipping. Knows no message. The format: protobuf.dev, "Encoding".

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use prost::encoding::encode_varint;

use crate::Error;

/// How large a piece is read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// How deep groups may lie in groups.
const MAX_GROUPS: usize = 64;

/// A file with a place in it.
pub(crate) struct Source<R> {
    reader: BufReader<R>,
    at: u64,
    length: u64,
}

/// A field: its number, where its bytes are, and what follows the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// From the key to the end.
    pub(crate) whole: Range<u64>,
    pub(crate) content: Content,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A number.
    Varint(u64),
    /// 4 or 8 bytes, or a group; nobody looks inside.
    Other,
    /// Text, bytes, a message or packed numbers.
    Bytes {
        /// Where the length stands.
        prefix: u64,
        /// Where the bytes are.
        payload: Range<u64>,
    },
}

impl<R: Read + Seek> Source<R> {
    /// The whole of `reader`, from its beginning.
    pub(crate) fn new(mut reader: R) -> Result<Source<R>, Error> {
        let length = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        Ok(Source { reader: BufReader::with_capacity(BUFFER_BYTES, reader), at: 0, length })
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Goes to a place. Near ones cost nothing.
    pub(crate) fn seek(&mut self, to: u64) -> Result<(), Error> {
        let moved = i64::try_from(i128::from(to) - i128::from(self.at));
        match moved {
            Ok(0) => {}
            Ok(moved) => self.reader.seek_relative(moved)?,
            Err(_) => {
                self.reader.seek(SeekFrom::Start(to))?;
            }
        }
        self.at = to;
        Ok(())
    }

    /// Appends the bytes of a range that lies in the file.
    pub(crate) fn copy(&mut self, range: &Range<u64>, to: &mut Vec<u8>) -> Result<(), Error> {
        self.seek(range.start)?;
        let count = range.end - range.start;
        let copied = (&mut self.reader).take(count).read_to_end(to)? as u64;
        self.at += copied;
        if copied < count {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Error> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        self.at += 1;
        Ok(byte[0])
    }

    /// A number of up to ten bytes before `end`.
    fn varint(&mut self, end: u64, message: &'static str) -> Result<u64, Error> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            if self.at >= end {
                return Err(self.cut_off(start, end, message, "a number is cut off"));
            }
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(wrong(start, message, "a number is longer than 64 bits"))
    }

    /// The field at `at` of a message that ends at `end`, and moves `at` behind it; `None` at the end. Of bytes none is read.
    pub(crate) fn field(
        &mut self,
        at: &mut u64,
        end: u64,
        message: &'static str,
    ) -> Result<Option<Field>, Error> {
        if *at >= end {
            return Ok(None);
        }
        let start = *at;
        self.seek(start)?;
        let key = self.key(end, message)?;
        let content = match key {
            (number, 3) => self.group(number, end, message)?,
            key => self.content(start, key, end, message)?,
        };
        *at = self.at;
        Ok(Some(Field { number: key.0, whole: start..self.at, content }))
    }

    /// What follows a key that is no group's.
    fn content(
        &mut self,
        start: u64,
        (number, kind): (u32, u8),
        end: u64,
        message: &'static str,
    ) -> Result<Content, Error> {
        Ok(match kind {
            0 => Content::Varint(self.varint(end, message)?),
            1 => self.other(8, end, message)?,
            2 => {
                let prefix = self.at;
                let length = self.varint(end, message)?;
                let payload = self.at..self.at.saturating_add(length);
                if payload.end > end {
                    let left = end - payload.start;
                    let what = format!("field {number} claims {length} bytes, and {left} are left");
                    return Err(self.cut_off(start, end, message, &what));
                }
                self.seek(payload.end)?;
                Content::Bytes { prefix, payload }
            }
            5 => self.other(4, end, message)?,
            kind => {
                let what = format!("field {number} is of the unknown kind {kind}");
                return Err(wrong(start, message, &what));
            }
        })
    }

    fn key(&mut self, end: u64, message: &'static str) -> Result<(u32, u8), Error> {
        let start = self.at;
        let key = self.varint(end, message)?;
        match u32::try_from(key >> 3) {
            Ok(number @ 1..) if number < 1 << 29 => Ok((number, (key & 7) as u8)),
            _ => Err(wrong(start, message, &format!("{} is no number of a field", key >> 3))),
        }
    }

    fn other(&mut self, bytes: u64, end: u64, message: &'static str) -> Result<Content, Error> {
        if end - self.at < bytes {
            return Err(self.cut_off(self.at, end, message, "a number is cut off"));
        }
        self.seek(self.at + bytes)?;
        Ok(Content::Other)
    }

    /// A group ends with a key of its own, and groups may lie in groups. ONNX has none; fields that are not known may.
    fn group(&mut self, number: u32, end: u64, message: &'static str) -> Result<Content, Error> {
        let mut open = vec![number];
        while let Some(last) = open.last().copied() {
            let start = self.at;
            match self.key(end, message)? {
                (number, 3) if open.len() < MAX_GROUPS => open.push(number),
                (number, 4) if number == last => {
                    open.pop();
                }
                (number, kind @ (3 | 4)) => {
                    let what = match kind {
                        3 => format!("groups lie in groups more than {MAX_GROUPS} deep"),
                        _ => format!("the group {last} ends as if it were {number}"),
                    };
                    return Err(wrong(start, message, &what));
                }
                (number, kind) => {
                    self.content(start, (number, kind), end, message)?;
                }
            }
        }
        Ok(Content::Other)
    }

    /// What ends before its time: a file that was cut off, where that is its end, and else a mistake.
    fn cut_off(&self, at: u64, end: u64, message: &'static str, what: &str) -> Error {
        if end == self.length {
            Error::CutOff { at, message, what: what.to_owned() }
        } else {
            wrong(at, message, what)
        }
    }
}

pub(crate) fn wrong(at: u64, message: &'static str, what: &str) -> Error {
    Error::Format { at, message, what: what.to_owned() }
}

/// A number as the format writes it.
pub(crate) fn varint(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(value, &mut bytes);
    bytes
}

/// A field of bytes, whole.
pub(crate) fn bytes_field(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = varint(u64::from(number) << 3 | 2);
    bytes.extend(varint(payload.len() as u64));
    bytes.extend(payload);
    bytes
}
