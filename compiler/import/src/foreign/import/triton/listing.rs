use std::collections::BTreeMap;
use std::path::Path;

use super::Compiled;

const MOST_SHOWN: usize = 4;

pub(super) const OLDER: &str = "Triton's cache keeps code compiled from an older source: if this is the reason, import from a new cache, or specify only the newest folders";

/// `None` for a single place. Compares file names: copies' folders may differ.
pub(super) fn definition_places(all: &[Compiled]) -> Option<String> {
    let mut places: BTreeMap<String, Vec<&Compiled>> = BTreeMap::new();
    for compiled in all {
        if let Some((file, line)) = &compiled.function.place {
            let file = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
            places.entry(format!("{file}:{line}")).or_default().push(compiled);
        }
    }
    let of_place =
        |(place, all): (&String, &Vec<&Compiled>)| format!("at `{place}` in {}", list_folders(all));
    let texts: Vec<String> = places.iter().take(MOST_SHOWN).map(of_place).collect();
    let more = match places.len().saturating_sub(MOST_SHOWN) {
        0 => String::new(),
        more => format!(", and in {more} more places"),
    };
    (places.len() > 1).then(|| format!("The kernel was defined {}{more}. {OLDER}", texts.join(", and ")))
}

pub(super) fn list_folders(all: &[&Compiled]) -> String {
    let names: Vec<String> =
        all.iter().take(MOST_SHOWN).map(|compiled| format!("`{}`", compiled.folder())).collect();
    let more = match all.len().saturating_sub(MOST_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}
