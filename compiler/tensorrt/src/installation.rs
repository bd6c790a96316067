//! An installed TensorRT or TensorRT-RTX.

use std::path::{Path, PathBuf};

use crate::version::Version;

/// A product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// TensorRT-RTX.
    Rtx,
    /// TensorRT.
    Full,
}

impl Kind {
    /// Both, in the order in which they are used.
    pub const ALL: [Kind; 2] = [Kind::Rtx, Kind::Full];

    /// Returns NVIDIA's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Rtx => "TensorRT-RTX",
            Kind::Full => "TensorRT",
        }
    }

    /// Returns the value of `--with`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Kind::Rtx => "rtx",
            Kind::Full => "tensorrt",
        }
    }

    /// Returns the program that builds engines.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Kind::Rtx => "tensorrt_rtx",
            Kind::Full => "trtexec",
        }
    }

    /// Returns the environment variable with the folder of an unpacked release.
    #[must_use]
    pub const fn home(self) -> &'static str {
        match self {
            Kind::Rtx => "TENSORRT_RTX_HOME",
            Kind::Full => "TENSORRT_HOME",
        }
    }

    /// Says how to install it.
    #[must_use]
    pub const fn install(self) -> &'static str {
        match self {
            Kind::Rtx => "install TensorRT-RTX with `pip install tensorrt_rtx==1.7.1.116`",
            Kind::Full => "install TensorRT from https://developer.nvidia.com/tensorrt",
        }
    }

    /// Says how to install its Python bindings.
    pub(crate) const fn install_bindings(self) -> &'static str {
        match self {
            Kind::Rtx => self.install(),
            Kind::Full => "install the bindings of that release with `pip install tensorrt==VERSION`",
        }
    }

    /// Returns the Python modules that build and run engines, best first.
    pub(crate) const fn modules(self) -> [&'static str; 2] {
        match self {
            Kind::Rtx => ["tensorrt_rtx", "tensorrt_rtx_bindings"],
            Kind::Full => ["tensorrt", "tensorrt_bindings"],
        }
    }

    /// Returns the Python package with the libraries.
    pub(crate) const fn library_package(self) -> &'static str {
        match self {
            Kind::Rtx => "tensorrt_rtx_libs",
            Kind::Full => "tensorrt_libs",
        }
    }

    /// Returns the library under the name without a version.
    pub(crate) const fn library(self) -> &'static str {
        match self {
            Kind::Rtx => "libtensorrt_rtx.so",
            Kind::Full => "libnvinfer.so",
        }
    }
}

/// How an installation is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `trtexec` or `tensorrt_rtx`.
    Program(PathBuf),
    /// Python bindings.
    Python {
        /// Interpreter.
        interpreter: PathBuf,
        /// Module.
        module: String,
    },
}

/// An installed release that builds engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Product.
    pub kind: Kind,
    /// Program or bindings.
    pub route: Route,
    /// Release, if known without running it.
    pub version: Option<Version>,
    /// Folder of its libraries, if known.
    pub libraries: Option<PathBuf>,
}

/// A library under a name that the release lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLink {
    /// Missing path.
    pub link: PathBuf,
    /// Existing library.
    pub target: PathBuf,
}

impl Installation {
    /// Describes the installation in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let version = self.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
        let route = match &self.route {
            Route::Program(program) => format!("`{}`", program.display()),
            Route::Python { interpreter, module } => {
                format!("the Python module `{module}` of `{}`", interpreter.display())
            }
        };
        format!("{}{version}: {route}", self.kind.name())
    }

    /// Returns the value of `--with` that selects this installation.
    #[must_use]
    pub fn selector(&self) -> &Path {
        match &self.route {
            Route::Program(path) | Route::Python { interpreter: path, .. } => path,
        }
    }

    /// Returns the Python module, if it is one.
    #[must_use]
    pub fn module(&self) -> Option<&str> {
        match &self.route {
            Route::Python { module, .. } => Some(module),
            Route::Program(_) => None,
        }
    }

    /// Returns the missing link of TensorRT-RTX's wheels (1.7.1): without `libtensorrt_rtx.so`, the ONNX parser aborts.
    #[must_use]
    pub fn missing_link(&self) -> Option<MissingLink> {
        let folder = self.libraries.as_ref().filter(|_| self.kind == Kind::Rtx)?;
        let (link, target) = (folder.join(self.kind.library()), folder.join("libtensorrt_rtx.so.1"));
        (!link.exists() && target.exists()).then_some(MissingLink { link, target })
    }
}
