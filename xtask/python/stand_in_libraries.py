"""Creates stand-ins for NVIDIA libraries that PyTorch links but does not call while exporting, which saves two
gigabytes.

    stand_in_libraries.py SITE OUT

SITE contains the unpacked PyTorch. Each function aborts the process, so unexpected calls are detected."""

import collections
import pathlib
import re
import subprocess
import sys

# Libraries and the prefixes of their functions, because some imports have no version.
LIBRARIES = {
    "libcublas.so": "cublas",
    "libcublasLt.so": "cublasLt",
    "libcudnn.so": "cudnn",
    "libcufft.so": "cufft",
    "libcufile.so": "cuFile",
    "libcupti.so": "cupti",
    "libcusolver.so": "cusolver",
    "libcusparse.so": "cusparse",
    "libcusparseLt.so": "cusparseLt",
    "libnccl.so": "nccl",
    "libnvrtc.so": "nvrtc",
    "libnvshmem_host.so": "nvshmem",
}


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def needed(path):
    """Returns the libraries that `path` needs."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))


def symbols(path):
    """Yields each dynamic symbol with its version, and whether it is defined."""
    for line in readelf("--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].endswith(":"):
            name, _, version = fields[7].partition("@")
            yield name, version.lstrip("@"), fields[6] != "UND"


def library_of(name, version, sonames):
    """Returns the library of `sonames` with the function: by version, otherwise by the longest prefix."""
    if version in sonames:
        return version
    begins = [(len(prefix), soname) for soname, prefix in sonames.items() if name.startswith(prefix)]
    return max(begins)[1] if begins else None


def write(soname, functions, out):
    """Compiles the stand-in `soname` with `functions`, a set of names per version."""
    source, script = out / f"{soname}.c", out / f"{soname}.map"
    names = sorted(name for group in functions.values() for name in group)
    source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names) or "int none;\n")
    versions = {version: group for version, group in functions.items() if version}
    script.write_text(
        "".join(f"{version} {{ global: {'; '.join(sorted(group))}; }};\n" for version, group in versions.items())
    )
    command = ["g++", "-x", "c", "-w", "-fno-builtin", "-shared", "-fPIC", f"-Wl,-soname,{soname}"]
    command += [f"-Wl,--version-script={script}"] if versions else []
    subprocess.run([*command, "-o", out / soname, source], check=True)
    source.unlink()
    script.unlink()


def main():
    site, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True)
    libraries = sorted((site / "torch" / "lib").glob("*.so*"))
    sonames = {
        soname: LIBRARIES[stem]
        for library in libraries
        for soname in needed(library)
        if (stem := soname.partition(".so")[0] + ".so") in LIBRARIES
    }
    asked, defined = set(), set()
    for library in libraries:
        for name, version, here in symbols(library):
            if here:
                defined.add(name)
            else:
                asked.add((name, version))
    functions = {soname: collections.defaultdict(set) for soname in sonames}
    for name, version in asked:
        soname = library_of(name, version, sonames)
        if soname and name not in defined:
            functions[soname][version].add(name)
    for soname, of_versions in functions.items():
        write(soname, of_versions, out)


main()
