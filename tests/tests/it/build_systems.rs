//! The CMake package and depfiles: Ninja and Make rebuild exactly for changed inputs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use cubinder_skip::skip;
use cubinder_tests::headers::{self, RTX_1_7};
use cubinder_tests::installed::{Installed, capture};
use cubinder_tests::{cxx, installed};

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Generator {
    Ninja,
    Make,
}

impl Generator {
    fn program(self) -> Option<(PathBuf, &'static str)> {
        match self {
            Generator::Ninja => Some((variable("CUBINDER_TEST_NINJA")?, "Ninja")),
            Generator::Make => Some((PathBuf::from("make"), "Unix Makefiles")),
        }
    }
}

struct Built {
    installed: Installed,
    cmake: PathBuf,
    source: PathBuf,
    build: PathBuf,
}

impl Built {
    fn client(generator: Generator) -> Result<Option<Built>> {
        let Some(installed) = Installed::archive()? else {
            skip("`CUBINDER_TEST_ARCHIVE` is not set; `cargo xtask test` sets it");
            return Ok(None);
        };
        let tensorrt = variable("CUBINDER_TENSORRT_LIBS");
        let (Some(cmake), Some((program, name)), Some(tensorrt)) =
            (variable("CUBINDER_TEST_CMAKE"), generator.program(), tensorrt)
        else {
            skip("CMake, Ninja or TensorRT-RTX is not set; `cargo xtask test` sets it");
            return Ok(None);
        };
        if cxx::compiler_version().is_none() {
            skip("no C++ compiler; install g++, or set `CXX`");
            return Ok(None);
        }
        // Make and Ninja treat spaces specially.
        let source = installed.work("the client")?;
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/cpp"), &source)?;
        let build = source.join("build");
        let built = Built { installed, cmake, source, build };
        let headers = headers::folder()?;
        let mut command = built.command();
        command.arg("-S").arg(&built.source).arg("-B").arg(&built.build).args(["-G", name]);
        command
            .arg(setting("CMAKE_MAKE_PROGRAM", &program))
            .arg(setting("CMAKE_PREFIX_PATH", built.installed.prefix()));
        command.arg(setting("CMAKE_CXX_COMPILER", Path::new(&cxx::compiler())));
        command
            .arg(setting("TENSORRT_HEADERS", &headers.join(RTX_1_7.folder)))
            .arg(setting("CUDA_HEADERS", &headers));
        command.arg(setting("TENSORRT_LIBRARIES", &tensorrt));
        if generator == Generator::Make {
            // CMake looks in PATH.
            command = without(&command, "-DCMAKE_MAKE_PROGRAM=", &built);
        }
        capture(&mut command)?;
        Ok(Some(built))
    }

    fn command(&self) -> Command {
        let mut command = self.installed.command(&self.cmake);
        command.env("CUBINDER_NVRTC", nvrtc());
        command
    }

    fn make(&self) -> Result<String> {
        // The resolution of Make's times.
        std::thread::sleep(Duration::from_millis(30));
        let said = capture(self.command().arg("--build").arg(&self.build).arg("--verbose"))?;
        Ok(said.stdout)
    }

    fn made(&self) -> Result<SystemTime> {
        modified(&self.build.join("libplugins.so"))
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        std::thread::sleep(Duration::from_millis(30));
        fs::write(self.source.join(name), text).with_context(|| name.to_owned())
    }

    fn read(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.source.join(name)).with_context(|| name.to_owned())
    }

    /// The client loads the library by path: no relinking.
    fn rebuilds(&self) -> Result<bool> {
        let client = modified(&self.build.join("client"))?;
        let before = self.made()?;
        let said = self.make()?;
        ensure!(modified(&self.build.join("client"))? == client, "the client was linked again\n{said}");
        let is_new = self.made()? != before;
        ensure!(is_new == said.contains("compile --quiet"), "{said}");
        Ok(is_new)
    }
}

fn setting(name: &str, value: &Path) -> String {
    format!("-D{name}={}", value.display())
}

fn without(command: &Command, prefix: &str, built: &Built) -> Command {
    let mut other = built.command();
    other.args(command.get_args().filter(|argument| !argument.to_string_lossy().starts_with(prefix)));
    other
}

fn nvrtc() -> PathBuf {
    use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
    Toolkit::locate(&Overrides::from_env(None)).unwrap().nvrtc
}

