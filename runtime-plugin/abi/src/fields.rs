//! Plugin fields: what TensorRT hands to a creator, and what a plugin hands to TensorRT.
//!
//! Owns: [`Field`] (borrowed from TensorRT), [`FieldNames`] (a creator's declaration) and [`FieldSet`]
//! (serialized fields). Never: no interpretation of a field's meaning.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr;

use crate::error::{Error, Result};
use crate::raw::{PluginField, PluginFieldCollection, PluginFieldType};

/// A field that TensorRT passes to [`Creator::create`](crate::Creator::create): from an ONNX node or from an
/// engine.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    name: &'a CStr,
    field_type: PluginFieldType,
    length: i32,
    bytes: Option<&'a [u8]>,
}

impl<'a> Field<'a> {
    /// A field over bytes; for tests, and for callers that imitate TensorRT.
    pub fn new(name: &'a CStr, field_type: PluginFieldType, length: i32, bytes: &'a [u8]) -> Self {
        Self { name, field_type, length, bytes: Some(bytes) }
    }

    /// Wraps a foreign field; `None` when it has no name.
    ///
    /// # Safety
    /// `field.name` is null or a NUL-terminated text, and `field.data` is null or points at as many bytes as
    /// type and length say; both outlive `'a` unchanged.
    pub unsafe fn from_raw(field: &PluginField) -> Option<Self> {
        if field.name.is_null() {
            return None;
        }
        // SAFETY: not null, and the caller answers for the text and its lifetime.
        let name = unsafe { CStr::from_ptr(field.name) };
        let size = usize::try_from(field.length).ok().and_then(|length| field.field_type.bytes(length));
        let bytes = match size {
            Some(0) => Some(&[][..]),
            Some(size) if !field.data.is_null() => {
                // SAFETY: not null, and the caller answers for `size` bytes.
                Some(unsafe { std::slice::from_raw_parts(field.data.cast::<u8>(), size) })
            }
            _ => None,
        };
        Some(Self { name, field_type: field.field_type, length: field.length, bytes })
    }

    /// Its name.
    pub fn name(&self) -> &'a CStr {
        self.name
    }

    /// Its type, which for a field from the ONNX parser follows the node and not the creator's declaration.
    pub fn field_type(&self) -> PluginFieldType {
        self.field_type
    }

    /// Number of elements; the ONNX parser counts a text's NUL.
    pub fn length(&self) -> i32 {
        self.length
    }

    /// Its bytes; an error for a negative length, a type that this crate does not know, or missing data.
    pub fn bytes(&self) -> Result<&'a [u8]> {
        self.bytes.ok_or_else(|| {
            Error::invalid(format!(
                "field {:?} has no usable data: type {:?}, length {}",
                self.name, self.field_type, self.length
            ))
        })
    }

    /// The elements as 32-bit integers; an error if the field has another type. Copies: TensorRT's data may not be aligned.
    pub fn i32s(&self) -> Result<Vec<i32>> {
        if self.field_type != PluginFieldType::INT32 {
            let (name, found) = (self.name, self.field_type);
            let expected = PluginFieldType::INT32;
            return Err(Error::invalid(format!("field {name:?} has type {found:?}, expected {expected:?}")));
        }
        Ok(self.bytes()?.as_chunks().0.iter().map(|chunk| i32::from_ne_bytes(*chunk)).collect())
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {:?} x {}", self.name, self.field_type, self.length)
    }
}

/// One field of a [`FieldSet`], or one name of [`FieldNames`].
#[derive(Clone)]
pub struct FieldValue {
    name: CString,
    field_type: PluginFieldType,
    length: i32,
    bytes: Vec<u8>,
}

