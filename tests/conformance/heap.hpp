// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: exact counts of heap allocations. In the program, to replace the C library's functions for plugin libraries
// too.
#pragma once

#include <cstdint>

extern "C" uint64_t heapAllocations();
extern "C" int64_t heapBlocks();
