//! `[compile]` as it is written.

use cubinder_model::Target;

use super::{Located, Text};

/// `[compile]`: how this plugin's kernels are compiled, where it is not as `cubinder.toml` or the command line says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompileDecl {
    /// What to compile for. Empty: what the library is compiled for.
    pub targets: Vec<Located<Target>>,
    /// Include folders, relative to the manifest's folder; before those of the library.
    pub include: Vec<Text>,
    /// Options of NVRTC, after those of the library.
    pub options: Vec<Located<String>>,
    /// Which kinds of the targets to embed. Empty: all.
    pub code: Vec<Located<CodeKind>>,
    /// Whether the code has line information.
    pub line_information: bool,
    /// Whether `targets` or `code` could not be read as they are. That was reported; what they come to is not known.
    pub targets_are_broken: bool,
    /// The oldest driver that must be able to load the code, as `nvidia-smi` says it: `580.65`.
    pub min_driver: Option<Located<DriverVersion>>,
    /// Who launches the kernels. None: a plugin library.
    pub route: Option<Located<Route>>,
}

impl CompileDecl {
    /// Who launches the kernels, as far as the manifest says it.
    #[must_use]
    pub fn route(&self) -> Route {
        self.route.as_ref().map(|route| route.value).unwrap_or_default()
    }
}

/// Declares an enum whose values have names in manifests.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$value_meta:meta])* $value:ident = $word:literal,)+ })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$value_meta])* $value,)+
        }

        impl $name {
            /// All values, in the order in which errors list them.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$value),+];

            /// The name used in manifests and on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$value => $word,)+
                }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<$name> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    )+};
}
pub(super) use words;

words! {
    /// Who launches a plugin's kernels.
    #[derive(Default)]
    Route {
        /// `plugin`: a plugin library, out of what the engine carries.
        #[default]
        Plugin = "plugin",
        /// `native`: TensorRT itself. Experimental.
        Native = "native",
    }

    /// A kind of code, as `code` names it.
    CodeKind {
        /// `cubin`: machine code, of the targets `sm_*`.
        Cubin = "cubin",
        /// `ptx`: text that the driver compiles at load, of the targets `compute_*`.
        Ptx = "ptx",
    }
}

/// A release of NVIDIA's Linux driver: `580.65.06` is 580, 65, 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverVersion(pub [u16; 3]);

impl std::fmt::Display for DriverVersion {
    /// As NVIDIA writes it: the branch, then two digits each; a last part of 0 is left out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [branch, minor, patch] = self.0;
        write!(f, "{branch}.{minor:02}")?;
        if patch > 0 { write!(f, ".{patch:02}") } else { Ok(()) }
    }
}
