// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: plugins with formats, aliased outputs, data-dependent sizes, shape inputs and workspaces. Never: takes a fact
// from the library under test.
#pragma once

#include "cases.hpp"

namespace oracle
{

std::vector<Facts> generalCases();

int64_t elementsOf(Shape const& shape);

std::string cubinderCoreFault(Identity const& core);

}
