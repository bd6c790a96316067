use cubinder_model::Target;

use super::{Located, Text};

/// `[compile]`; empty lists override nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompileDecl {
    /// Targets.
    pub targets: Vec<Located<Target>>,
    /// Include folders, relative to the manifest's folder.
    pub include: Vec<Text>,
    /// NVRTC options.
    pub options: Vec<Located<String>>,
    /// Kinds of code to embed; empty: all.
    pub code: Vec<Located<CodeKind>>,
    /// Whether code includes line information.
    pub line_information: bool,
    /// Whether `targets` or `code` is invalid.
    pub targets_are_broken: bool,
    /// Oldest driver that must load the code: `580.65`.
    pub min_driver: Option<Located<DriverVersion>>,
    /// Launching component; default: a plugin library.
    pub route: Option<Located<Route>>,
}

impl CompileDecl {
    /// Returns the launching component.
    #[must_use]
    pub fn route(&self) -> Route {
        self.route.as_ref().map(|route| route.value).unwrap_or_default()
    }
}

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$value_meta:meta])* $value:ident = $word:literal,)+ })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$value_meta])* $value,)+
        }

        impl $name {
            /// All values, in the order of errors.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$value),+];

            /// Returns its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$value => $word,)+
                }
            }

            /// Returns the value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<$name> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    )+};
}
pub(super) use words;

words! {
    /// Component that launches kernels.
    #[derive(Default)]
    Route {
        /// `plugin`: a plugin library.
        #[default]
        Plugin = "plugin",
        /// `native`: TensorRT itself. Experimental.
        Native = "native",
    }

    /// Kind of code.
    CodeKind {
        /// Machine code for targets `sm_*`.
        Cubin = "cubin",
        /// Text for targets `compute_*`, compiled by the driver.
        Ptx = "ptx",
    }
}

/// Release of NVIDIA's Linux driver: `580.65.06` is 580, 65, 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverVersion(pub [u16; 3]);

impl std::fmt::Display for DriverVersion {
    /// Omits a last part of 0.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [branch, minor, patch] = self.0;
        write!(f, "{branch}.{minor:02}")?;
        if patch > 0 { write!(f, ".{patch:02}") } else { Ok(()) }
    }
}
