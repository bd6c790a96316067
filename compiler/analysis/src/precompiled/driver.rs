//! Whether the oldest driver that a manifest names loads code that other compilers made.

use crate::diagnostic::{Diagnostic, Span};
use crate::foreign::as_one;
use crate::loaded::Loaded;
use crate::manifest::DriverVersion;
use crate::resolve::PluginDraft;
use crate::rules;
use crate::toolkit::drivers::{self, Release};

/// The PTX version of each release of CUDA (PTX ISA 9.3, "Release Notes"): from 11.0 to 12.3 and from 12.8 on they rise together.
fn release_of_ptx(version: (u32, u32)) -> Option<Release> {
    let minor = i32::try_from(version.1).ok()?;
    match version {
        (7, 0..=8) => Some((11, minor)),
        (8, 0..=5) => Some((12, minor)),
        // 12.6 brought none of its own; 8.6 came with 12.7, which the tables of drivers do not have: 12.8 is the next.
        (8, 6..=7) => Some((12, 8)),
        (8, 8) => Some((12, 9)),
        (9, _) => Some((13, minor)),
        (4..=6, _) => Some((11, 0)),
        _ => None,
    }
}

/// Errors for the files that the driver does not load, each once.
#[must_use]
pub fn check_driver(draft: &PluginDraft, driver: DriverVersion, place: &Span) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for file in draft.units.iter().filter_map(|unit| unit.foreign.as_ref()).flat_map(|code| &code.files) {
        let Some(loaded) = &file.loaded else { continue };
        let error = match oldest(loaded) {
            Oldest::Is(oldest) if drivers::reaches(driver, oldest) => continue,
            Oldest::Is(oldest) => {
                let error = Diagnostic::error(format!("driver {driver} does not load {}", what(loaded)));
                error
                    .note(format!("the first that does is {oldest}"))
                    .help("make it with an older release of CUDA, leave the file out, or raise `min_driver`")
            }
            Oldest::IsNotKnown => {
                let error = Diagnostic::error(format!("it is not known which drivers load {}", what(loaded)));
                let why = match loaded.ptx.is_some() || loaded.release.is_some() {
                    true => "this version of cubinder was made before that release",
                    false => "neither its header nor a note tells which release of CUDA made it",
                };
                error.note(why).help("leave the file out, or `min_driver`")
            }
        };
        let error = error
            .code(rules::DRIVER_TOO_OLD)
            .at(file.span.clone(), "this file")
            .related(place.clone(), "this driver must be able to");
        if !found.contains(&error) {
            found.push(error);
        }
    }
    as_one(found)
}

enum Oldest {
    Is(DriverVersion),
    IsNotKnown,
}

/// The oldest driver for a file.
fn oldest(loaded: &Loaded) -> Oldest {
    let driver = match (&loaded.ptx, loaded.release) {
        (Some((version, _)), _) => release_of_ptx(*version).and_then(drivers::oldest_for_ptx),
        (None, Some((major, minor))) => {
            let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
            // The tables begin with 11.0; what is older is loaded by all drivers in them.
            drivers::oldest_for_cubins((number(major), number(minor)).max((11, 0)))
        }
        (None, None) => None,
    };
    driver.map_or(Oldest::IsNotKnown, Oldest::Is)
}

fn what(loaded: &Loaded) -> String {
    match (&loaded.ptx, loaded.release) {
        (Some(((major, minor), _)), _) => format!("PTX of version {major}.{minor}"),
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
