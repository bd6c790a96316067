"""Loads libraries into this process and says what each finds in itself: for the tests of `library`.

Arguments are steps, executed in order; every `tell` prints a line: mode, length, SHA-256 of the bundle.
    load NAME PATH    tell NAME    unload NAME    delete PATH    move FROM TO    memfd NAME PATH
    cycle COUNT PATH  loads, reads and unloads again and again, then counts what is still mapped
"""

import _ctypes
import ctypes
import hashlib
import os
import sys


def load(path):
    library = ctypes.CDLL(path)
    library.probe_mode.restype = ctypes.c_uint32
    library.probe_length.restype = ctypes.c_size_t
    library.probe_bundle.restype = ctypes.c_void_p
    return library


def tell(library):
    length = library.probe_length()
    bundle = ctypes.string_at(library.probe_bundle(), length) if length else b""
    return f"{library.probe_mode()} {length} {hashlib.sha256(bundle).hexdigest()}"


def cycle(count, path):
    for _ in range(int(count)):
        library = load(path)
        tell(library)
        _ctypes.dlclose(library._handle)
    with open("/proc/self/maps") as maps:
        left = sum(os.path.basename(path) in line for line in maps)
    print(f"{left} mappings left")


def memfd(path):
    copy = os.memfd_create("library")
    with open(path, "rb") as source:
        os.write(copy, source.read())
    return load(f"/proc/self/fd/{copy}")


def main(words):
    loaded = {}
    steps = {
        "load": lambda name, path: loaded.update({name: load(path)}),
        "memfd": lambda name, path: loaded.update({name: memfd(path)}),
        "tell": lambda name: print(tell(loaded[name])),
        "unload": lambda name: _ctypes.dlclose(loaded.pop(name)._handle),
        "delete": os.remove,
        "move": os.replace,
        "cycle": cycle,
    }
    while words:
        step = steps[words.pop(0)]
        count = step.__code__.co_argcount if hasattr(step, "__code__") else {os.remove: 1, os.replace: 2}[step]
        step(*(words.pop(0) for _ in range(count)))


main(sys.argv[1:])
