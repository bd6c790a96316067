//! Compares parameters with each file, arguments with parameters, and the launch with the code's requirements.

use cubinder_expr::{Node, ScalarType};
use cubinder_model::{Arg, ArgValue, KernelFacts, Plugin, TargetKind};

use super::errors::{
    DifferentClusters, ExchangedParameters, NumberAsAddress, ParameterCount, ParameterKind, ParameterOffset,
    ParameterSize, WrittenThroughConst,
};
use super::parameter_facts::{Check, FactSource, ParameterFact, parameter_facts};
use crate::cubin::{self, PtxParam};
use crate::diagnostic::{Diagnostic, Label, Span, has_errors};
use crate::kernel_signature::{ParamType, Signature};
use crate::loaded::LoadedCode;
use crate::resolve::{ArgDraftValue, ForeignCode, ForeignFile, Unit};
use crate::verify::{self, BoundArgs};

/// Results of comparing a launch with its code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedCode {
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Arguments; `None` after errors.
    pub bound: Option<BoundArgs>,
    /// Code's cluster size, unless the launch's.
    pub cluster: Option<[u32; 3]>,
    /// Pointers that no file describes.
    pub unchecked: Option<UncheckedPointers>,
}

/// Parameters whose pointees only the manifest declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncheckedPointers {
    /// Name of the code.
    pub code: String,
    /// Span of the name.
    pub code_span: Span,
    /// Parameter names; never empty.
    pub params: Vec<String>,
}

struct KernelFile<'a> {
    file: &'a ForeignFile,
    loaded: &'a LoadedCode,
    kernel: &'a KernelFacts,
    facts: Option<(FactSource, Vec<ParameterFact>)>,
}

/// For the first file only.
#[derive(Default)]
struct Findings {
    known: Vec<Diagnostic>,
    reported: Vec<Diagnostic>,
}

impl Findings {
    fn add(&mut self, file: &ForeignFile, label: &str, finding: impl Into<Diagnostic>) {
        let mut finding = finding.into();
        if !self.known.contains(&finding) {
            self.known.push(finding.clone());
            finding.related.insert(0, Label { span: file.span.clone(), text: label.to_owned() });
            self.reported.push(finding);
        }
    }
}

/// Compares a unit with its readable files.
#[must_use]
pub fn check(plugin: &Plugin, unit: &Unit) -> CheckedCode {
    let Some(code) = &unit.foreign else { return CheckedCode::default() };
    let files = code.files.iter().filter_map(|file| {
        let loaded = file.loaded.as_deref()?;
        let kernel = loaded.kernels.iter().find(|kernel| kernel.symbol == unit.kernel)?;
        Some(KernelFile { file, loaded, kernel, facts: parameter_facts(loaded, kernel) })
    });
    let files: Vec<KernelFile<'_>> = files.collect();
    let mut found = Findings::default();
    for file in &files {
        parameters(&mut found, code, file);
    }
    if found.reported.is_empty() {
        for KernelFile { file, facts, .. } in &files {
            let Some((source, facts)) = facts else { continue };
            if let Some(finding) = (Check { plugin, unit, code }).run(facts) {
                found.add(file, source.text(), finding);
            }
        }
    }
    let args = match verify::bind_args(plugin, unit, &code.signature) {
        Ok(args) if !has_errors(&found.reported) => args,
        bound => {
            found.reported.extend(bound.err().into_iter().flatten());
            return CheckedCode { diagnostics: found.reported, ..CheckedCode::default() };
        }
    };
    let launch = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    let has_clusters = launch.is_some_and(|launch| launch.cluster.is_some());
    let mut clusters: Vec<(&ForeignFile, Option<[u32; 3]>)> = Vec::new();
    for KernelFile { file, loaded, kernel, .. } in &files {
        let rules = loaded.rules.get(&unit.kernel).copied().unwrap_or_default();
        let cluster = match rules.cluster {
            Some(cubin::Cluster::Of(size)) => Some(size),
            Some(cubin::Cluster::AtLaunch) | None => None,
        };
        clusters.push((file, cluster));
        let Some(launch) = launch else { continue };
        let in_file = Unit { kernel_span: file.span.clone(), ..unit.clone() };
        let (unit_of_file, signature, target) = (&in_file, &code.signature, loaded.target);
        let check =
            verify::CodeCheck { unit: unit_of_file, launch, args: &args, signature, target, kernel, rules };
        found.reported.extend(verify::check_code(&check).err().into_iter().flatten());
        let label = match target.kind {
            TargetKind::Ptx | TargetKind::Native => "the file has `.extern .shared`",
            TargetKind::Cubin => "the file reserves only dynamic shared memory",
        };
        if let Some(warning) = verify::no_shared(unit, launch, rules) {
            found.add(file, label, warning);
        }
    }
    if !has_clusters {
        found.reported.extend(different_clusters(unit, &clusters));
    }
    for KernelFile { file, loaded, .. } in &files {
        let named = loaded.signatures.get(&unit.kernel);
        if let Some(finding) = named.and_then(|named| exchanged(code, named)) {
            found.add(file, "according to the debug information of this file", finding);
        }
    }
    addresses(&mut found, plugin, unit, code, &args, &files);
    let mut diagnostics = found.reported;
    diagnostics.extend(verify::writable_inputs(plugin, unit, &code.signature));
    let bound = (!has_errors(&diagnostics)).then(|| BoundArgs {
        args,
        read_only: verify::read_only(&code.signature),
        number_bytes: verify::number_bytes(&code.signature),
    });
    let cluster = clusters.first().and_then(|(_, size)| *size).filter(|_| !has_clusters);
    CheckedCode { diagnostics, bound, cluster, unchecked: unchecked(unit, code, &files) }
}

