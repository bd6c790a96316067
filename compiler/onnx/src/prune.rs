//! Copies nodes and tensors without tensor data above [`SMALL_BYTES`], sparse tensors, and graphs; returns graphs' byte ranges.

use std::io::{Read, Seek};
use std::ops::Range;

use crate::Error;
use crate::model::Places;
use crate::wire::{Content, Field, Source, bytes_field};

/// Maximum tensor data to read; shapes depend on small tensors.
pub(crate) const SMALL_BYTES: u64 = 4096;

/// Maximum bytes of a pruned message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 20;

mod number {
    pub(super) const NODE_OP_TYPE: u32 = 4;
    pub(super) const NODE_ATTRIBUTE: u32 = 5;
    pub(super) const NODE_DOMAIN: u32 = 7;
    pub(super) const ATTRIBUTE_TENSOR: u32 = 5;
    pub(super) const ATTRIBUTE_GRAPH: u32 = 6;
    pub(super) const ATTRIBUTE_TENSORS: u32 = 10;
    pub(super) const ATTRIBUTE_GRAPHS: u32 = 11;
    pub(super) const ATTRIBUTE_SPARSE: [u32; 2] = [22, 23];
    /// Floats, 32-bit integers, strings, 64-bit integers, raw, doubles, unsigned integers.
    pub(super) const TENSOR_DATA: [u32; 7] = [4, 5, 6, 7, 9, 10, 11];
}

#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) places: Places,
    pub(crate) graphs: Vec<FoundGraph>,
}

#[derive(Debug)]
pub(crate) struct FoundGraph {
    pub(crate) attribute: usize,
    /// Attribute's length offset and byte range.
    pub(crate) around: (u64, Range<u64>),
    /// Graph's, likewise.
    pub(crate) graph: (u64, Range<u64>),
}

pub(crate) fn node(
    source: &mut Source<impl Read + Seek>,
    range: &Range<u64>,
    found: &mut Found,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut at = range.start;
    while let Some(field) = source.field(&mut at, range.end, "NodeProto")? {
        match (field.number, &field.content) {
            (number::NODE_ATTRIBUTE, Content::Bytes { prefix, payload }) => {
                let attribute = attribute(source, (*prefix, payload), found)?;
                bytes.extend(bytes_field(number::NODE_ATTRIBUTE, &attribute));
                found.places.attributes.push(field.whole.clone());
            }
            _ => {
                match field.number {
                    number::NODE_DOMAIN => found.places.domain = Some(field.whole.clone()),
                    number::NODE_OP_TYPE => found.places.op_type = Some(field.whole.clone()),
                    _ => {}
                }
                copy(source, &field, &mut bytes)?;
            }
        }
        limit(range.start, bytes.len(), "a node")?;
    }
    Ok(bytes)
}

fn attribute(
    source: &mut Source<impl Read + Seek>,
    (prefix, range): (u64, &Range<u64>),
    found: &mut Found,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut at = range.start;
    while let Some(field) = source.field(&mut at, range.end, "AttributeProto")? {
        match (field.number, &field.content) {
            (
                number::ATTRIBUTE_GRAPH | number::ATTRIBUTE_GRAPHS,
                Content::Bytes { prefix: inner, payload },
            ) => {
                found.graphs.push(FoundGraph {
                    attribute: found.places.attributes.len(),
                    around: (prefix, range.clone()),
                    graph: (*inner, payload.clone()),
                });
            }
            (number::ATTRIBUTE_TENSOR | number::ATTRIBUTE_TENSORS, Content::Bytes { payload, .. }) => {
                let tensor = tensor(source, payload)?;
                bytes.extend(bytes_field(field.number, &tensor));
            }
            (number, Content::Bytes { .. }) if number::ATTRIBUTE_SPARSE.contains(&number) => {}
            _ => copy(source, &field, &mut bytes)?,
        }
        limit(range.start, bytes.len(), "an attribute")?;
    }
    Ok(bytes)
}

pub(crate) fn tensor(source: &mut Source<impl Read + Seek>, range: &Range<u64>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let (mut data, mut data_bytes) = (Vec::new(), 0_u64);
    let mut at = range.start;
    while let Some(field) = source.field(&mut at, range.end, "TensorProto")? {
        if number::TENSOR_DATA.contains(&field.number) {
            data_bytes = data_bytes.saturating_add(field.whole.end - field.whole.start);
            if data_bytes <= SMALL_BYTES {
                copy(source, &field, &mut data)?;
            } else {
                data.clear();
            }
        } else {
            copy(source, &field, &mut bytes)?;
        }
        limit(range.start, bytes.len(), "a tensor without its data")?;
    }
    bytes.extend(data);
    Ok(bytes)
}

fn copy(source: &mut Source<impl Read + Seek>, field: &Field, bytes: &mut Vec<u8>) -> Result<(), Error> {
    let count = usize::try_from(field.whole.end - field.whole.start).unwrap_or(usize::MAX);
    limit(field.whole.start, bytes.len().saturating_add(count), "a field")?;
    source.copy(&field.whole, bytes)
}

pub(crate) fn limit(at: u64, bytes: usize, what: &str) -> Result<(), Error> {
    if bytes <= MAX_MESSAGE_BYTES {
        return Ok(());
    }
    Err(Error::Limit { at, what: format!("{what} exceeds {MAX_MESSAGE_BYTES} bytes") })
}
