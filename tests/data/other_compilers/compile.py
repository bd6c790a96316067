"""Compiles circular padding with nvcc, CuPy, Numba and Triton, and more kernels with Triton, each in its own process.

    compile.py OUT

OUT gets the manifests of this folder, the sources, and what the compilers make of them. Run it with a Python that has these packages:
`cargo xtask setup --tests` makes one.
"""

import pathlib
import shutil
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for file in HERE.iterdir():
        if file.suffix in (".cu", ".py", ".toml"):
            shutil.copy(file, out)
    nvcc = pathlib.Path(sysconfig.get_path("purelib"), "nvidia/cu13/bin/nvcc")
    for capability in (80, 89, 90):
        command = [nvcc, "-cubin", f"-arch=sm_{capability}", "-o", f"circ_pad.nvcc.sm_{capability}.cubin", "circ_pad.cu"]
        subprocess.run(command, cwd=out, check=True)
    for script in ("pad_cupy.py", "pad_numba.py", "pad_triton.py", "kernels_triton.py"):
        subprocess.run([sys.executable, script], cwd=out, check=True)


main()