fn unchecked(unit: &Unit, code: &ForeignCode, files: &[KernelFile<'_>]) -> Option<UncheckedPointers> {
    let gets_tensor = |name: &str| {
        unit.args.iter().any(|arg| arg.name == name && matches!(arg.value, ArgDraftValue::Tensor(_)))
    };
    let has_type = |index: usize| {
        let mut facts = files.iter().filter_map(|file| file.facts.as_ref()?.1.get(index));
        facts.any(ParameterFact::is_of_type)
    };
    let params = code.signature.params.iter().enumerate();
    let params = params.filter(|(index, param)| gets_tensor(&param.name) && !has_type(*index));
    let params: Vec<String> = params.map(|(_, param)| param.name.clone()).collect();
    let (code, code_span) = (code.name.clone(), code.name_span.clone());
    (!params.is_empty()).then_some(UncheckedPointers { code, code_span, params })
}

/// All files share one launch.
fn different_clusters(unit: &Unit, clusters: &[(&ForeignFile, Option<[u32; 3]>)]) -> Option<Diagnostic> {
    let ((first, size), rest) = clusters.split_first()?;
    let (second, other) = rest.iter().find(|(_, other)| other != size)?;
    let shown = |size: &Option<[u32; 3]>| match size {
        Some([x, y, z]) => format!("clusters of {x}x{y}x{z} blocks"),
        None => "no clusters".to_owned(),
    };
    let (size, other) = (shown(size), shown(other));
    let (first, second) = (first.span.clone(), second.span.clone());
    Some(DifferentClusters { kernel: &unit.kernel, size, other, first, second }.into())
}

fn parameters(
    found: &mut Findings,
    code: &ForeignCode,
    KernelFile { file, loaded, kernel, .. }: &KernelFile<'_>,
) {
    let name = &kernel.symbol;
    let declared = &code.signature.params;
    let (count, expected) = (kernel.params.len(), declared.len());
    if count != expected {
        let sizes: Vec<String> = kernel.params.iter().map(|param| param.size.to_string()).collect();
        let (sizes, span) = (sizes.join(", "), code.name_span.clone());
        found.add(file, "the file", ParameterCount { kernel: name, count, expected, sizes, span });
        return;
    }
    let entries = loaded.ptx.iter().flat_map(|(_, origin)| &origin.entries);
    let entry = entries.into_iter().find(|entry| entry.symbol == *name);
    for (index, ((param, in_file), span)) in
        declared.iter().zip(&kernel.params).zip(&code.param_spans).enumerate()
    {
        let (size, align) = size_and_align(&param.ty);
        let place = format!("parameter {} of the kernel `{name}`", index + 1);
        let (parameter, span, offset) = (&param.name, span.clone(), in_file.offset);
        let kind_in_file =
            entry.and_then(|it| it.params.get(index)).and_then(|it| other_kind(&param.ty, *it));
        if size != in_file.size {
            let (bytes, in_file) = (verify::bytes(size), in_file.size);
            found.add(file, "the file", ParameterSize { parameter, bytes, in_file, place, span });
        } else if !offset.is_multiple_of(align) {
            found.add(file, "the file", ParameterOffset { parameter, offset, align, place, span });
        } else if is_const(&param.ty) && entry.is_some_and(|it| it.are_written.get(index) == Some(&true)) {
            let spelling = &param.spelling;
            found.add(file, "the file", WrittenThroughConst { parameter, spelling, place, span });
        } else if let Some(in_file) = kind_in_file {
            let declared = kind(&param.ty);
            found.add(file, "the file", ParameterKind { parameter, declared, in_file, place, span });
        }
    }
}

fn is_const(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Pointer { is_const: true, .. })
}

