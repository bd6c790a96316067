//! Plugin fields, from and to TensorRT. Never interprets a field.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr;

use crate::error::{Error, Result};
use crate::raw::{PluginField, PluginFieldCollection, PluginFieldType};

/// A field that TensorRT passes to [`Creator::create`](crate::Creator::create).
#[derive(Clone, Copy)]
pub struct Field<'a> {
    name: &'a CStr,
    field_type: PluginFieldType,
    length: i32,
    bytes: Option<&'a [u8]>,
}

impl<'a> Field<'a> {
    /// Creates a field over bytes, for tests.
    pub fn new(name: &'a CStr, field_type: PluginFieldType, length: i32, bytes: &'a [u8]) -> Self {
        Self { name, field_type, length, bytes: Some(bytes) }
    }

    /// Wraps a foreign field; `None` if unnamed.
    ///
    /// # Safety
    /// `field.name` is null or a C string; `field.data` is null or has the bytes that type and length imply; both
    /// outlive `'a` unchanged.
    pub unsafe fn from_raw(field: &PluginField) -> Option<Self> {
        if field.name.is_null() {
            return None;
        }
        // SAFETY: not null; the caller guarantees the rest.
        let name = unsafe { CStr::from_ptr(field.name) };
        let size = usize::try_from(field.length).ok().and_then(|length| field.field_type.bytes(length));
        let bytes = match size {
            Some(0) => Some(&[][..]),
            Some(size) if !field.data.is_null() => {
                // SAFETY: as above.
                Some(unsafe { std::slice::from_raw_parts(field.data.cast::<u8>(), size) })
            }
            _ => None,
        };
        Some(Self { name, field_type: field.field_type, length: field.length, bytes })
    }

    /// Returns its name.
    pub fn name(&self) -> &'a CStr {
        self.name
    }

    /// Returns its type; from the ONNX parser the node's, not the declared one.
    pub fn field_type(&self) -> PluginFieldType {
        self.field_type
    }

    /// Returns the number of elements, including a string's NUL from ONNX.
    pub fn length(&self) -> i32 {
        self.length
    }

    /// Returns its bytes; fails for a negative length, an unknown type, or no data.
    pub fn bytes(&self) -> Result<&'a [u8]> {
        self.bytes.ok_or_else(|| {
            Error::invalid(format!(
                "field {:?} has no usable data: type {:?}, length {}",
                self.name, self.field_type, self.length
            ))
        })
    }

    /// Copies the possibly unaligned elements; fails for another type.
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

/// A field of a [`FieldSet`], or a name of [`FieldNames`].
#[derive(Clone)]
pub struct FieldValue {
    name: CString,
    field_type: PluginFieldType,
    length: i32,
    bytes: Vec<u8>,
}

impl FieldValue {
    /// Creates a field. Fails unless `bytes` holds whole elements.
    pub fn new(name: &CStr, field_type: PluginFieldType, bytes: Vec<u8>) -> Result<Self> {
        let size = bytes.len();
        let element = field_type.bytes(1).unwrap_or(0);
        let length = (element != 0 && size.is_multiple_of(element)).then(|| size / element);
        let length = length.and_then(|length| i32::try_from(length).ok()).ok_or_else(|| {
            Error::internal(format!("{size} bytes do not fit field {name:?} of type {field_type:?}"))
        })?;
        Ok(Self { name: name.to_owned(), field_type, length, bytes })
    }

    fn as_field(&self) -> Field<'_> {
        let Self { name, field_type, length, bytes } = self;
        Field { name, field_type: *field_type, length: *length, bytes: Some(bytes) }
    }
}

/// Omits the bytes: possibly megabytes.
impl fmt::Debug for FieldValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_field().fmt(formatter)
    }
}

/// Fields at stable addresses for [`Plugin::fields_to_serialize`](crate::Plugin::fields_to_serialize): TensorRT keeps
/// the pointers.
#[derive(Debug)]
pub struct FieldSet {
    // Moving a `Box` would invalidate pointers into it.
    values: Vec<FieldValue>,
    // Points into the heap block of `values`, which never changes.
    raw: Vec<PluginField>,
    collection: PluginFieldCollection,
}

// SAFETY: the pointers refer to memory that the set owns and never changes.
unsafe impl Send for FieldSet {}
// SAFETY: as above.
unsafe impl Sync for FieldSet {}

impl FieldSet {
    /// Creates a set in this order. Fails for duplicate names, which TensorRT accepts.
    pub fn new(values: Vec<FieldValue>) -> Result<Self> {
        for (index, value) in values.iter().enumerate() {
            if values[..index].iter().any(|other| other.name == value.name) {
                return Err(Error::internal(format!("duplicate field {:?}", value.name)));
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

    /// Returns the C++ view, valid until moved.
    pub fn as_raw(&self) -> &PluginFieldCollection {
        &self.collection
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Returns the fields as creators see them.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.values.iter().map(FieldValue::as_field)
    }
}

fn data_pointer(bytes: &[u8]) -> *const c_void {
    if bytes.is_empty() { ptr::null() } else { bytes.as_ptr().cast() }
}

/// The attributes that a creator reads. The ONNX parser passes only these and warns about missing ones.
#[derive(Debug)]
pub struct FieldNames {
    set: FieldSet,
    /// Whether a collection must be passed; applications may omit an empty one.
    pub are_needed: bool,
}

impl FieldNames {
    /// Declares names and types; the ONNX parser ignores types. Fails for duplicate names.
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a CStr, PluginFieldType)>) -> Result<Self> {
        let values = names.into_iter().map(|(name, field_type)| FieldValue {
            name: name.to_owned(),
            field_type,
            // NVIDIA's creators do the same.
            length: 1,
            bytes: Vec::new(),
        });
        Ok(Self { set: FieldSet::new(values.collect())?, are_needed: true })
    }

    /// Returns the C++ view, valid until moved.
    pub fn as_raw(&self) -> &PluginFieldCollection {
        self.set.as_raw()
    }
}

#[cfg(test)]
mod tests;
