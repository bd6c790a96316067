// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: what the plugins must launch, as plain C++ formulas.
// Never: takes a fact from the library under test.
#pragma once

#include "session.hpp"

#include <array>

namespace oracle
{

struct Expected
{
    // Part of the kernel's name in the code object (the Itanium C++ ABI's mangling).
    std::string kernel;
    std::array<uint32_t, 3> grid{1, 1, 1};
    std::array<uint32_t, 3> block{1, 1, 1};
    uint32_t sharedBytes{0};
    std::vector<uint8_t> arguments;
    // The memory that the kernel reaches by its arguments.
    std::vector<FakeZone> reached;

    template <class T>
    void argument(T value)
    {
        auto const* bytes = reinterpret_cast<uint8_t const*>(&value);
        arguments.insert(arguments.end(), bytes, bytes + sizeof value);
    }
    // An argument by which the kernel reaches so many bytes.
    void pointer(uint64_t address, uint64_t bytes)
    {
        argument(address);
        reached.push_back({address, bytes});
    }
};

// One of the plugins with a formula for its launch.
struct Launching
{
    Facts facts;
    std::vector<int32_t> tactics;
    // Shapes of one rank that it launches something for.
    std::vector<Shape> shapes;
    // And of other ranks, which take an engine each.
    std::vector<Shape> others;
    std::function<Expected(Shape const& x, int32_t dataType, int32_t tactic)> launch;
    // What the driver says of the kernel's parameters.
    FakeSignature signature;
    // How many variants the shape of the facts leaves to the addresses; each has its code prepared.
    size_t candidates{1};
};

// Those of `tests/data/run`, by the names of their files, and those that ship. A tactic of `vectors` is launched where its guard
// holds, with the tensors at `addresses`.
Launching tiles();
Launching vectors();
Launching aligned();
Launching circPadLaunches();
Launching elemwiseAddLaunches();

// Demands one launch, that one.
void expectLaunch(Session const& session, Probe& probe, Expected const& expected);

} // namespace oracle
