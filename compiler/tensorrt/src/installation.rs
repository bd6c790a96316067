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
    /// Both, in order of use.
    pub const ALL: [Kind; 2] = [Kind::Rtx, Kind::Full];

    fn pick<T>(self, rtx: T, full: T) -> T {
        match self {
            Kind::Rtx => rtx,
            Kind::Full => full,
        }
    }

    /// Returns NVIDIA's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.pick("TensorRT-RTX", "TensorRT")
    }

    /// Returns the value of `--with`.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.pick("rtx", "tensorrt")
    }

    /// Returns the program that builds engines.
    #[must_use]
    pub fn program(self) -> &'static str {
        self.pick("tensorrt_rtx", "trtexec")
    }

    /// Returns the environment variable of an unpacked release's folder.
    #[must_use]
    pub fn home(self) -> &'static str {
        self.pick("TENSORRT_RTX_HOME", "TENSORRT_HOME")
    }

    /// Says how to install it.
    #[must_use]
    pub fn install(self) -> &'static str {
        self.pick(
            "install TensorRT-RTX with `pip install tensorrt_rtx==1.7.1.116`",
            "install TensorRT from https://developer.nvidia.com/tensorrt",
        )
    }

    pub(crate) fn install_bindings(self) -> &'static str {
        self.pick(self.install(), "install the bindings of that release with `pip install tensorrt==VERSION`")
    }

    /// Returns the Python modules, best first.
    pub(crate) fn modules(self) -> [&'static str; 2] {
        self.pick(["tensorrt_rtx", "tensorrt_rtx_bindings"], ["tensorrt", "tensorrt_bindings"])
    }

    pub(crate) fn library_package(self) -> &'static str {
        self.pick("tensorrt_rtx_libs", "tensorrt_libs")
    }

    /// Returns the library's name without version.
    pub(crate) fn library(self) -> &'static str {
        self.pick("libtensorrt_rtx.so", "libnvinfer.so")
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

/// A library name that the release lacks.
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

    /// Returns the Python module, if any.
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
