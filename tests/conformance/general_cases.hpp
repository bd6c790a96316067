// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the plugins whose tensors are not all alike: formats, outputs in place, sizes that depend on data, shape inputs, workspaces.
// Never: takes a fact from the library under test.
#pragma once

#include "cases.hpp"

namespace oracle
{

std::vector<Facts> generalCases();

int64_t elementsOf(Shape const& shape);

// Why a plugin of Cubinder may not carry that identity in an engine, or an empty text.
std::string cubinderCoreFault(Identity const& core);

} // namespace oracle