impl FieldValue {
    /// A field of any type. `bytes` must hold whole elements; an error names the field.
    pub fn new(name: &CStr, field_type: PluginFieldType, bytes: Vec<u8>) -> Result<Self> {
        let size = bytes.len();
        let element = field_type.bytes(1).unwrap_or(0);
        let length = (element != 0 && size.is_multiple_of(element)).then(|| size / element);
        let length = length.and_then(|length| i32::try_from(length).ok()).ok_or_else(|| {
            Error::internal(format!("{size} bytes cannot be field {name:?} of type {field_type:?}"))
        })?;
        Ok(Self { name: name.to_owned(), field_type, length, bytes })
    }

    fn as_field(&self) -> Field<'_> {
        let Self { name, field_type, length, bytes } = self;
        Field { name, field_type: *field_type, length: *length, bytes: Some(bytes) }
    }
}

/// Without the bytes: those of a node are megabytes.
impl fmt::Debug for FieldValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_field().fmt(formatter)
    }
}

/// Fields at stable addresses, for [`Plugin::fields_to_serialize`](crate::Plugin::fields_to_serialize).
///
/// TensorRT asks for them two or three times and keeps pointers in between, so a plugin owns its set (behind
/// an `Arc`, for example) and always answers with the same one.
#[derive(Debug)]
pub struct FieldSet {
    // `Vec` and not `Box`: moving a box claims its contents for itself, which would end what points into them.
    values: Vec<FieldValue>,
    // Points into `values`, whose heap block never moves and is never changed.
    raw: Vec<PluginField>,
    // Points at `raw`'s heap block.
    collection: PluginFieldCollection,
}

// SAFETY: the raw pointers lead into memory that the set owns and never changes.
unsafe impl Send for FieldSet {}
// SAFETY: as above; there is no interior mutability.
unsafe impl Sync for FieldSet {}

impl FieldSet {
    /// A set in this order. An error for a name that occurs twice, which TensorRT would take without a word.
    pub fn new(values: Vec<FieldValue>) -> Result<Self> {
        for (index, value) in values.iter().enumerate() {
            if values[..index].iter().any(|other| other.name == value.name) {
                return Err(Error::internal(format!("field {:?} is there twice", value.name)));
            }
        }
        let nb_fields = i32::try_from(values.len()).map_err(|_| Error::internal("too many fields"))?;
        let raw: Vec<PluginField> = values
            .iter()
            .map(|value| PluginField {
                name: value.name.as_ptr(),
                data: data_pointer(&value.bytes),
                field_type: value.field_type,
                length: value.length,
            })
            .collect();
        let collection = PluginFieldCollection { nb_fields, fields: raw.as_ptr() };
        Ok(Self { values, raw, collection })
    }

    /// The C++ view, valid as long as the set stays where it is.
    pub fn as_raw(&self) -> &PluginFieldCollection {
        &self.collection
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The fields as a creator would see them.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.values.iter().map(FieldValue::as_field)
    }
}

/// An empty list travels as null, as the ONNX parser's does.
fn data_pointer(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() { ptr::null() } else { bytes.as_ptr().cast() }
}

/// The attributes that a creator wants from an ONNX node. The parser passes only these, in this order, and
/// warns about each one that the node lacks.
#[derive(Debug)]
pub struct FieldNames {
    set: FieldSet,
    /// Whether TensorRT must pass a collection of fields. An application that makes a plugin of an op without attributes may pass none.
    pub are_needed: bool,
}

impl FieldNames {
    /// Declares names and types. The ONNX parser ignores the types. An error for a name that occurs twice.
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a CStr, PluginFieldType)>) -> Result<Self> {
        let values = names.into_iter().map(|(name, field_type)| FieldValue {
            name: name.to_owned(),
            field_type,
            // As NVIDIA's own creators do: one element, no data.
            length: 1,
            bytes: Vec::new(),
        });
        Ok(Self { set: FieldSet::new(values.collect())?, are_needed: true })
    }

    /// The C++ view, valid as long as the declaration stays where it is.
    pub fn as_raw(&self) -> &PluginFieldCollection {
        self.set.as_raw()
    }
}

#[cfg(test)]
mod tests;
