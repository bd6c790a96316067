//! The options of the guides' runner, applied to manifests.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::catalogue::Sample;

/// The options, spelled as in the guides.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The sample
    #[arg(value_enum, value_name = "SAMPLE")]
    pub(crate) which: Which,
    /// In the guides: define the function that offers types and formats. Here the manifest lists them, and all are offered
    #[arg(long)]
    pub(crate) autotune: bool,
    /// In the guides: define several tactics. Here each variant of the manifest is a tactic
    #[arg(long = "multi_tactic", alias = "multi-tactic")]
    pub(crate) multi_tactic: bool,
    /// Save the engine, its inputs and references in the folder of --artifacts_dir
    #[arg(long = "save_engine", alias = "save-engine")]
    pub(crate) save_engine: bool,
    /// Load the engine from the folder of --artifacts_dir; compile and build nothing. All other options are ignored
    #[arg(long = "load_engine", alias = "load-engine")]
    pub(crate) load_engine: bool,
    /// How the network is created. `inetdef` needs full TensorRT; here it prints the reason
    #[arg(long, value_enum, default_value = "onnx")]
    pub(crate) mode: Mode,
    /// The folder for --save_engine and --load_engine [default: build/sample/SAMPLE]
    #[arg(long = "artifacts_dir", alias = "artifacts-dir", value_name = "DIR")]
    pub(crate) artifacts_dir: Option<PathBuf>,
    /// In the guides: use the kernel that was compiled ahead of time. Here every kernel is
    #[arg(long)]
    pub(crate) aot: bool,
    /// The element type of the network's tensors
    #[arg(long, value_enum, default_value = "fp32")]
    pub(crate) precision: Precision,
    /// Show TensorRT's complete log
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Which {
    /// Adds one to every element
    Add,
    /// Adds numbers in place, with two nodes
    InplaceAdd,
    /// Finds the elements that are not zero
    NonZero,
    /// Pads by wrapping around, with three nodes
    CircPad,
}

/// How the network is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// TensorRT's parser reads an ONNX model
    Onnx,
    /// The network is defined call by call; needs full TensorRT
    Inetdef,
}

/// The element type of the network's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Precision {
    /// Single precision
    Fp32,
    /// Half precision
    Fp16,
}

impl Which {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl Precision {
    pub(crate) const fn element_type(self) -> &'static str {
        match self {
            Precision::Fp32 => "f32",
            Precision::Fp16 => "f16",
        }
    }
}

pub(crate) const WHY_NOT_INETDEF: &str = "\
`--mode inetdef` requires full TensorRT: it adds plugins to a network with `INetworkDefinition::addPluginV3`, which \
TensorRT-RTX 1.7 and its Python bindings (`add_plugin_v3`) lack. With full TensorRT, load the same library, get the \
creator `sample::NAME` from the registry, create the plugin with its fields, and add it to the network. Here, use `--mode onnx`.";

impl Options {
    pub(crate) fn folder(&self, root: &Path) -> PathBuf {
        self.artifacts_dir.clone().unwrap_or_else(|| root.join("build/sample").join(self.which.name()))
    }

    pub(crate) fn explained(&self, sample: &Sample) -> Vec<String> {
        if self.load_engine {
            return vec!["--load_engine: the saved engine is used; other options are ignored.".to_owned()];
        }
        let mut lines = Vec::new();
        if self.autotune {
            lines.push(format!(
                "--autotune: this plugin always offers {}, as listed in its manifest. TensorRT-RTX selects the \
                 network's type and the first tactic, without measurements.",
                sample.offers
            ));
        }
        if self.multi_tactic {
            lines.push(match sample.variants {
                1 => "--multi_tactic: this plugin has only one variant.".to_owned(),
                variants => format!(
                    "--multi_tactic: this plugin always has {variants} variants. Variants whose guards are proved for \
                     the profile are tactics. TensorRT-RTX selects the first tactic, which launches the first variant \
                     that fits, chosen again for each shape and address."
                ),
            });
        }
        if self.aot {
            lines.push(
                "--aot: the node has `aot` = 1. This plugin is always compiled ahead of time: its machine code is in the engine.".to_owned(),
            );
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::samples;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &str) -> Options {
        Line::try_parse_from(std::iter::once("sample").chain(line.split_whitespace())).unwrap().options
    }

    #[test]
    fn options_are_spelt_as_in_the_guides() {
        let all = "circ_pad --autotune --multi_tactic --save_engine --load_engine --mode onnx --artifacts_dir d --aot --precision fp16 -v";
        let all = options(all);
        assert!(
            all.autotune && all.multi_tactic && all.save_engine && all.load_engine && all.aot && all.verbose
        );
        assert_eq!(all.precision.element_type(), "f16");
        assert_eq!(all.folder(Path::new("/root")), Path::new("d"));
        let none = options("add");
        assert_eq!((none.mode, none.precision), (Mode::Onnx, Precision::Fp32));
        assert_eq!(none.folder(Path::new("/r")), Path::new("/r/build/sample/add"));
        assert_eq!(options("add --mode inetdef").mode, Mode::Inetdef);
        assert!(Line::try_parse_from(["sample", "subtract"]).is_err());
    }

    fn explained(line: &str) -> Vec<String> {
        let options = options(line);
        options.explained(&samples().unwrap()[&options.which.name()])
    }

    #[test]
    fn options_without_effect_are_explained() {
        assert!(explained("circ_pad").is_empty());
        let lines = explained("circ_pad --autotune --multi_tactic --aot");
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("f32 and f16") && lines[1].contains("10 variants"), "{lines:?}");
        assert!(explained("add --multi_tactic")[0].contains("one variant"));
        assert_eq!(explained("add --load_engine --aot").len(), 1);
    }

    #[test]
    fn an_unsupported_mode_is_explained() {
        for part in ["addPluginV3", "full TensorRT", "--mode onnx"] {
            assert!(WHY_NOT_INETDEF.contains(part), "{part}");
        }
    }
}
