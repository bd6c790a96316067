//! Reading a cubin: kernels, parameters, registers, shared memory.
