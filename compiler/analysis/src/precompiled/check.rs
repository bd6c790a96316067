//! A launch against the code that it launches: parameters of the manifest against those of each file, arguments against parameters,
//! the launch against what the code demands.

use cubinder_expr::Node;
use cubinder_model::{ArgValue, KernelFacts, Plugin, TargetKind};

use super::told::{self, Told, Witness};
use crate::cubin::{self, LaunchRules, PtxEntry, PtxParam};
use crate::diagnostic::{Diagnostic, Span};
use crate::kernel_signature::{Param, ParamType, Signature};
use crate::loaded::Loaded;
use crate::resolve::{ArgDraft, ArgDraftValue, ForeignCode, ForeignFile, Unit};
use crate::rules;
use crate::verify::{self, Bound};

/// What came of holding a launch against its code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Held {
    /// What is wrong, and what the author should look at.
    pub diagnostics: Vec<Diagnostic>,
    /// The arguments; none where anything is wrong.
    pub bound: Option<Bound>,
    /// The clusters that the code asks for, where the launch does not say them.
    pub cluster: Option<[u32; 3]>,
    /// What no file tells of its pointers.
    pub unheld: Option<Unheld>,
}

/// Parameters that get a tensor, of which no file tells what they point to: the manifest is taken at its word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheld {
    /// What the manifest calls the code.
    pub code: String,
    /// Where it is.
    pub code_span: Span,
    /// The parameters' names; never empty.
    pub params: Vec<String>,
}

/// Holds a unit against its code, as far as its files could be read. A unit without code is held against nothing.
#[must_use]
pub fn check(plugin: &Plugin, unit: &Unit) -> Held {
    let Some(code) = &unit.foreign else { return Held::default() };
    let mut found = Vec::new();
    let all_told: Vec<(&ForeignFile, Witness, Vec<Told>)> = files(code)
        .filter_map(|(file, loaded)| {
            let (witness, told) = told::told(loaded, kernel(loaded, unit)?)?;
            Some((file, witness, told))
        })
        .collect();
    for (file, loaded) in files(code) {
        if let Some(kernel) = kernel(loaded, unit) {
            new(&mut found, parameters(code, file, loaded, kernel));
        }
    }
    if found.is_empty() {
        for (file, witness, told) in &all_told {
            let check = told::Check { plugin, unit, code, file, witness: *witness };
            new(&mut found, check.run(told));
        }
    }
    let args = match verify::bind_args(plugin, unit, &code.signature) {
        Ok(args) => args,
        Err(errors) => {
            found.extend(errors);
            return Held { diagnostics: found, ..Held::default() };
        }
    };
    if crate::diagnostic::has_errors(&found) {
        return Held { diagnostics: found, ..Held::default() };
    }
    let says = plugin.variants.get(unit.variant).and_then(|variant| variant.launch(unit.step));
    let is_said = says.is_some_and(|launch| launch.cluster.is_some());
    let mut clusters: Vec<(&ForeignFile, Option<[u32; 3]>)> = Vec::new();
    for (file, loaded) in files(code) {
        let Some(kernel) = kernel(loaded, unit) else { continue };
        let rules = loaded.rules.get(&unit.kernel).copied().unwrap_or_default();
        let asked = match rules.cluster {
            Some(cubin::Cluster::Of(size)) => Some(size),
            Some(cubin::Cluster::AtLaunch) | None => None,
        };
        clusters.push((file, asked));
        let Some(launch) = says else { continue };
        // Of what is wrong with a file the file is the place.
        let here = Unit { kernel_span: file.span.clone(), ..unit.clone() };
        let signature = &code.signature;
        let target = loaded.target;
        let held = verify::CodeCheck { unit: &here, launch, args: &args, signature, target, kernel, rules };
        new(&mut found, verify::check_code(&held).err().unwrap_or_default());
        new(&mut found, no_shared(unit, launch, file, loaded, rules).into_iter().collect());
    }
    if !is_said {
        found.extend(other_clusters(unit, &clusters));
    }
    for (file, loaded) in files(code) {
        let named = loaded.signatures.get(&unit.kernel);
        new(&mut found, named.and_then(|named| exchanged(code, file, named)).into_iter().collect());
    }
    found.extend(addresses(plugin, unit, code, &args, &all_told));
    found.extend(verify::writable_inputs(plugin, unit, &code.signature));
    let is_wrong = crate::diagnostic::has_errors(&found);
    let read_only = verify::read_only(&code.signature);
    let number_bytes = verify::number_bytes(&code.signature);
    Held {
        diagnostics: found,
        bound: (!is_wrong).then_some(Bound { args, read_only, number_bytes }),
        cluster: clusters.first().and_then(|(_, size)| *size).filter(|_| !is_said),
        unheld: unheld(unit, code, &all_told),
    }
}

