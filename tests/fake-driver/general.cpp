// Copyright of the Cubinder authors; Apache-2.0.
#include "general.hpp"

#include "../conformance/general_cases.hpp"

#include <algorithm>
#include <cstring>

namespace oracle
{

namespace
{

// Exceeds all tensors.
constexpr uint64_t kAPART = 1ULL << 32;
constexpr uint64_t kFIRST = 0x7A00'0000'0000ULL;
constexpr uint64_t kTOTAL_BYTES = 8;

int64_t bytesOf(int32_t dataType)
{
    switch (dataType)
    {
    case 1:
    case 7: return 2; // kHALF, kBF16
    case 8: return 8; // kINT64
    case 2:
    case 4:
    case 5:
    case 6: return 1; // kINT8, kBOOL, kUINT8, kFP8
    default: return 4;
    }
}

// Channels are third from the end.
Shape inMemory(Shape shape, int32_t format)
{
    static std::map<int32_t, int64_t> const vectors{{1, 2}, {2, 8}, {3, 4}, {4, 16}, {5, 32}, {11, 16}};
    auto const found = vectors.find(format);
    if (found != vectors.end() && shape.size() >= 3)
    {
        int64_t& channels = shape[shape.size() - 3];
        channels = (channels + found->second - 1) / found->second * found->second;
    }
    return shape;
}

bool isThere(FakeDriver const& driver, FakeZone const& reached)
{
    return std::any_of(driver.zones, driver.zones + driver.zoneCount, [&](FakeZone const& zone) {
        uint64_t const offset = reached.begin - zone.begin;
        return reached.begin >= zone.begin && offset <= zone.bytes && reached.bytes <= zone.bytes - offset;
    });
}

uint32_t blocksOf(int64_t count, int64_t each)
{
    return static_cast<uint32_t>((count + each - 1) / each);
}

Facts known(std::string const& label)
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

std::string hex(uint8_t const* bytes, size_t count)
{
    std::string out;
    for (size_t i = 0; i < count; ++i)
    {
        out += "0123456789abcdef"[bytes[i] >> 4];
        out += "0123456789abcdef"[bytes[i] & 15];
    }
    return out;
}

std::string extents(uint32_t const* values)
{
    return show(std::vector<int64_t>(values, values + 3));
}

std::vector<Queued> everythingSteps(Combination const& combination, Given const& given, int32_t tactic, Memory const& memory)
{
    std::string const type = combination.types[0] == 0 ? "f" : "6__half";
    Shape const& x = given.inputs[0];
    int64_t const count = elementsOf(x);
    bool const isVector = combination.formats[0] == 0 && tactic != 2 && x.back() % 4 == 0;
    int64_t const vec = isVector ? 4 : 1;
    uint64_t const partial = memory.workspace();
    uint64_t const partialBytes = 4 * static_cast<uint64_t>((count + 3) / 4);
    uint64_t const total = partial + (partialBytes + 255) / 256 * 256;
    std::vector<Queued> steps;
    if (memory.address(0) != memory.address(2))
    {
        steps.push_back(Queued::copying(memory.address(2), memory.address(0), memory.bytes(0)));
    }
    steps.push_back(Queued::filling(total, kTOTAL_BYTES, 0));
    Expected collect;
    collect.kernel = "collectI" + type + "Li" + std::to_string(vec) + "E";
    collect.grid = {blocksOf(count, 256 * vec), 1, 1};
    collect.block = {256, 1, 1};
    memory.give(collect, 2);
    collect.pointer(partial, partialBytes);
    collect.pointer(total, kTOTAL_BYTES);
    collect.argument(count);
    steps.push_back(Queued::launching(collect));
    Expected report;
    report.kernel = "report";
    report.block = {32, 1, 1};
    report.pointer(total, kTOTAL_BYTES);
    memory.give(report, 4);
    memory.give(report, 5);
    steps.push_back(Queued::launching(report));
    int64_t const cells = (given.inputs[1][0] + given.attribute[0]) * 2 * given.values[0][0] * given.values[0][1];
    if (cells > 0)
    {
        Expected settle;
        settle.kernel = "settleI" + type + "E";
        settle.grid = {blocksOf(cells, 256), 1, 1};
        settle.block = {256, 1, 1};
        memory.give(settle, 1);
        memory.give(settle, 3);
        settle.argument(given.values[0][1]);
        settle.argument(given.attribute[0]);
        steps.push_back(Queued::launching(settle));
    }
    return steps;
}

std::vector<Queued> sequenceSteps(Combination const& combination, Given const& given, int32_t, Memory const& memory)
{
    constexpr int64_t kSMALL = 64;
    constexpr uint32_t kMULTIPROCESSORS = 128;
    std::string const type = combination.types[0] == 0 ? "f" : "6__half";
    int64_t const count = elementsOf(given.inputs[0]);
    uint64_t const partial = memory.workspace();
    uint64_t const partialBytes = 4 * static_cast<uint64_t>((count + 3) / 4);
    uint64_t const total = partial + (partialBytes + 255) / 256 * 256;
    std::vector<Queued> steps{Queued::filling(memory.address(2), memory.bytes(2), 0xA5)};
    Expected last;
    memory.give(last, 0);
    memory.give(last, 1);
    if (count <= kSMALL)
    {
        last.kernel = "at_onceI" + type + "E";
        last.block = {64, 1, 1};
    }
    else
    {
        steps.push_back(Queued::filling(total, kTOTAL_BYTES, 0));
        Expected first;
        first.kernel = "countI" + type + "E";
        first.grid = {blocksOf(count, 256), 1, 1};
        first.block = {256, 1, 1};
        memory.give(first, 0);
        first.pointer(partial, partialBytes);
        first.pointer(total, kTOTAL_BYTES);
        first.argument(count);
        steps.push_back(Queued::launching(first));
        last.kernel = "finishI" + type + "E";
        last.grid = {std::min(kMULTIPROCESSORS, blocksOf(count, 256)), 1, 1};
        last.block = {256, 1, 1};
        last.pointer(total, kTOTAL_BYTES);
    }
    last.argument(count);
    last.argument(given.attribute[0]);
    steps.push_back(Queued::launching(last));
    return steps;
}

std::vector<Queued> layoutsSteps(Combination const& combination, Given const& given, int32_t tactic, Memory const& memory)
{
    Shape const& x = given.inputs[0];
    int64_t const vec = combination.formats[0] == 0 && tactic != 2 && x.back() % 4 == 0 ? 4 : 1;
    Expected copy;
    copy.kernel = std::string("layoutsI") + (combination.types[0] == 0 ? "f" : "6__half") + "Li" + std::to_string(vec) + "E";
    copy.grid = {blocksOf(elementsOf(x), 256 * vec), 1, 1};
    copy.block = {256, 1, 1};
    memory.give(copy, 0);
    memory.give(copy, 1);
    copy.argument(elementsOf(x));
    copy.argument(inMemory(x, combination.formats[0])[x.size() - 3]);
    copy.argument(given.attribute[0]);
    return {Queued::launching(copy)};
}

}

Memory::Memory(Facts const& facts, Combination const& combination, Given const& given, uint64_t workspaceBytes, bool apart)
    : mInputs(given.inputs.size())
    , mWorkspaceBytes(workspaceBytes)
{
    std::vector<Shape> shapes = given.inputs;
    std::vector<SizeBound> const sizes = facts.sizes ? facts.sizes(given) : std::vector<SizeBound>{};
    for (Shape shape : facts.outputShapes(given))
    {
        for (int64_t& extent : shape)
        {
            for (SizeBound const& bound : sizes)
            {
                extent = extent == sizeIn(bound.output) ? bound.upper : extent;
            }
        }
        shapes.push_back(shape);
    }
    for (size_t i = 0; i < shapes.size(); ++i)
    {
        int64_t const bytes = elementsOf(inMemory(shapes[i], combination.formats[i])) * bytesOf(combination.types[i]);
        mBytes.push_back(static_cast<uint64_t>(bytes));
        size_t const output = i - mInputs;
        bool const isAlias = i >= mInputs && output < facts.aliases.size() && facts.aliases[output] >= 0 && !apart;
        mAddresses.push_back(isAlias ? mAddresses[static_cast<size_t>(facts.aliases[output])] : kFIRST + i * kAPART);
    }
    // TensorRT aligns workspaces to 512 bytes.
    mWorkspace = kFIRST + shapes.size() * kAPART + 512;
}

void Memory::announce(FakeDriver& driver) const
{
    driver.zoneCount = 0;
    driver.strays = 0;
    for (size_t i = 0; i < mAddresses.size(); ++i)
    {
        driver.zones[driver.zoneCount++] = {mAddresses[i], mBytes[i]};
    }
    driver.zones[driver.zoneCount++] = {mWorkspace, mWorkspaceBytes};
}

int32_t Memory::enqueue(nvinfer1::IPluginV3OneRuntime& runtime, Tensors const& node) const
{
    std::vector<void const*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < mAddresses.size(); ++i)
    {
        void* const address = reinterpret_cast<void*>(mAddresses[i]);
        i < mInputs ? inputs.push_back(address) : outputs.push_back(address);
    }
    return runtime.enqueue(node.in.data(), node.out.data(), inputs.data(), outputs.data(), reinterpret_cast<void*>(mWorkspace),
        static_cast<cudaStream_t>(stream()));
}

