"""Paths of the files of an installed Cubinder.

The program `cubinder` compiles plugins, also as `python -m cubinder`. `cubinder.torch` makes PyTorch operators of
plugins. This module returns paths, for scripts:

    runtime_library()   libcubinder.so, which runs engines: trtexec --dynamicPlugins=...
    manifests_dir()     the folder with the manifests of the included plugins
    cmake_dir()         the folder of the CMake package, for cubinder_DIR
    program()           the program `cubinder`
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

__all__ = ["cmake_dir", "manifests_dir", "program", "runtime_library"]


def program() -> Path:
    """The program `cubinder`."""
    return installed("bin/cubinder")


def runtime_library() -> Path:
    """The prebuilt runtime library, `libcubinder.so`."""
    return installed("lib/libcubinder.so")


def cmake_dir() -> Path:
    """The folder of the CMake package, which holds `cubinder-config.cmake`."""
    return installed("lib/cmake/cubinder/cubinder-config.cmake").parent


def manifests_dir() -> Path:
    """The folder with the manifests of the included plugins."""
    return installed("share/cubinder/manifests/circ_pad_plugin.toml").parent


def installed(end: str) -> Path:
    """Returns the path of an installed file."""
    try:
        files = distribution("cubinder").files or []
    except PackageNotFoundError:
        files = []
    name = Path(end).name
    # Relative to the packages: `../../libcubinder.so`.
    for path in (Path(file.locate()).resolve() for file in files if file.name == name):
        if path.as_posix().endswith("/" + end) and path.is_file():
            return path
    raise FileNotFoundError(
        f"the Python package cubinder has no `{end}`: install it from its wheel into an environment; `pip install --target` "
        "and copies of the package omit files that are not Python modules"
    )
