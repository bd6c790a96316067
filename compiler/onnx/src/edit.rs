//! Edits a model: copies unedited fields, updates lengths.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use prost::Message;

use crate::model::{Model, NodeId, Owner};
use crate::proto::{AttributeProto, OperatorSetIdProto};
use crate::wire::{bytes_field, varint};

mod number {
    pub(super) const NODE_OP_TYPE: u32 = 4;
    pub(super) const NODE_ATTRIBUTE: u32 = 5;
    pub(super) const NODE_DOMAIN: u32 = 7;
    pub(super) const MODEL_OPSET_IMPORT: u32 = 8;
    pub(super) const FUNCTION_OPSET_IMPORT: u32 = 9;
}

/// Edits of one model.
#[derive(Debug, Clone)]
pub struct Edits<'m> {
    model: &'m Model,
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
struct Change {
    /// Changed message; `None` for the model.
    span: Option<usize>,
    old: Range<u64>,
    new: Vec<u8>,
}

impl<'m> Edits<'m> {
    /// Creates an empty set of edits.
    #[must_use]
    pub fn new(model: &'m Model) -> Edits<'m> {
        Edits { model, changes: Vec::new() }
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Sets a known node's domain.
    pub fn set_domain(&mut self, id: NodeId, domain: &str) {
        let Some(node) = self.model.node(id) else { return };
        let field = bytes_field(number::NODE_DOMAIN, domain.as_bytes());
        self.set(node.places.span, node.places.domain.clone(), field);
    }

    /// Sets a known node's op type.
    pub fn set_op_type(&mut self, id: NodeId, op_type: &str) {
        let Some(node) = self.model.node(id) else { return };
        let field = bytes_field(number::NODE_OP_TYPE, op_type.as_bytes());
        self.set(node.places.span, node.places.op_type.clone(), field);
    }

    /// Sets an attribute: replaces [`crate::Node::attribute`]'s, or adds one.
    pub fn set_attribute(&mut self, id: NodeId, attribute: &AttributeProto) {
        let Some(node) = self.model.node(id) else { return };
        let field = bytes_field(number::NODE_ATTRIBUTE, &attribute.encode_to_vec());
        let known = node.proto.attribute.iter().position(|known| known.name() == attribute.name());
        let place = known.and_then(|index| node.places.attributes.get(index).cloned());
        self.set(node.places.span, place, field);
    }

    /// Adds an operator set to a graph's function, else to the model.
    pub fn import(&mut self, graph: usize, domain: &str, version: i64) {
        let import =
            OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(version) }.encode_to_vec();
        let root = self.model.root_of(graph).and_then(|root| self.model.graphs.get(root));
        let (span, end, number) = match root {
            Some(root) if matches!(root.owner, Owner::Function { .. }) => {
                (Some(root.span), root.imports_end, number::FUNCTION_OPSET_IMPORT)
            }
            _ => (None, self.model.imports_end, number::MODEL_OPSET_IMPORT),
        };
        self.changes.push(Change { span, old: end..end, new: bytes_field(number, &import) });
    }

    fn set(&mut self, span: usize, place: Option<Range<u64>>, field: Vec<u8>) {
        let end = self.model.spans[span].payload.end;
        let place = place.unwrap_or(end..end);
        self.changes.retain(|change| place.is_empty() || change.old != place);
        self.changes.push(Change { span: Some(span), old: place, new: field });
    }

    /// Writes the edited model; `reader` is the original file.
    pub fn write(&self, reader: impl Read + Seek, mut writer: impl Write) -> io::Result<()> {
        let mut changed = self.view(reader);
        let length = changed.length;
        if io::copy(&mut changed, &mut writer)? < length {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the model changed during the copy"));
        }
        writer.flush()
    }

    /// Returns the edited model as a stream; `reader` is the original file.
    pub fn view<R: Read + Seek>(&self, reader: R) -> EditedModel<R> {
        let mut changed = EditedModel { reader, pieces: Vec::new(), length: 0, at: 0 };
        let mut at = 0;
        for Change { old, new, .. } in self.replacements() {
            changed.add(Piece::Kept(at..old.start));
            changed.add(Piece::New(new));
            at = old.end;
        }
        changed.add(Piece::Kept(at..self.model.length));
        changed
    }

    fn replacements(&self) -> Vec<Change> {
        let mut all = self.changes.clone();
        let mut growth: BTreeMap<usize, i64> = BTreeMap::new();
        for Change { span, old, new } in &all {
            if let Some(span) = span {
                *growth.entry(*span).or_default() += new.len() as i64 - (old.end - old.start) as i64;
            }
        }
        // Children have higher indices: their growth is known first.
        while let Some((index, grown)) = growth.pop_last() {
            let span = &self.model.spans[index];
            if grown == 0 {
                continue;
            }
            let length = (span.payload.end - span.payload.start).saturating_add_signed(grown);
            let new = varint(length);
            if let Some(parent) = span.parent {
                let before = (span.payload.start - span.prefix) as i64;
                *growth.entry(parent).or_default() += grown + new.len() as i64 - before;
            }
            all.push(Change { span: span.parent, old: span.prefix..span.payload.start, new });
        }
        // Of messages with one end, the inner one comes first.
        all.sort_by_key(|change| (change.old.start, Reverse(change.span)));
        all
    }
}

/// Edited model: ranges of the file and new bytes.
#[derive(Debug)]
pub struct EditedModel<R> {
    reader: R,
    pieces: Vec<(u64, Piece)>,
    length: u64,
    at: u64,
}

#[derive(Debug)]
enum Piece {
    Kept(Range<u64>),
    New(Vec<u8>),
}

impl<R> EditedModel<R> {
    fn add(&mut self, piece: Piece) {
        let bytes = match &piece {
            Piece::Kept(range) => range.end.saturating_sub(range.start),
            Piece::New(bytes) => bytes.len() as u64,
        };
        if bytes > 0 {
            self.pieces.push((self.length, piece));
            self.length += bytes;
        }
    }
}

impl<R: Read + Seek> Read for EditedModel<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let after = self.pieces.partition_point(|(start, _)| *start <= self.at);
        let Some((start, piece)) = after.checked_sub(1).and_then(|index| self.pieces.get(index)) else {
            return Ok(0);
        };
        let inside = self.at - start;
        let read = match piece {
            Piece::New(bytes) => {
                let inside = usize::try_from(inside).unwrap_or(usize::MAX).min(bytes.len());
                (&bytes[inside..]).read(buffer)?
            }
            Piece::Kept(range) => {
                let place = range.start.saturating_add(inside).min(range.end);
                self.reader.seek(SeekFrom::Start(place))?;
                (&mut self.reader).take(range.end - place).read(buffer)?
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

impl<R> Seek for EditedModel<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(moved) => self.length.checked_add_signed(moved),
            SeekFrom::Current(moved) => self.at.checked_add_signed(moved),
        };
        self.at = place.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "negative file offset"))?;
        Ok(self.at)
    }
}
