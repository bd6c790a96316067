//! Plugin libraries from models in Rust, without manifests; for builds only.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use cubinder_expr as expr;
use cubinder_expr::{DataType, Format, Interval, Value};
use cubinder_expr::{Expr, Kind, Scope, TensorKind};
use cubinder_library::Mode;
use cubinder_model::{
    Attribute, AttributeType, Bundle, CodeObject, CodeRef, Digest, Input, KernelFacts, Launch, Output,
    Plugin, Scratch, ShapeLimits, SizeBound, Step, Target, Variant, container,
};

/// A plugin under construction; inputs first.
#[derive(Debug, Clone)]
pub struct Draft {
    plugin: Plugin,
    scope: Scope,
}

/// Type and format of a variant's tensor.
pub type Tensor = (DataType, Format);

impl Draft {
    /// Creates a plugin of `sample` with `i32` attributes.
    #[must_use]
    pub fn new(name: &str, attributes: &[(&str, i64)]) -> Draft {
        let mut scope = Scope::new();
        for (index, (name, _)) in (0..).zip(attributes) {
            scope = scope.attribute(*name, index, Kind::Int);
        }
        let attribute = |(name, default): &(&str, i64)| Attribute {
            default: Some(Value::Int(*default)),
            ..Attribute::new(*name, AttributeType::I32)
        };
        let plugin = Plugin {
            name: name.to_owned(),
            namespace: "sample".to_owned(),
            version: "1".to_owned(),
            summary: "Made by hand.".to_owned(),
            attributes: attributes.iter().map(attribute).collect(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            require: Vec::new(),
            timing: None,
            tuning: Vec::new(),
            variants: Vec::new(),
        };
        Draft { plugin, scope }
    }

    fn declare(mut self, name: &str, ranks: (u8, u8), kind: TensorKind) -> Draft {
        let index = u32::try_from(self.plugin.tensor_count()).unwrap_or(u32::MAX);
        self.scope = self.scope.tensor_of_kind(name, index, ranks, kind);
        self
    }

    /// Adds an input with these ranks.
    #[must_use]
    pub fn input(self, name: &str, ranks: (u8, u8)) -> Draft {
        self.declare(name, ranks, TensorKind::Plain).with_input(name, ranks, None)
    }

    /// Adds a one-dimensional shape input: up to 8 values, 0 to `most`.
    #[must_use]
    pub fn shape_input(self, name: &str, most: i64) -> Draft {
        let values = Some(Interval { min: 0, max: most });
        let declared = self.declare(name, (1, 1), TensorKind::ShapeInput);
        let mut draft = declared.with_input(name, (1, 1), values);
        for input in draft.plugin.inputs.iter_mut().rev().take(1) {
            input.limits.every.max = 8;
        }
        draft
    }

    fn with_input(mut self, name: &str, ranks: (u8, u8), values: Option<Interval>) -> Draft {
        self.plugin.inputs.push(Input {
            name: name.to_owned(),
            rank_min: ranks.0,
            rank_max: ranks.1,
            limits: ShapeLimits::default(),
            values,
            doc: "An input.".to_owned(),
        });
        self
    }

    /// Compiles an expression over the declarations so far.
    pub fn expr(&self, text: &str) -> Result<Expr> {
        let typed = expr::compile(text, &self.scope).map_err(|errors| anyhow!("`{text}`: {errors:?}"))?;
        Ok(typed.expr)
    }

    /// Adds an output; dimensions may be sizes.
    pub fn output(self, name: &str, shape: &str) -> Result<Draft> {
        let shape = Draft { scope: self.scope.clone().with_sizes(), ..self.clone() }.expr(shape)?;
        Ok(self.declare(name, (0, 8), TensorKind::Plain).with_output(name, shape, None, None))
    }

    /// Adds an output that aliases this input.
    pub fn alias(self, name: &str, alias: usize) -> Result<Draft> {
        let input = self.plugin.inputs.get(alias).context("no such input")?;
        let (shape, alias) = (self.expr(&format!("{}.shape", input.name))?, u32::try_from(alias)?);
        Ok(self.declare(name, (0, 8), TensorKind::Plain).with_output(name, shape, Some(alias), None))
    }

    /// Adds a size output.
    pub fn size(self, name: &str, upper: &str, opt: &str) -> Result<Draft> {
        let bound = SizeBound { upper: self.expr(upper)?, opt: self.expr(opt)? };
        let shape = self.expr("[]")?;
        Ok(self.declare(name, (0, 0), TensorKind::Size).with_output(name, shape, None, Some(bound)))
    }

    fn with_output(mut self, name: &str, shape: Expr, alias: Option<u32>, size: Option<SizeBound>) -> Draft {
        let limits = ShapeLimits::default();
        let doc = "An output.".to_owned();
        self.plugin.outputs.push(Output { name: name.to_owned(), shape, limits, alias, size, doc });
        self
    }

    /// Adds a variant for these tensors, with optional `scratch` bytes.
    pub fn variant(mut self, id: i32, tensors: &[Tensor], scratch: Option<&str>) -> Result<Draft> {
        let int = |value| Expr { nodes: vec![expr::Node::Int(value)] };
        let launch = Launch {
            kernel: "kernel".to_owned(),
            grid: [int(1), int(1), int(1)],
            block: [int(1), int(1), int(1)],
            shared_bytes: int(0),
            cluster: None,
            cooperative: false,
            programmatic: false,
            args: Vec::new(),
            code: vec![CodeRef { target: target()?, code: 0, symbol: "kernel".to_owned() }],
        };
        let scratch =
            scratch.map(|text| anyhow::Ok(Scratch { name: "partial".to_owned(), bytes: self.expr(text)? }));
        let scratch = scratch.transpose()?;
        self.plugin.variants.push(Variant {
            id,
            label: String::new(),
            types: tensors.iter().map(|(ty, _)| *ty).collect(),
            formats: tensors.iter().map(|(_, format)| *format).collect(),
            specialized: Vec::new(),
            guard: None,
            scratch: scratch.into_iter().collect(),
            steps: vec![Step::launch(launch)],
        });
        Ok(self)
    }

    /// Returns the model.
    #[must_use]
    pub fn plugin(self) -> Plugin {
        self.plugin
    }
}

fn target() -> Result<Target> {
    "sm_89".parse().map_err(|error| anyhow!("{error}"))
}

/// Writes the library `out`, based on `base`; returns its bundle's digest.
pub fn write(base: &Path, plugins: Vec<Plugin>, mode: Mode, out: &Path) -> Result<Digest> {
    let bytes = b"no code at all".to_vec();
    let kernel = KernelFacts {
        symbol: "kernel".to_owned(),
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: None,
        params: Vec::new(),
    };
    let code = CodeObject {
        target: target()?,
        digest: Digest::compute(&bytes),
        kernels: vec![kernel],
        bytes: bytes.into(),
    };
    let bundle = Bundle { producer: "cubinder tests".to_owned(), plugins, code: vec![code] };
    let bytes = container::write_bundle(&bundle);
    let found = container::read(&bytes).context("the model is not valid")?;
    cubinder_library::inject(base, &bytes, mode, out).map_err(|error| anyhow!("{error:?}"))?;
    Ok(found.digest)
}
