use cubinder_model::provenance::{self, File, Origin, Read, Section};
use cubinder_model::{CodeObject, Digest};
use serde::Serialize;

use super::{ContainerReport, Report};

report! {
    /// Provenance of a bundle or node.
    ProvenanceReport {
        /// Cubinder's version.
        cubinder: String,
        /// Format version.
        format: u32,
        /// Compiler of sources.
        [optional] compiler: Option<CompilerReport>,
        /// Manifests, one per plugin.
        manifests: Vec<FileReport>,
        /// Tuning files.
        tuning: Vec<FileReport>,
        /// Sources of code.
        origins: Vec<OriginReport>,
    }

    /// A compiler.
    CompilerReport {
        /// Name and version.
        name: String,
        /// Digest of its library, hexadecimal.
        identity: String,
    }

    /// A file that was read.
    #[derive(Default)]
    FileReport {
        /// Path relative to the project.
        path: String,
        /// BLAKE3 of its bytes, hexadecimal.
        digest: String,
    }

    /// Origin of some code.
    #[derive(Default)]
    OriginReport {
        /// Source or precompiled file.
        #[serde(flatten)]
        file: FileReport,
        /// `source` or `imported`.
        kind: &'static str,
        /// Producer of imported code, if named.
        [optional] made_by: Option<String>,
        /// Options of a source.
        [optional] options: Option<Vec<String>>,
        /// Files that a source includes.
        [optional] read: Option<Vec<FileReport>>,
        /// Number of those files.
        [optional] read_count: Option<u32>,
        /// Digest of those files, hexadecimal.
        [optional] read_digest: Option<String>,
        /// Number of CUDA headers included.
        [optional] headers_count: Option<u32>,
        /// Digest of those headers, hexadecimal.
        [optional] headers_digest: Option<String>,
        /// Whether macro-computed includes are unlisted.
        [optional] reads_more: Option<bool>,
        /// The code.
        code: Vec<MadeCode>,
    }

    /// A code object.
    MadeCode {
        /// Target.
        target: String,
        /// BLAKE3 of the code, hexadecimal.
        digest: String,
    }
}

/// Reads the records behind the container with digest `of`. Invalid sections are damage.
pub(super) fn behind(
    sections: &[u8],
    of: Digest,
    format: u32,
    code: &[CodeObject],
) -> Result<Option<ProvenanceReport>, String> {
    let found = provenance::find(sections, of)
        .map_err(|error| format!("cannot read the provenance of the preceding container: {error}"))?;
    let Some(Section::Provenance(record)) = found else { return Ok(None) };
    if record.code.len() != code.len() {
        let (recorded, found) = (record.code.len(), code.len());
        return Err(format!("its provenance has {recorded} code objects, but the container has {found}"));
    }
    let origins = (0..).zip(&record.origins).map(|(index, origin): (u32, _)| {
        let of_it = record.code.iter().zip(code).filter(|(origins, _)| origins.contains(&index));
        origin_report(origin, of_it.map(|(_, code)| made_code(code)).collect())
    });
    Ok(Some(ProvenanceReport {
        format,
        compiler: record.compiler.as_ref().map(|compiler| CompilerReport {
            name: compiler.name.clone(),
            identity: compiler.identity.to_string(),
        }),
        manifests: record.manifests.iter().map(file_report).collect(),
        tuning: record.tuning.iter().map(file_report).collect(),
        origins: origins.collect(),
        cubinder: record.cubinder,
    }))
}

fn made_code(code: &CodeObject) -> MadeCode {
    MadeCode { target: code.target.to_string(), digest: code.digest.to_string() }
}

fn file_report(file: &File) -> FileReport {
    FileReport { path: file.path.clone(), digest: file.digest.to_string() }
}

fn origin_report(origin: &Origin, code: Vec<MadeCode>) -> OriginReport {
    match origin {
        Origin::Imported { file, made_by } => OriginReport {
            file: file_report(file),
            kind: "imported",
            made_by: Some(made_by.clone()).filter(|made_by| !made_by.is_empty()),
            code,
            ..OriginReport::default()
        },
        Origin::Source { file, read, headers, is_open, options } => {
            let (count, digest) = read.together();
            OriginReport {
                file: file_report(file),
                kind: "source",
                options: Some(options.clone()),
                read: match read {
                    Read::Files(files) => Some(files.iter().map(file_report).collect()),
                    Read::Together(..) => None,
                },
                read_count: Some(count),
                read_digest: Some(digest.to_string()),
                headers_count: Some(headers.map_or(0, |headers| headers.count)),
                headers_digest: headers.map(|headers| headers.digest.to_string()),
                reads_more: Some(*is_open),
                code,
                ..OriginReport::default()
            }
        }
    }
}

/// Formats all provenance of a file.
#[must_use]
pub fn provenance_text(report: &Report) -> String {
    let mut text = format!("{}\n", report.file);
    if report.containers.is_empty() {
        text.push_str("no bundle or node, no compiled code\n");
    }
    for container in &report.containers {
        of_container(container, &mut text);
    }
    for damaged in &report.damaged {
        text.push_str(&format!("damaged at byte {}: {}\n", damaged.offset, damaged.error));
    }
    text
}

fn of_container(container: &ContainerReport, text: &mut String) {
    let names: Vec<&str> = container.plugins.iter().map(|plugin| plugin.name.as_str()).collect();
    text.push_str(&format!("\n{} {}: {}\n", container.kind, container.digest, names.join(", ")));
    let Some(record) = &container.provenance else {
        text.push_str(&match &container.refers_to {
            Some(bundle) => format!("  see bundle {bundle}, which contains its code\n"),
            None => "  no provenance: it is from a version before provenance existed, or newer than this program\n"
                .to_owned(),
        });
        return;
    };
    text.push_str(&format!("  cubinder {}, format {}\n", record.cubinder, record.format));
    if let Some(CompilerReport { name, identity }) = &record.compiler {
        text.push_str(&format!("  {name} {identity}\n"));
    }
    record.manifests.iter().for_each(|file| line(text, 2, "manifest", file));
    record.tuning.iter().for_each(|file| line(text, 2, "tuning", file));
    record.origins.iter().for_each(|origin| of_origin(origin, text));
}

fn of_origin(origin: &OriginReport, text: &mut String) {
    line(text, 2, origin.kind, &origin.file);
    if let Some(made_by) = &origin.made_by {
        text.push_str(&format!("    by {made_by}\n"));
    }
    if let Some(options) = origin.options.as_ref().filter(|options| !options.is_empty()) {
        text.push_str(&format!("    options {}\n", options.join(" ")));
    }
    match (&origin.read, origin.read_count, &origin.read_digest) {
        (Some(files), _, _) => files.iter().for_each(|file| line(text, 4, "read", file)),
        (None, Some(count), Some(digest)) if count > 0 => {
            text.push_str(&format!("    read {count} files, combined digest {digest}\n"));
        }
        _ => {}
    }
    if let (Some(count), Some(digest)) = (origin.headers_count, &origin.headers_digest) {
        text.push_str(&format!("    CUDA headers: {count}, combined digest {digest}\n"));
    }
    if origin.reads_more == Some(true) {
        text.push_str("    read other files, whose names are macro expansions\n");
    }
    for MadeCode { target, digest } in &origin.code {
        text.push_str(&format!("    code {target} {digest}\n"));
    }
}

fn line(text: &mut String, indent: usize, what: &str, file: &FileReport) {
    text.push_str(&format!("{:indent$}{what} {} {}\n", "", file.path, file.digest));
}
