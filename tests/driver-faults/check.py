"""Fails each driver call of a plugin library while it loads a node: python check.py PLAYER LIBRARY..., with the
preloaded shim and the stand-in driver."""

import ctypes
import sys

F32, INTS = 0, 5


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("length", ctypes.c_int32)]


class Tensor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("rank", ctypes.c_int32), ("extents", ctypes.c_int64 * 8)]


def main():
    shim, player = ctypes.CDLL(None), ctypes.CDLL(sys.argv[1])
    shim.faultsFailed.restype = shim.faultsUnknown.restype = player.player_error.restype = ctypes.c_char_p
    player.player_node.restype = ctypes.c_void_p
    libraries = (ctypes.c_char_p * len(sys.argv[2:]))(*(path.encode() for path in sys.argv[2:]))
    pads = (ctypes.c_int32 * 4)(1, 1, 1, 1)
    fields = (Field * 1)(Field(b"pads", ctypes.cast(pads, ctypes.c_void_p), INTS, 4))
    tensors = (Tensor * 2)(*(Tensor(F32, 4, (ctypes.c_int64 * 8)(2, 3, extent, extent)) for extent in (8, 10)))

    def node():
        """Loads a node and returns the error, if any."""
        count = ctypes.c_int32
        made = player.player_node(libraries, count(len(libraries)), b"circ_pad_plugin", fields, count(1), tensors, count(1), count(1))
        return None if made else player.player_error().decode()

    # The stand-in does not know the kernels' parameters.
    said = node()
    shim.faultsArm(0, 0, 0)
    calls = 0
    for nth in range(1, 100):
        shim.faultsArm(nth, 2, 0)
        told = node()
        failed = shim.faultsFailed()
        if not failed:
            break
        call = failed.decode().removesuffix("_v2")
        # Cluster support also follows from the compute capability.
        is_missed = told is not None and "no code of" in told and call in ("cuDeviceGetAttribute", "cuDeviceGetName", "cuDriverGetVersion")
        if not is_missed and (told is None or call not in told or "(2)" not in told):
            raise SystemExit(f"call {nth}, {call}, fails with the messages: {told}")
        calls += 1
    if told != said:
        raise SystemExit(f"messages without a fault: {said}\nmessages after the faults: {told}")
    if shim.faultsUnknown():
        raise SystemExit(f"the shim does not support {shim.faultsUnknown().decode()}")
    # Excludes the client's own calls.
    shim.faultsArm(1, 2, 1)
    version = ctypes.c_int()
    if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0 or shim.faultsCalls() != 0:
        raise SystemExit("a call of the client's own was counted")
    print(f"{calls} calls failed, all with their name")


main()
