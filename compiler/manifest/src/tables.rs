//! Reads the files of `[tables]` and checks their sizes.

use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::errors::{NotTableFile, UnreadableTable};
use crate::manifest::{MAX_TABLE_BYTES, TableType};
use crate::path;
use crate::resolve::{Resolved, Table, TableFile};
use crate::source;

/// Reads a plugin's table files; invalid ones stay empty.
pub fn read(plugin: &mut Resolved) -> Vec<Diagnostic> {
    let Some(tables) = plugin.draft.units.first().map(|unit| Arc::clone(&unit.tables)) else {
        return Vec::new();
    };
    if tables.iter().all(|table| table.file.is_none()) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let filled = tables.iter().map(|table| match &table.file {
        None => table.clone(),
        Some(file) => match bytes(table, file) {
            Ok(data) => Table { data, ..table.clone() },
            Err(error) => {
                errors.push(error);
                table.clone()
            }
        },
    });
    let filled: Arc<[Table]> = filled.collect();
    plugin.draft.units.iter_mut().for_each(|unit| unit.tables = Arc::clone(&filled));
    errors
}

fn bytes(table: &Table, file: &TableFile) -> Result<Vec<u8>, Diagnostic> {
    let span = file.span.clone();
    let bytes = match source::bytes(&file.path, MAX_TABLE_BYTES) {
        Ok(bytes) => bytes,
        Err(why) => return Err(UnreadableTable { why, most: MAX_TABLE_BYTES, span }.into()),
    };
    match misfit(table.ty, &bytes) {
        None => Ok(bytes),
        Some(why) => {
            let path = path::shown(&file.path).display().to_string();
            Err(NotTableFile { path, ty: table.ty.name(), why, span }.into())
        }
    }
}

fn misfit(ty: TableType, bytes: &[u8]) -> Option<String> {
    let (found, size) = (bytes.len(), ty.size());
    if found == 0 {
        return Some("empty; a table must have at least one element".to_owned());
    }
    if found % size != 0 {
        return Some(format!("{found} bytes, but each element has {size}"));
    }
    let is_bool = |byte: &u8| *byte <= 1;
    let at = bytes.iter().position(|byte| !is_bool(byte)).filter(|_| ty == TableType::Bool)?;
    let byte = bytes.get(at)?;
    Some(format!("byte {at} is {byte}, but a `bool` must be 0 or 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_whole_elements() {
        let why = |ty, bytes: &[u8]| misfit(ty, bytes);
        assert_eq!(why(TableType::F32, &[0xff; 8]), None);
        assert_eq!(why(TableType::F64, &[0; 12]).as_deref(), Some("12 bytes, but each element has 8"));
        assert_eq!(why(TableType::U8, &[]).as_deref(), Some("empty; a table must have at least one element"));
        assert_eq!(why(TableType::Bool, &[0, 1]), None);
        assert_eq!(
            why(TableType::Bool, &[1, 2]).as_deref(),
            Some("byte 1 is 2, but a `bool` must be 0 or 1")
        );
        assert_eq!(why(TableType::I8, &[2]), None);
    }
}