/// The parameters that get a tensor and of which no file tells what they point to.
fn unheld(unit: &Unit, code: &ForeignCode, told: &[(&ForeignFile, Witness, Vec<Told>)]) -> Option<Unheld> {
    let gets_tensor = |name: &str| {
        unit.args.iter().any(|arg| arg.name == name && matches!(arg.value, ArgDraftValue::Tensor(_)))
    };
    let params = code.signature.params.iter().enumerate();
    let params = params.filter(|(_, param)| gets_tensor(&param.name));
    let is_told = |at: usize| told.iter().any(|(_, _, told)| told.get(at).is_some_and(Told::is_of_type));
    let params = params.filter(|(at, _)| !is_told(*at)).map(|(_, param)| param.name.clone());
    let params: Vec<String> = params.collect();
    let (name, span) = (code.name.clone(), code.name_span.clone());
    (!params.is_empty()).then_some(Unheld { code: name, code_span: span, params })
}

/// Files that ask for different clusters: a launch is one for all of them.
fn other_clusters(unit: &Unit, asked: &[(&ForeignFile, Option<[u32; 3]>)]) -> Option<Diagnostic> {
    let ((first, size), rest) = asked.split_first()?;
    let (other, of_other) = rest.iter().find(|(_, other)| other != size)?;
    let shown = |size: &Option<[u32; 3]>| match size {
        Some([x, y, z]) => format!("this one asks for clusters of {x}x{y}x{z} blocks"),
        None => "this one asks for no clusters".to_owned(),
    };
    Some(
        Diagnostic::error(format!("the files of `{}` ask for different clusters", unit.kernel))
            .code(rules::CLUSTER)
            .at(first.span.clone(), shown(size))
            .related(other.span.clone(), shown(of_other))
            .note("a variant is launched alike whichever of its files serves the GPU")
            .help("put files that ask for the same clusters into a variant of its own, or leave those of the others out"),
    )
}

/// Adds what is not told already: of two files of which the same is to be said in one place, the first.
fn new(found: &mut Vec<Diagnostic>, more: Vec<Diagnostic>) {
    let place = |one: &Diagnostic| one.primary.as_ref().map(|label| label.span.clone());
    for one in more {
        if !found.iter().any(|known| known.message == one.message && place(known) == place(&one)) {
            found.push(one);
        }
    }
}

fn files(code: &ForeignCode) -> impl Iterator<Item = (&ForeignFile, &Loaded)> {
    code.files.iter().filter_map(|file| Some((file, file.loaded.as_deref()?)))
}

fn kernel<'l>(loaded: &'l Loaded, unit: &Unit) -> Option<&'l KernelFacts> {
    loaded.kernels.iter().find(|kernel| kernel.symbol == unit.kernel)
}

fn entry<'l>(loaded: &'l Loaded, unit: &Unit) -> Option<&'l PtxEntry> {
    let (_, origin) = loaded.ptx.as_ref()?;
    origin.entries.iter().find(|entry| entry.symbol == unit.kernel)
}