fn exchanged(code: &ForeignCode, named: &Signature) -> Option<Diagnostic> {
    let declared = &code.signature;
    let mut pairs = declared.params.iter().zip(&named.params).zip(&code.param_spans);
    let ((param, in_file), span) = pairs.find(|((param, in_file), _)| {
        param.name != in_file.name
            && declared.find(&in_file.name).is_some()
            && named.find(&param.name).is_some()
    })?;
    let (first, second, signature, span) = (&in_file.name, &param.name, named.to_string(), span.clone());
    Some(ExchangedParameters { first, second, signature, span }.into())
}

fn other_kind(ty: &ParamType, in_file: PtxParam) -> Option<&'static str> {
    let is_float = matches!(ty, ParamType::Scalar(ScalarType::F32 | ScalarType::F64));
    let is_number = !matches!(ty, ParamType::Array { .. } | ParamType::Other { .. });
    match in_file {
        PtxParam::Float if !is_float && is_number => Some("a float"),
        PtxParam::Integer if is_float => Some("an integer"),
        PtxParam::Pointer if is_float => Some("an address"),
        _ => None,
    }
}

fn kind(ty: &ParamType) -> &'static str {
    match ty {
        ParamType::Pointer { .. } => "an address",
        ParamType::Scalar(ScalarType::F32 | ScalarType::F64) => "a float",
        ParamType::Array { .. } | ParamType::Other { .. } => "an array",
        _ => "an integer",
    }
}

fn size_and_align(ty: &ParamType) -> (u32, u32) {
    match ty {
        ParamType::Pointer { .. } => (8, 8),
        ParamType::Scalar(ty) | ParamType::Enum(ty) => (ty.size(), ty.size().max(1)),
        ParamType::Array { element, len } => (element.size().saturating_mul(*len), element.size().max(1)),
        ParamType::Other { size, .. } => (*size, 1),
    }
}

fn addresses(
    found: &mut Findings,
    plugin: &Plugin,
    unit: &Unit,
    code: &ForeignCode,
    args: &[Arg],
    files: &[KernelFile<'_>],
) {
    let of_ptx = files.iter().filter_map(|KernelFile { file, loaded, .. }| {
        let (_, origin) = loaded.ptx.as_ref()?;
        let entry = origin.entries.iter().find(|entry| entry.symbol == unit.kernel)?;
        Some((*file, entry.params.iter().map(|param| *param == PtxParam::Pointer).collect::<Vec<bool>>()))
    });
    let of_types = files.iter().filter_map(|KernelFile { file, facts, .. }| {
        Some((*file, facts.as_ref()?.1.iter().map(ParameterFact::is_address).collect()))
    });
    for (file, are_addresses) in of_ptx.chain(of_types) {
        for (arg, is_address) in args.iter().zip(are_addresses) {
            let is_number = matches!(&arg.value, ArgValue::Scalar { expr, .. } if expr.nodes.as_slice() != [Node::Int(0)]);
            if is_address && is_number {
                let draft = unit.args.iter().find(|draft| draft.name == arg.name);
                let span = draft.map_or(&code.name_span, |draft| &draft.value_span).clone();
                let tensor = plugin.tensor_name(0).unwrap_or("x");
                let finding = NumberAsAddress { parameter: &arg.name, tensor, span };
                found.add(file, "this file uses it as a pointer", finding);
            }
        }
    }
}