fn modified(path: &Path) -> Result<SystemTime> {
    fs::metadata(path).and_then(|facts| facts.modified()).with_context(|| format!("`{}`", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => fs::copy(entry.path(), &to).map(drop)?,
        }
    }
    Ok(())
}

fn write_model(folder: &Path) -> Result<PathBuf> {
    const SCRIPT: &str = "\
import sys
from onnx import TensorProto, helper, save
node = helper.make_node('client_scale', ['x'], ['y'], domain='client', plugin_namespace='client', aot=1, factor=3.0)
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 256]) for name in 'xy')
opsets = [helper.make_opsetid('', 17), helper.make_opsetid('client', 1)]
save(helper.make_model(helper.make_graph([node], 'g', [x], [y]), opset_imports=opsets, ir_version=8), sys.argv[1])
";
    let python = variable("CUBINDER_TEST_PYTHON").context("`CUBINDER_TEST_PYTHON` is not set")?;
    let model = folder.join("model.onnx");
    let mut command = Command::new(python);
    command.envs(std::env::var_os("CUBINDER_TEST_PYTHONPATH").map(|path| ("PYTHONPATH", path)));
    capture(command.args(["-c", SCRIPT]).arg(&model))?;
    Ok(model)
}

fn the_client_is_built(generator: Generator) -> Result<()> {
    let Some(built) = Built::client(generator)? else { return Ok(()) };
    built.make()?;
    let model = write_model(&built.build)?;
    let mut client = built.installed.command(built.build.join("client"));
    client.arg(model);
    client.envs(std::env::var_os("CUBINDER_TEST_LIBRARY_PATH").map(|path| ("LD_LIBRARY_PATH", path)));
    let said = capture(&mut client)?;
    assert!(said.stdout.starts_with("built an engine of "), "{}{}", said.stdout, said.stderr);
    assert!(built.build.join("libplugins-code.so").is_file(), "EMBED makes it");

    assert!(!built.rebuilds()?, "nothing was changed");
    let header = "include/client/index.cuh";
    built.write(header, &built.read(header)?)?;
    assert!(built.rebuilds()?, "a header was touched");
    assert!(!built.rebuilds()?);
    for name in ["plugins/scale.toml", "plugins/scale.cu"] {
        built.write(name, &built.read(name)?)?;
        assert!(built.rebuilds()?, "`{name}` was touched");
    }
    built.write("include/client/other.cuh", "#pragma once\n")?;
    assert!(!built.rebuilds()?, "nothing includes the new file");
    let kernel = built.read("plugins/scale.cu")?;
    let moved = built.read(header)?.replace("#pragma once", "");
    built.write("plugins/scale.cu", &kernel.replace("#include <client/index.cuh>", &moved))?;
    fs::remove_file(built.source.join(header))?;
    assert!(built.rebuilds()?, "a header was removed");
    assert!(!built.rebuilds()?, "a removed header is forgotten");
    let good = built.read("plugins/scale.cu")?;
    built.write("plugins/scale.cu", &good.replace("factor;", "factors;"))?;
    let failed = built.make().unwrap_err().to_string();
    assert!(failed.contains("scale.cu") && failed.contains("factors"), "{failed}");
    built.write("plugins/scale.cu", &good)?;
    assert!(built.rebuilds()?, "the error was fixed");
    Ok(())
}

#[test]
fn the_client_is_built_by_cmake_with_ninja() -> Result<()> {
    the_client_is_built(Generator::Ninja)
}

#[test]
fn the_client_is_built_by_cmake_with_make() -> Result<()> {
    the_client_is_built(Generator::Make)
}

