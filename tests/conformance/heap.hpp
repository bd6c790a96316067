// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what the process asks of the heap, counted exactly. The allocator's own figures move from call to call where
// nothing is kept.
// Never: part of the oracle's library. The program replaces the C library's functions, for plugin libraries too.
#pragma once

#include <cstdint>

// Calls so far that returned memory.
extern "C" uint64_t heapAllocations();
// Blocks that are in use.
extern "C" int64_t heapBlocks();
