"""Circular padding in CUDA C, compiled by CuPy: a cubin for each architecture. No GPU is needed."""

from cupy.cuda import compiler

with open("circ_pad.cu") as file:
    text = file.read()
for capability in (80, 89, 90):
    # What `cupy.RawModule(code=text)` compiles with; the class needs no GPU for it.
    program = compiler._NVRTCProgram(text, "circ_pad.cu", method="cubin")
    code, _ = program.compile(["--std=c++17", f"-arch=sm_{capability}"])
    with open(f"circ_pad.cupy.sm_{capability}.cubin", "wb") as file:
        file.write(code)
