use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use clap::Args;
use cubinder_compiler::extract::{CodeForm, ExtractedCode, extract};
use cubinder_model::Target;
use cubinder_source::atomic_file::{self, AtomicFile, file_error, parent_folder};
use cubinder_source::diagnostic::{Diagnostic, harmless};
use cubinder_source::path::is_same_file;

use super::inspect::{keep_plugin, read_report};
use super::output::{check_file, check_folder, print, print_bytes};
use super::suggestions;

/// Write the code in a plugin library, a bundle or an engine: machine code, PTX, or disassembled machine code.
///
/// Without --output and --out-dir, PTX and disassembled code are printed. In a folder, files are named after a plugin, the target and the digest of
/// the code. `nvdisasm` of the CUDA toolkit disassembles; it is searched in CUDA_HOME and PATH.
///
/// Engines are scanned for nodes; TensorRT is not needed. Engines built with --embed contain the code once.
#[derive(Args)]
pub(super) struct Arguments {
    /// Plugin library, bundle, engine, cubin or PTX
    file: PathBuf,
    /// Form of the code
    #[arg(long = "as", value_name = "FORM", value_enum)]
    form: CodeForm,
    /// Only code of this plugin: `NAME`, `NAMESPACE::NAME`, or the first digits of the digest of a node or bundle
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    /// Only code for this target, such as sm_90 or compute_80; repeat or separate with commas
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',', value_parser = suggestions::target(Target::from_str), hide_possible_values = true)]
    targets: Vec<Target>,
    /// File to write, if one code object is selected
    #[arg(long, short, value_name = "FILE", conflicts_with = "out_dir")]
    output: Option<PathBuf>,
    /// Folder for the files
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    arguments.output.as_deref().map_or(Ok(()), check_file)?;
    arguments.out_dir.as_deref().map_or(Ok(()), check_folder)?;
    let (mut report, bytes) = read_report(&arguments.file)?;
    if let Some(name) = &arguments.plugin {
        keep_plugin(&mut report, name, &arguments.file)?;
    }
    let targets: Vec<String> = arguments.targets.iter().map(ToString::to_string).collect();
    let code = extract(&report, &bytes, arguments.form, &targets)?;
    match (&arguments.output, &arguments.out_dir) {
        (Some(file), _) => write(&arguments.file, &[(file.clone(), only(&code)?)])?,
        (None, Some(folder)) => {
            let files: Vec<_> = code.iter().map(|code| (folder.join(&code.name), code)).collect();
            write(&arguments.file, &files)?;
        }
        (None, None) if arguments.form == CodeForm::Cubin => {
            return Err(
                Diagnostic::error("missing `--output` or `--out-dir`: machine code is not printed").into()
            );
        }
        (None, None) => show(&code),
    }
    Ok(true)
}

fn only(code: &[ExtractedCode]) -> Result<&ExtractedCode, Diagnostic> {
    match code {
        [only] => Ok(only),
        several => {
            let error =
                Diagnostic::error(format!("`--output` names one file for {} code objects", several.len()));
            let error = several.iter().take(10).fold(error, |error, code| error.note(code.name.clone()));
            Err(error.help("select one with `--plugin` and `--target`, or use `--out-dir`"))
        }
    }
}

fn show(code: &[ExtractedCode]) {
    for ExtractedCode { name, bytes, .. } in code {
        print(&format!("// {}\n", harmless(name, false)));
        print_bytes(bytes);
        print("\n");
    }
}

fn write(input: &Path, files: &[(PathBuf, &ExtractedCode)]) -> Result<(), Diagnostic> {
    let mut drafts = Vec::new();
    for (path, code) in files {
        if is_same_file(path, input) {
            return Err(Diagnostic::error(format!("the output `{}` is the input", path.display()))
                .help("choose another file"));
        }
        let folder = parent_folder(path);
        std::fs::create_dir_all(folder).map_err(|error| file_error("create the folder", folder, &error))?;
        atomic_file::check_replaceable(path, path, "the output")?;
        let draft =
            AtomicFile::with_bytes(path, &code.bytes).map_err(|error| file_error("write", path, &error))?;
        drafts.push((draft, path));
    }
    atomic_file::persist_all(drafts)?;
    files.iter().for_each(|(path, _)| print(&format!("wrote {}\n", path.display())));
    Ok(())
}