/// The parameters of the manifest against those of one file.
fn parameters(
    code: &ForeignCode,
    file: &ForeignFile,
    loaded: &Loaded,
    kernel: &KernelFacts,
) -> Vec<Diagnostic> {
    let declared = &code.signature.params;
    let name = &kernel.symbol;
    if declared.len() != kernel.params.len() {
        let sizes: Vec<String> = kernel.params.iter().map(|param| param.size.to_string()).collect();
        let error = Diagnostic::error(format!(
            "the kernel `{name}` takes {} parameters, and the manifest says {}",
            kernel.params.len(),
            declared.len()
        ))
        .code(rules::CODE_PARAMETERS)
        .at(code.name_span.clone(), "`parameters` of this code")
        .related(file.span.clone(), "the file")
        .note(format!("in the file they have {} bytes", sizes.join(", ")));
        return vec![error.help(
            "say all of them, in the kernel's order; compilers may add some at the end, as Triton does (two pointers to scratch memory)",
        )];
    }
    let says =
        loaded.ptx.as_ref().and_then(|(_, origin)| origin.entries.iter().find(|entry| entry.symbol == *name));
    let mut found = Vec::new();
    for (index, (param, in_file)) in declared.iter().zip(&kernel.params).enumerate() {
        let Some(span) = code.param_spans.get(index) else { continue };
        let (size, align) = size_and_align(&param.ty);
        let place = format!("number {} of the kernel `{name}`", index + 1);
        let error = |message: String, label: String| {
            Diagnostic::error(message)
                .code(rules::CODE_PARAMETERS)
                .at(span.clone(), label)
                .related(file.span.clone(), "the file")
        };
        if size != in_file.size {
            found.push(
                error(
                    format!(
                        "`{}` has {}, and the kernel takes {} there",
                        param.name,
                        verify::bytes(size),
                        in_file.size
                    ),
                    place,
                )
                .help("say the type that the kernel has there; parameters stand in the kernel's order"),
            );
        } else if !in_file.offset.is_multiple_of(align) {
            found.push(
                error(
                    format!(
                        "`{}` lies at byte {} of the parameters, which is no multiple of {align}",
                        param.name, in_file.offset
                    ),
                    place,
                )
                .help("say the type that the kernel has there: an array of smaller elements, for instance"),
            );
        } else if is_const(&param.ty) && says.is_some_and(|entry| entry.are_written.get(index) == Some(&true))
        {
            found.push(
                error(
                    format!("`{}` is `{}`, and the kernel writes there", param.name, param.spelling),
                    place,
                )
                .help("say the parameters in the kernel's order, and `const` only where it does not write"),
            );
        } else if let Some(what) =
            says.and_then(|entry| entry.params.get(index)).and_then(|says| other_kind(&param.ty, *says))
        {
            found.push(
                error(
                    format!("`{}` is {}, and the kernel takes {what} there", param.name, kind(&param.ty)),
                    place,
                )
                .help("say the type that the kernel has there"),
            );
        }
    }
    found
}

fn is_const(ty: &ParamType) -> bool {
    matches!(ty, ParamType::Pointer { is_const: true, .. })
}

/// Names of the manifest that the file's debug information has in other places. The manifest may call parameters as it likes.
fn exchanged(code: &ForeignCode, file: &ForeignFile, named: &Signature) -> Option<Diagnostic> {
    let declared = &code.signature;
    let mut pairs = declared.params.iter().zip(&named.params).zip(&code.param_spans);
    let ((param, in_file), span) = pairs.find(|((param, in_file), _)| {
        param.name != in_file.name
            && declared.find(&in_file.name).is_some()
            && named.find(&param.name).is_some()
    })?;
    Some(
        Diagnostic::warning(format!(
            "the parameters `{}` and `{}` may be exchanged: the kernel has both names, at other places",
            in_file.name, param.name
        ))
        .code(rules::CODE_PARAMETERS)
        .at(span.clone(), "parameters are bound by their places")
        .related(file.span.clone(), "the debug information of this file says so")
        .note(format!("the kernel is `{named}`"))
        .help("say the parameters in the kernel's order, by the kernel's names"),
    )
}

