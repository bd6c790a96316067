// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: plugins' expected launches as C++ formulas. Never: takes a fact from the library under test.
#pragma once

#include "session.hpp"

#include <array>

namespace oracle
{

struct Expected
{
    // Part of the mangled name (Itanium C++ ABI).
    std::string kernel;
    std::array<uint32_t, 3> grid{1, 1, 1};
    std::array<uint32_t, 3> block{1, 1, 1};
    uint32_t sharedBytes{0};
    std::vector<uint8_t> arguments;
    std::vector<FakeZone> reached;

    template <class T>
    void argument(T value)
    {
        auto const* bytes = reinterpret_cast<uint8_t const*>(&value);
        arguments.insert(arguments.end(), bytes, bytes + sizeof value);
    }
    // The kernel accesses `bytes` bytes at the address.
    void pointer(uint64_t address, uint64_t bytes)
    {
        argument(address);
        reached.push_back({address, bytes});
    }
};

struct Launching
{
    Facts facts;
    std::vector<int32_t> tactics;
    std::vector<Shape> shapes;
    // Other ranks need other engines.
    std::vector<Shape> others;
    std::function<Expected(Shape const& x, int32_t dataType, int32_t tactic)> launch;
    FakeSignature signature;
};

// A tactic of `vectors` launches if `addresses` satisfy its guard.
Launching tiles();
Launching vectors();
Launching aligned();
Launching circPadLaunches();
Launching elemwiseAddLaunches();

void expectLaunch(Session const& session, Probe& probe, Expected const& expected);

}
