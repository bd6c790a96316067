//! Protocol buffers' wire format (protobuf.dev, "Encoding"), for files larger than memory.

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use prost::encoding::encode_varint;

use crate::Error;

const BUFFER_BYTES: usize = 1 << 16;

const MAX_GROUPS: usize = 64;

pub(crate) struct Source<R> {
    reader: BufReader<R>,
    at: u64,
    length: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) whole: Range<u64>,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Varint(u64),
    Other,
    /// Text, bytes, a message or packed numbers.
    Bytes {
        prefix: u64,
        payload: Range<u64>,
    },
}

impl<R: Read + Seek> Source<R> {
    pub(crate) fn new(mut reader: R) -> Result<Source<R>, Error> {
        let length = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        Ok(Source { reader: BufReader::with_capacity(BUFFER_BYTES, reader), at: 0, length })
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Moves to an offset; cheap within the buffer.
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

    fn varint(&mut self, end: u64, message: &'static str) -> Result<u64, Error> {
        let start = self.at;
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            if self.at >= end {
                return Err(self.cut_off(start, end, message, "a number is truncated"));
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
        Err(wrong(start, message, "a number exceeds 64 bits"))
    }

    /// Reads the field at `at`, without payload, of a message up to `end`; advances `at`.
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
                    let what = format!("field {number} has {length} bytes, but {left} remain");
                    return Err(self.cut_off(start, end, message, &what));
                }
                self.seek(payload.end)?;
                Content::Bytes { prefix, payload }
            }
            5 => self.other(4, end, message)?,
            kind => {
                let what = format!("field {number} has the unknown kind {kind}");
                return Err(wrong(start, message, &what));
            }
        })
    }

    fn key(&mut self, end: u64, message: &'static str) -> Result<(u32, u8), Error> {
        let start = self.at;
        let key = self.varint(end, message)?;
        match u32::try_from(key >> 3) {
            Ok(number @ 1..) if number < 1 << 29 => Ok((number, (key & 7) as u8)),
            _ => Err(wrong(start, message, &format!("invalid field number {}", key >> 3))),
        }
    }

    fn other(&mut self, bytes: u64, end: u64, message: &'static str) -> Result<Content, Error> {
        if end - self.at < bytes {
            return Err(self.cut_off(self.at, end, message, "a number is truncated"));
        }
        self.seek(self.at + bytes)?;
        Ok(Content::Other)
    }

    /// ONNX has no groups, but unknown fields may be nested ones.
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
                        3 => format!("groups are nested more than {MAX_GROUPS} deep"),
                        _ => format!("the group {last} ends with the number {number}"),
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

pub(crate) fn varint(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(value, &mut bytes);
    bytes
}

pub(crate) fn bytes_field(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = varint(u64::from(number) << 3 | 2);
    bytes.extend(varint(payload.len() as u64));
    bytes.extend(payload);
    bytes
}