Queued Queued::launching(Expected const& launch)
{
    Queued queued;
    queued.call = "cuLaunchKernel";
    queued.launch = launch;
    return queued;
}

Queued Queued::filling(uint64_t to, uint64_t bytes, int32_t byte)
{
    Queued queued;
    queued.call = "cuMemsetD8Async";
    queued.to = to;
    queued.bytes = bytes;
    queued.byte = byte;
    return queued;
}

Queued Queued::copying(uint64_t to, uint64_t from, uint64_t bytes)
{
    Queued queued;
    queued.call = "cuMemcpyDtoDAsync_v2";
    queued.to = to;
    queued.from = from;
    queued.bytes = bytes;
    return queued;
}

void expectQueued(Session const& session, Probe& probe, std::vector<Queued> const& expected)
{
    std::vector<FakeEvent> found;
    for (FakeEvent const& event : session.events())
    {
        bool const isQueued = std::strncmp(event.call, "cuLaunch", 8) == 0 || std::strncmp(event.call, "cuMem", 5) == 0;
        if (isQueued)
        {
            found.push_back(event);
            probe.equal("result of " + std::string(event.call), event.result, 0);
        }
    }
    FakeDriver const& driver = session.bench.driver;
    probe.that(driver.strays == 0, "the address " + show(reinterpret_cast<void const*>(driver.stray)) + " outside of device memory", "none");
    for (size_t i = 0; i < found.size() && i < expected.size(); ++i)
    {
        FakeEvent const& event = found[i];
        Queued const& step = expected[i];
        std::string const which = "step " + show(static_cast<uint64_t>(i)) + ": ";
        if (!probe.equal(which + "call", std::string(event.call), step.call))
        {
            break;
        }
        probe.equal(which + "stream", static_cast<void const*>(event.stream), static_cast<void const*>(stream()));
        probe.equal(which + "address", event.to, step.to);
        probe.equal(which + "source", event.from, step.from);
        probe.equal(which + "bytes", event.bytes, step.bytes);
        probe.equal(which + "byte", event.value, step.byte);
        if (step.call == "cuLaunchKernel")
        {
            bool const isKernel = std::strstr(event.symbol, step.launch.kernel.c_str()) != nullptr;
            probe.that(isKernel, which + "the kernel " + show(event.symbol), "one whose name contains " + show(step.launch.kernel));
            probe.equal(which + "grid", extents(event.grid), extents(step.launch.grid.data()));
            probe.equal(which + "block", extents(event.block), extents(step.launch.block.data()));
            probe.equal(which + "arguments", hex(event.arguments, event.argumentBytes),
                hex(step.launch.arguments.data(), step.launch.arguments.size()));
            for (FakeZone const& reached : step.launch.reached)
            {
                bool const fits = driver.zoneCount == 0 || isThere(driver, reached);
                probe.that(fits, which + show(reached.bytes) + " bytes from " + show(reinterpret_cast<void const*>(reached.begin)) + " on, which do not exist",
                    "memory that is reserved");
            }
        }
    }
    probe.equal("steps", static_cast<uint64_t>(found.size()), static_cast<uint64_t>(expected.size()));
}

std::vector<General> generalPlugins()
{
    return {
        {known("everything"), everythingSteps,
            {{"collectI", 4, {8, 8, 8, 8}}, {"report", 3, {8, 8, 8}}, {"settleI", 4, {8, 8, 8, 4}}}},
        {known("layouts"), layoutsSteps, {{"layoutsI", 5, {8, 8, 8, 8, 4}}}},
        {known("sequence"), sequenceSteps,
            {{"5countI", 4, {8, 8, 8, 8}}, {"finishI", 5, {8, 8, 8, 8, 4}}, {"at_onceI", 4, {8, 8, 8, 4}}}},
    };
}

}
