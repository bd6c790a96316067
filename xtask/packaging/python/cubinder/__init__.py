"""Where the files of an installed Cubinder are.

The program `cubinder` is what compiles plugins; this package only says where things lie, for scripts:

    runtime_library()   libcubinder.so, which runs engines: trtexec --dynamicPlugins=...
    cmake_dir()         the folder of the CMake package, for cubinder_DIR
    program()           the program itself
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

__all__ = ["cmake_dir", "program", "runtime_library"]


def program() -> Path:
    """The program `cubinder`."""
    return _installed("bin/cubinder")


def runtime_library() -> Path:
    """The prebuilt runtime library, `libcubinder.so`."""
    return _installed("lib/libcubinder.so")


def cmake_dir() -> Path:
    """The folder of the CMake package, which holds `cubinder-config.cmake`."""
    return _installed("lib/cmake/cubinder/cubinder-config.cmake").parent


def _installed(end: str) -> Path:
    """The file that pip installed at this place of the environment."""
    try:
        files = distribution("cubinder").files or []
    except PackageNotFoundError:
        files = []
    name = Path(end).name
    # Listed relative to the packages: `../../libcubinder.so`.
    for path in (Path(file.locate()).resolve() for file in files if file.name == name):
        if path.as_posix().endswith("/" + end) and path.is_file():
            return path
    raise FileNotFoundError(
        f"the Python package cubinder has no `{end}`: it has to be installed from its wheel, into an environment; `pip install --target` "
        "leaves out what is no Python module, and so does a copy of the package or its folder on PYTHONPATH"
    )
