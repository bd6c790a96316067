use std::path::Path;

use clap::Args;
use cubinder_node::eval::{self, Choice, Subject};
use cubinder_node::query::{Part, Query};
use cubinder_source::diagnostic::Diagnostic;

/// What a node is like.
#[derive(Args)]
pub(super) struct NodeArguments {
    /// Shape of an input: x=10x3x32x32, x=10,3 or x=scalar
    #[arg(long = "shape", value_name = "NAME=SHAPE")]
    shapes: Vec<String>,
    /// Values of a shape input: target=4,8
    #[arg(long = "values", value_name = "NAME=INTEGERS", allow_hyphen_values = true)]
    values: Vec<String>,
    /// Attribute: pads=1,1 or mode=wrap
    #[arg(long = "attr", value_name = "NAME=VALUE")]
    attributes: Vec<String>,
    /// Type of a type parameter or a tensor: T=f16
    #[arg(long = "type", value_name = "NAME=TYPE")]
    types: Vec<String>,
    /// Format of a format parameter or a tensor: F=hwc8
    #[arg(long = "format", value_name = "NAME=FORMAT")]
    formats: Vec<String>,
}

impl NodeArguments {
    /// Parses the node with `--aligned` and `--device`, which some commands lack.
    pub(super) fn query(&self, aligned: &[String], device: &[String]) -> Result<Query, Vec<Diagnostic>> {
        Query::parse(&[
            (Part::Shape, &self.shapes),
            (Part::Values, &self.values),
            (Part::Device, device),
            (Part::Attribute, &self.attributes),
            (Part::Type, &self.types),
            (Part::Format, &self.formats),
            (Part::Aligned, aligned),
        ])
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        let NodeArguments { shapes, values, attributes, types, formats } = self;
        let options = [
            ("--shape", shapes),
            ("--values", values),
            ("--attr", attributes),
            ("--type", types),
            ("--format", formats),
        ];
        let each = options.into_iter().flat_map(|(option, all)| all.iter().map(move |one| (option, one)));
        each.map(|(option, value)| format!("{option}={value}")).collect()
    }
}

/// Which of several nodes.
#[derive(Args)]
pub(super) struct WhichNode {
    /// Plugin to use, if there are several
    #[arg(long, value_name = "NAME")]
    plugin: Option<String>,
    /// Number of a node in an engine, from 1
    #[arg(long, value_name = "N")]
    node: Option<usize>,
}

impl WhichNode {
    pub(super) fn is_open(&self) -> bool {
        self.plugin.is_none() && self.node.is_none()
    }

    pub(super) fn choose(&self, subjects: Vec<Subject>) -> Result<Vec<Subject>, Vec<Diagnostic>> {
        let choice = Choice { plugin: self.plugin.clone(), node: self.node };
        Ok(eval::choose(subjects, &choice)?)
    }

    pub(super) fn choose_one(&self, subjects: Vec<Subject>, path: &Path) -> Result<Subject, Vec<Diagnostic>> {
        let mut chosen = self.choose(subjects)?;
        match (chosen.pop(), chosen.len()) {
            (Some(subject), 0) => Ok(subject),
            _ => Err(Diagnostic::error(format!("`{}` has several nodes", path.display()))
                .help("select one with `--node N`")
                .into()),
        }
    }
}
