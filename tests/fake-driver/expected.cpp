// Copyright of the Cubinder authors; Apache-2.0.
#include "expected.hpp"

#include <cstring>

namespace oracle
{

namespace
{

int64_t elements(Shape const& shape)
{
    int64_t count = 1;
    for (int64_t extent : shape)
    {
        count *= extent;
    }
    return count;
}

uint32_t blocks(int64_t count, int64_t each)
{
    return static_cast<uint32_t>((count + each - 1) / each);
}

std::string typeName(int32_t dataType)
{
    return dataType == 0 ? "f" : "6__half";
}

void pointers(Expected& expected)
{
    expected.argument(addresses()[0]);
    expected.argument(addresses()[1]);
}

Facts knownCase(std::string const& label)
{
    for (Facts const& facts : knownCases())
    {
        if (facts.label == label)
        {
            return facts;
        }
    }
    return {};
}

std::string text(uint32_t const (&values)[3])
{
    return show(std::vector<int64_t>(values, values + 3));
}

std::string text(std::array<uint32_t, 3> const& values)
{
    return show(std::vector<int64_t>(values.begin(), values.end()));
}

std::string hexadecimal(uint8_t const* bytes, size_t count)
{
    std::string out;
    for (size_t i = 0; i < count; ++i)
    {
        out += "0123456789abcdef"[bytes[i] >> 4];
        out += "0123456789abcdef"[bytes[i] & 15];
    }
    return out;
}

}

Launching tiles()
{
    constexpr int32_t kKIB = 25; // two rows exceed the default 48 KiB
    Facts facts;
    facts.label = "tiles";
    facts.op = {"tiles_plugin", "1", "test"};
    facts.attribute = "tile_kib";
    facts.attributeValue = {kKIB};
    facts.shape = {2, 8, 16};
    facts.output = [](Shape const& x, std::vector<int32_t> const&) {
        Shape y = x;
        if (!y.empty())
        {
            y.back() *= 2;
        }
        return y;
    };
    auto launch = [output = facts.output](Shape const& x, int32_t dataType, int32_t tactic) {
        uint32_t const vec = tactic == 2 ? 1 : 4;
        int64_t const count = elements(output(x, {}));
        Expected expected;
        expected.kernel = "tilesI" + typeName(dataType) + "Li" + std::to_string(vec) + "EE";
        expected.grid = {blocks(count, 128), static_cast<uint32_t>(1 + x.size()), 1};
        expected.block = {128 / vec, vec, 1};
        expected.sharedBytes = static_cast<uint32_t>(x.empty() ? 1 : x[0]) * kKIB * 1024;
        pointers(expected);
        expected.argument(count);
        expected.argument(1.5F);
        for (size_t i = 0; i < 4; ++i)
        {
            expected.argument(static_cast<uint32_t>(i < x.size() ? x[i] : 1));
        }
        expected.argument(x.size() > 2);
        return expected;
    };
    return {facts, {1, 2}, {{2, 8, 16}, {1, 1, 1}, {3, 1, 5}, {1, 6, 129}}, {{1}, {3, 5}, {1, 2, 3, 129}, {}}, launch,
        {"tilesI", 6, {8, 8, 8, 4, 16, 1}}};
}

namespace
{

Expected vectorsLaunch(Shape const& x, int32_t dataType, int32_t id, int32_t vec, int32_t bias)
{
    Expected expected;
    expected.kernel = "vectorsI" + typeName(dataType) + "Li" + std::to_string(vec) + "ELi" + std::to_string(id) + "EE";
    expected.grid = {blocks(elements(x), 256 * vec), 1, 1};
    expected.block = {256, 1, 1};
    pointers(expected);
    expected.argument(elements(x));
    expected.argument(bias);
    return expected;
}

Facts vectorsFacts(std::string const& label, int32_t bias)
{
    Facts facts;
    facts.label = label;
    facts.op = {label + "_plugin", "1", "test"};
    facts.attribute = "bias";
    facts.attributeValue = {bias};
    facts.shape = {2, 8, 16};
    facts.output = [](Shape const& x, std::vector<int32_t> const&) { return x; };
    return facts;
}

}

Launching vectors()
{
    constexpr int32_t kBIAS = 50;
    auto launch = [](Shape const& x, int32_t dataType, int32_t tactic) {
        int32_t const id = !x.empty() && x.back() % 4 == 0 ? tactic : 3;
        return vectorsLaunch(x, dataType, id, id == 3 ? 1 : 4, kBIAS);
    };
    return {vectorsFacts("vectors", kBIAS), {1, 2, 3}, {{2, 8, 16}, {1, 3, 5}, {1, 1, 1}, {1, 1, 4096}}, {{3, 5}, {1}, {1, 2, 3, 4}, {4096}}, launch,
        {"vectorsI", 4, {8, 8, 8, 4}}};
}

Launching aligned()
{
    constexpr int32_t kBIAS = 7;
    auto launch = [](Shape const& x, int32_t dataType, int32_t) { return vectorsLaunch(x, dataType, 9, 1, kBIAS); };
    return {vectorsFacts("aligned", kBIAS), {0}, {{2, 8, 16}, {1, 3, 5}}, {{3, 5}}, launch, {"vectorsI", 4, {8, 8, 8, 4}}};
}

Launching circPadLaunches()
{
    Facts facts = knownCase("circ_pad");
    facts.attributeValue = {1, 2, 0, 3};
    auto launch = [facts](Shape const& x, int32_t dataType, int32_t) {
        std::vector<int32_t> const& pads = facts.attributeValue;
        Shape const y = facts.output(x, pads);
        Expected expected;
        expected.kernel = "circ_padI" + typeName(dataType) + "E";
        expected.grid = {blocks(elements(y), 256), 1, 1};
        expected.block = {256, 1, 1};
        pointers(expected);
        expected.argument(static_cast<uint32_t>(elements(y)));
        expected.argument(static_cast<int32_t>(pads.size() / 2));
        // Extents from the last dimension; 1 if absent.
        for (Shape const* shape : {&x, &y})
        {
            for (size_t d = 0; d < 8; ++d)
            {
                expected.argument(static_cast<uint32_t>(d < shape->size() ? (*shape)[shape->size() - 1 - d] : 1));
            }
        }
        for (size_t d = 0; d < 8; ++d)
        {
            int64_t const before = 2 * d < pads.size() ? pads[2 * d] : 0;
            int64_t const extent = d < x.size() ? x[x.size() - 1 - d] : 1;
            expected.argument(static_cast<uint32_t>((extent - before % extent) % extent));
        }
        return expected;
    };
    return {facts, {0}, {{10, 3, 32, 32}, {1, 1, 4, 4}}, {{4, 4}, {2, 1, 1, 1, 7, 5}}, launch,
        {"circ_padI", 7, {8, 8, 4, 4, 32, 32, 32}}};
}

Launching elemwiseAddLaunches()
{
    Facts facts = knownCase("elemwise_add");
    auto launch = [](Shape const& x, int32_t dataType, int32_t) {
        Expected expected;
        expected.kernel = "elemwise_addI" + typeName(dataType) + "E";
        expected.grid = {blocks(elements(x), 256), 1, 1};
        expected.block = {256, 1, 1};
        pointers(expected);
        expected.argument(elements(x));
        return expected;
    };
    return {facts, {0}, {{10, 3, 32, 32}, {1, 1, 1, 256}, {1, 1, 257, 1}}, {{256}, {257}, {}}, launch, {"elemwise_addI", 3, {8, 8, 8}}};
}

void expectLaunch(Session const& session, Probe& probe, Expected const& expected)
{
    std::vector<FakeEvent> const launches = session.launches();
    probe.need(launches.size() == 1, std::to_string(launches.size()) + " launches", "1");
    FakeEvent const& found = launches[0];
    probe.that(std::strstr(found.symbol, expected.kernel.c_str()) != nullptr, "the kernel " + show(found.symbol),
        "one whose name contains " + show(expected.kernel));
    probe.equal("grid", text(found.grid), text(expected.grid));
    probe.equal("block", text(found.block), text(expected.block));
    probe.equal("shared bytes", static_cast<uint64_t>(found.sharedBytes), static_cast<uint64_t>(expected.sharedBytes));
    probe.equal("stream", static_cast<void const*>(found.stream), static_cast<void const*>(stream()));
    probe.equal("arguments", hexadecimal(found.arguments, found.argumentBytes),
        hexadecimal(expected.arguments.data(), expected.arguments.size()));
}

}