#[test]
fn an_active_python_environment_is_found_by_cmake() -> Result<()> {
    let (Some(cmake), Some(ninja)) = (variable("CUBINDER_TEST_CMAKE"), variable("CUBINDER_TEST_NINJA"))
    else {
        skip("CMake or Ninja is not set; `cargo xtask test` sets it");
        return Ok(());
    };
    let Some(installed) = Installed::wheel(false)? else {
        skip("`CUBINDER_TEST_WHEEL` is not set; `cargo xtask test` sets it");
        return Ok(());
    };
    let work = installed.work("project")?;
    let configure = |text: &str| -> Result<installed::Said> {
        let text = format!("cmake_minimum_required(VERSION 3.21)\nproject(x LANGUAGES NONE)\n{text}\n");
        fs::write(work.join("CMakeLists.txt"), text)?;
        let mut command = installed.command(&cmake);
        command.arg("-S").arg(&work).arg("-B").arg(work.join("build")).args(["-G", "Ninja"]);
        capture(command.arg(setting("CMAKE_MAKE_PROGRAM", &ninja)))
    };
    let said = configure(
        "find_package(cubinder 0.1 REQUIRED)\n\
         get_target_property(place cubinder::runtime IMPORTED_LOCATION)\n\
         message(STATUS \"found ${place} ${cubinder_VERSION}\")",
    )?;
    let expected = format!(
        "found {} {}",
        installed.prefix().join("lib/libcubinder.so").display(),
        env!("CARGO_PKG_VERSION")
    );
    assert!(said.stdout.contains(&expected), "{}", said.stdout);
    for (text, expected) in [
        ("find_package(cubinder 0.2 REQUIRED)", "compatible with requested version"),
        ("find_package(cubinder 1 REQUIRED)", "compatible with requested version"),
        (
            "find_package(cubinder)\ncubinder_add_plugins(a)",
            "nothing to compile; specify MANIFESTS or CONFIG",
        ),
        (
            "find_package(cubinder)\ncubinder_add_plugins(a MANIFESTS a.toml TARGET sm_89)",
            "`TARGET` in MANIFESTS is not a .toml file; expected MANIFESTS, CONFIG",
        ),
        ("find_package(cubinder)\ncubinder_add_plugins(a MANIFESTS a.toml EMBD)", "`EMBD` in MANIFESTS"),
        (
            "find_package(cubinder)\ncubinder_add_plugins(a MANIFESTS TARGETS sm_89)",
            "missing values after `MANIFESTS`",
        ),
        ("find_package(cubinder)\ncubinder_add_plugins(a b.toml)", "unknown argument `b.toml`"),
        (
            "find_package(cubinder)\ncubinder_add_plugins(a MANIFESTS a.toml TARGETS sm_89 WORKING_DIRECTORY x)",
            "unknown argument `WORKING_DIRECTORY`",
        ),
        (
            "find_package(cubinder)\ncubinder_add_plugins(a MANIFESTS a.toml INCLUDE inc ARCHITECTURES 89)",
            "unknown argument `ARCHITECTURES`",
        ),
        (
            "find_package(cubinder)\ncubinder_add_plugins(a MANIFESTS a.toml OUTPUT)",
            "missing values after `OUTPUT`",
        ),
    ] {
        match configure(text) {
            Err(error) => {
                let said = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(said.contains(expected), "{text}: {said}");
            }
            Ok(said) => panic!("{text} went well: {}", said.stdout),
        }
    }
    Ok(())
}

#[test]
fn folders_of_other_targets_and_empty_lists_are_taken_by_cmake() -> Result<()> {
    let (Some(cmake), Some(ninja)) = (variable("CUBINDER_TEST_CMAKE"), variable("CUBINDER_TEST_NINJA"))
    else {
        skip("CMake or Ninja is not set; `cargo xtask test` sets it");
        return Ok(());
    };
    let Some(installed) = Installed::archive()? else {
        skip("`CUBINDER_TEST_ARCHIVE` is not set; `cargo xtask test` sets it");
        return Ok(());
    };
    let work = installed.work("siblings")?;
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/cpp");
    copy(&clients.join("plugins"), &work.join("b/plugins"))?;
    copy(&clients.join("include"), &work.join("b/my templates"))?;
    let write = |name: &str, text: &str| -> Result<()> {
        let path = work.join(name);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        fs::write(path, text).with_context(|| name.to_owned())
    };
    write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.21)\nproject(x LANGUAGES NONE)\nadd_subdirectory(a)\nadd_subdirectory(b)\n",
    )?;
    write("a/CMakeLists.txt", "find_package(cubinder 0.1 REQUIRED)\n")?;
    write(
        "b/CMakeLists.txt",
        "set(made \"${CMAKE_CURRENT_BINARY_DIR}/my headers\")\n\
         add_custom_command(OUTPUT \"${made}/client/index.cuh\" DEPENDS \"my templates/client/index.cuh\" VERBATIM\n\
           COMMAND \"${CMAKE_COMMAND}\" -E copy_directory \"${CMAKE_CURRENT_SOURCE_DIR}/my templates\" \"${made}\")\n\
         add_library(headers INTERFACE)\n\
         target_include_directories(headers INTERFACE \"${made}\" \"${CMAKE_CURRENT_SOURCE_DIR}/plugins\")\n\
         add_library(none INTERFACE)\n\
         cubinder_add_plugins(scale MANIFESTS plugins/scale.toml TARGETS sm_89 OPTIONS ${NOT_SET} OUTPUT made\n\
           INCLUDE $<TARGET_PROPERTY:headers,INTERFACE_INCLUDE_DIRECTORIES> $<TARGET_PROPERTY:none,INTERFACE_INCLUDE_DIRECTORIES>\n\
           DEPENDS \"${made}/client/index.cuh\")\n",
    )?;
    let build = work.join("build");
    let mut command = installed.command(&cmake);
    command.arg("-S").arg(&work).arg("-B").arg(&build).args(["-G", "Ninja"]);
    command.arg(setting("CMAKE_MAKE_PROGRAM", &ninja)).arg(setting("CMAKE_PREFIX_PATH", installed.prefix()));
    capture(&mut command)?;
    let mut command = installed.command(&cmake);
    capture(command.env("CUBINDER_NVRTC", nvrtc()).arg("--build").arg(&build))?;
    assert!(build.join("b/made/libscale.so").is_file(), "OUTPUT is below the folder of what is built");
    Ok(())
}