/// What PTX says of a parameter that cannot be of this type.
fn other_kind(ty: &ParamType, says: PtxParam) -> Option<&'static str> {
    let is_float = matches!(ty, ParamType::F32 | ParamType::F64);
    let is_number = !matches!(ty, ParamType::Array { .. } | ParamType::Other { .. });
    match says {
        PtxParam::Float if !is_float && is_number => Some("a float"),
        PtxParam::Integer if is_float => Some("an integer"),
        PtxParam::Pointer if is_float => Some("an address"),
        _ => None,
    }
}

fn kind(ty: &ParamType) -> &'static str {
    match ty {
        ParamType::Pointer { .. } => "an address",
        ParamType::F32 | ParamType::F64 => "a float",
        ParamType::Array { .. } | ParamType::Other { .. } => "an array",
        _ => "an integer",
    }
}

fn size_and_align(ty: &ParamType) -> (u32, u32) {
    match ty {
        ParamType::Pointer { .. } | ParamType::F64 => (8, 8),
        ParamType::Int { bytes } | ParamType::UInt { bytes } => (u32::from(*bytes), u32::from(*bytes).max(1)),
        ParamType::Enum(ty) => (ty.size(), ty.size().max(1)),
        ParamType::F32 => (4, 4),
        ParamType::Bool => (1, 1),
        ParamType::Array { element, len } => (element.size().saturating_mul(*len), element.size().max(1)),
        ParamType::Other { size, .. } => (*size, 1),
    }
}

/// Numbers that are passed where a file says that an address is taken: anything but 0 points somewhere.
fn addresses(
    plugin: &Plugin,
    unit: &Unit,
    code: &ForeignCode,
    args: &[cubinder_model::Arg],
    told: &[(&ForeignFile, Witness, Vec<Told>)],
) -> Vec<Diagnostic> {
    let of_ptx = files(code).filter_map(|(file, loaded)| {
        let says = entry(loaded, unit)?.params.iter().map(|says| *says == PtxParam::Pointer);
        Some((file, says.collect::<Vec<bool>>()))
    });
    let of_types = told.iter().map(|(file, _, told)| (*file, told.iter().map(Told::is_address).collect()));
    let mut found = Vec::new();
    for (file, are_addresses) in of_ptx.chain(of_types) {
        for ((arg, param), is_address) in args.iter().zip(&code.signature.params).zip(are_addresses) {
            let is_number = matches!(&arg.value, ArgValue::Scalar { expr, .. } if expr.nodes.as_slice() != [Node::Int(0)]);
            if !is_address || !is_number {
                continue;
            }
            let draft = unit.args.iter().find(|draft| draft.name == arg.name);
            let error = Diagnostic::error(format!(
                "the kernel reads `{}` as an address, and gets a number",
                arg.name
            ))
            .code(rules::CODE_PARAMETERS)
            .at(place(draft, code), "only 0 is no address")
            .related(file.span.clone(), "this file uses it as a pointer");
            new(&mut found, vec![error.help(remedy(plugin, param))]);
        }
    }
    found
}

fn remedy(plugin: &Plugin, param: &Param) -> String {
    let tensor = plugin.tensor_name(0).unwrap_or("x");
    format!(
        "say `{}: const void*` or the type that it points to, and pass a tensor such as `{tensor}`, a scratch buffer, or 0",
        param.name
    )
}

fn place(arg: Option<&ArgDraft>, code: &ForeignCode) -> Span {
    arg.map_or_else(
        || code.name_span.clone(),
        |arg| match &arg.value {
            ArgDraftValue::Tensor(_) | ArgDraftValue::Scratch(_) | ArgDraftValue::Expr { .. } => {
                arg.value_span.clone()
            }
        },
    )
}

/// Dynamic shared memory that the kernel uses and the launch does not give.
fn no_shared(
    unit: &Unit,
    launch: &cubinder_model::Launch,
    file: &ForeignFile,
    loaded: &Loaded,
    rules: LaunchRules,
) -> Option<Diagnostic> {
    let says = match loaded.target.kind {
        TargetKind::Ptx | TargetKind::Native => "the file has `.extern .shared`",
        TargetKind::Cubin => "the file sets shared memory aside for it, of which none is static",
    };
    verify::no_shared(unit, launch, rules).map(|warning| warning.related(file.span.clone(), says))
}
