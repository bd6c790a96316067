use super::errors::{DriverTooOld, UnknownDriver};
use crate::diagnostic::{Diagnostic, Span};
use crate::foreign::fold_file_errors;
use crate::loaded::LoadedCode;
use crate::manifest::DriverVersion;
use crate::resolve::PluginDraft;
use crate::toolkit::drivers::{self, Release};

/// Returns the CUDA release of a PTX version (PTX ISA 9.3, "Release Notes").
fn release_of_ptx(version: (u32, u32)) -> Option<Release> {
    let minor = i32::try_from(version.1).ok()?;
    match version {
        (7, 0..=8) => Some((11, minor)),
        (8, 0..=5) => Some((12, minor)),
        // 12.6 added none; the driver tables lack 12.7, which added 8.6.
        (8, 6..=7) => Some((12, 8)),
        (8, 8) => Some((12, 9)),
        (9, _) => Some((13, minor)),
        (4..=6, _) => Some((11, 0)),
        _ => None,
    }
}

/// Reports files that the driver cannot load.
#[must_use]
pub fn check_driver(draft: &PluginDraft, driver: DriverVersion, place: &Span) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for file in draft.units.iter().filter_map(|unit| unit.foreign.as_ref()).flat_map(|code| &code.files) {
        let Some(loaded) = &file.loaded else { continue };
        let (code, required, file) = (describe(loaded), place.clone(), file.span.clone());
        let error: Diagnostic = match oldest(loaded) {
            Some(oldest) if drivers::reaches(driver, oldest) => continue,
            Some(oldest) => {
                let (driver, oldest) = (driver.to_string(), oldest.to_string());
                DriverTooOld { driver, code, oldest, file, required }.into()
            }
            None => {
                let reason = match loaded.ptx.is_some() || loaded.release.is_some() {
                    true => "this version of cubinder is older than that release",
                    false => "neither its header nor a note names the CUDA release that compiled it",
                };
                UnknownDriver { code, reason, file, required }.into()
            }
        };
        if !found.contains(&error) {
            found.push(error);
        }
    }
    fold_file_errors(found)
}

fn oldest(loaded: &LoadedCode) -> Option<DriverVersion> {
    if let Some((version, _)) = &loaded.ptx {
        return release_of_ptx(*version).and_then(drivers::oldest_for_ptx);
    }
    let (major, minor) = loaded.release?;
    // All drivers in the tables (from 11.0) load older files.
    drivers::oldest_for_cubins((i32::try_from(major).ok()?, i32::try_from(minor).ok()?).max((11, 0)))
}

fn describe(loaded: &LoadedCode) -> String {
    match (&loaded.ptx, loaded.release) {
        (Some(((major, minor), _)), _) => format!("PTX {major}.{minor}"),
        (None, Some((major, minor))) => format!("a cubin of CUDA {major}.{minor}"),
        (None, None) => "this cubin".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_versions_are_those_of_releases() {
        for (version, release) in
            [((7, 0), (11, 0)), ((8, 5), (12, 5)), ((8, 8), (12, 9)), ((9, 0), (13, 0)), ((9, 4), (13, 4))]
        {
            assert_eq!(release_of_ptx(version), Some(release));
        }
        assert_eq!(release_of_ptx((10, 0)), None);
    }
}