fn plain_project(installed: &Installed) -> Result<PathBuf> {
    let work = installed.work("plain")?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/cpp");
    copy(&data.join("plugins"), &work.join("my $plugins #1"))?;
    copy(&data.join("include"), &work.join("include"))?;
    let kernel = work.join("my $plugins #1/scale.cu");
    let text = fs::read_to_string(&kernel)?;
    fs::write(&kernel, format!("#include \"a b$c#d.cuh\"\n{text}"))?;
    fs::write(work.join("my $plugins #1/a b$c#d.cuh"), "#pragma once\n")?;
    Ok(work)
}

fn plain_builds(installed: &Installed, work: &Path, builder: &Path) -> Result<()> {
    let library = work.join("libscale.so");
    let build = || -> Result<SystemTime> {
        std::thread::sleep(Duration::from_millis(30));
        let mut command = installed.command(builder);
        capture(command.current_dir(work).env("CUBINDER_NVRTC", nvrtc()))?;
        modified(&library)
    };
    let touch = |name: &str| fs::write(work.join(name), fs::read(work.join(name)).unwrap());
    let header = "my $plugins #1/a b$c#d.cuh";
    let first = build()?;
    assert_eq!(build()?, first, "nothing was changed");
    for name in [header, "include/client/index.cuh"] {
        let before = build()?;
        std::thread::sleep(Duration::from_millis(30));
        touch(name)?;
        assert!(build()? != before, "`{name}` was touched");
    }
    let before = build()?;
    assert_eq!(build()?, before, "nothing was changed");
    fs::remove_file(work.join(header))?;
    let kernel = work.join("my $plugins #1/scale.cu");
    fs::write(&kernel, fs::read_to_string(&kernel)?.replace("#include \"a b$c#d.cuh\"\n", ""))?;
    assert!(build()? != before, "a header was removed");
    Ok(())
}

#[test]
fn make_reads_depfiles() -> Result<()> {
    let Some(installed) = Installed::archive()? else {
        skip("`CUBINDER_TEST_ARCHIVE` is not set; `cargo xtask test` sets it");
        return Ok(());
    };
    let work = plain_project(&installed)?;
    let text = "libscale.so:\n\tcubinder compile --quiet --depfile scale.d --include include --target sm_89 'my $$plugins #1/scale.toml'\n\n-include scale.d\n";
    fs::write(work.join("Makefile"), text)?;
    plain_builds(&installed, &work, Path::new("make"))
}

#[test]
fn ninja_reads_depfiles() -> Result<()> {
    let (Some(installed), Some(ninja)) = (Installed::archive()?, variable("CUBINDER_TEST_NINJA")) else {
        skip("`CUBINDER_TEST_ARCHIVE` or `CUBINDER_TEST_NINJA` is not set; `cargo xtask test` sets it");
        return Ok(());
    };
    let work = plain_project(&installed)?;
    let text = "rule plugins\n  command = cubinder compile --quiet --depfile $out.d --include include --target sm_89 'my $$plugins #1/scale.toml'\n  depfile = $out.d\n  deps = gcc\n\nbuild libscale.so: plugins\n";
    fs::write(work.join("build.ninja"), text)?;
    plain_builds(&installed, &work, &ninja)
}
