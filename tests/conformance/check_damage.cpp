// Copyright of the Cubinder authors; Apache-2.0.
//
// Damaged engines: createPlugin(kRUNTIME) returns null and logs.
#include "subject.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>

namespace oracle
{

using nvinfer1::PluginFieldType;
using nvinfer1::TensorRTPhase;

namespace
{

// Every byte of a short field; ends and a sample of a long one.
constexpr size_t kSHORT = 2048;
constexpr size_t kENDS = 96;
constexpr size_t kSAMPLE = 96;

std::vector<size_t> positions(Subject const& subject, size_t length)
{
    std::vector<size_t> chosen;
    bool const isSampled = length > kSHORT && !subject.everyByte;
    size_t const step = isSampled ? std::max<size_t>(1, (length - 2 * kENDS) / kSAMPLE) : 1;
    for (size_t i = 0; i < length;)
    {
        chosen.push_back(i);
        bool const isInside = i >= kENDS && i + kENDS < length;
        i += isInside ? step : 1;
    }
    return chosen;
}

struct Bench
{
    Fields fields;
    Creator* loader{nullptr};
};

Bench prepare(Subject const& subject, Probe& probe)
{
    Owned plugin = subject.configured(probe);
    Bench bench;
    bench.fields = subject.serialize(probe, *plugin);
    bench.loader = &subject.loader(probe, *plugin);
    subject.loaded(probe, *bench.loader, bench.fields);
    subject.logger.take();
    return bench;
}

void expectRefused(Subject const& subject, Probe& probe, Bench const& bench, Fields const& damaged, std::string const& how)
{
    probe.at(how);
    Owned plugin = subject.load(*bench.loader, damaged);
    probe.that(plugin == nullptr, "a plugin from damaged fields", "null");
    subject.expectError(probe);
}

void eachField(Bench const& bench, std::function<void(size_t, std::string const&)> const& body)
{
    for (size_t i = 0; i < bench.fields.size(); ++i)
    {
        body(i, "field " + show(bench.fields[i].name.value_or("")));
    }
}

//! Whether a provenance record (`model/src/provenance.rs`) begins here, after a complete node.
bool beginsSection(std::vector<uint8_t> const& bytes, size_t at)
{
    static constexpr std::string_view kMAGIC{"\x93" "CUBSEC\n", 8};
    return bytes.size() - at >= kMAGIC.size() && std::equal(kMAGIC.begin(), kMAGIC.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
        [](char magic, uint8_t byte) { return static_cast<uint8_t>(magic) == byte; });
}

}

void checkDamage(Subject const& subject)
{
    subject.check("a changed byte is rejected", [&](Probe& probe) {
        Bench const bench = prepare(subject, probe);
        eachField(bench, [&](size_t which, std::string const& name) {
            Fields damaged = bench.fields;
            for (size_t at : positions(subject, bench.fields[which].bytes.size()))
            {
                for (uint8_t bits : {uint8_t{0x01}, uint8_t{0xFF}})
                {
                    damaged[which].bytes[at] ^= bits;
                    expectRefused(
                        subject, probe, bench, damaged, name + ", byte " + show(static_cast<uint64_t>(at)));
                    damaged[which].bytes[at] ^= bits;
                }
            }
        });
    });
    subject.check("another length is rejected", [&](Probe& probe) {
        Bench const bench = prepare(subject, probe);
        eachField(bench, [&](size_t which, std::string const& name) {
            int32_t const length = bench.fields[which].length;
            // Still in the collection's memory, so safe to read.
            size_t const size = elementSize(bench.fields[which].type);
            for (int32_t other : {0, 1, length / 2, length - 1, length + 1, -1, INT32_MIN})
            {
                if (other == length)
                {
                    continue;
                }
                Fields damaged = bench.fields;
                damaged[which].length = other;
                damaged[which].bytes.resize(size * static_cast<size_t>(std::max(length, other)));
                expectRefused(subject, probe, bench, damaged, name + " of length " + show(other));
            }
        });
    });
    subject.check("a shortened field is rejected", [&](Probe& probe) {
        Bench const bench = prepare(subject, probe);
        eachField(bench, [&](size_t which, std::string const& name) {
            auto const length = static_cast<size_t>(bench.fields[which].length);
            Fields damaged = bench.fields;
            // From the end: truncation also truncates the memory.
            std::vector<size_t> lengths = positions(subject, length);
            std::reverse(lengths.begin(), lengths.end());
            for (size_t shorter : lengths)
            {
                if (beginsSection(bench.fields[which].bytes, shorter))
                {
                    continue;
                }
                damaged[which].length = static_cast<int32_t>(shorter);
                damaged[which].bytes.resize(shorter * elementSize(damaged[which].type));
                expectRefused(subject, probe, bench, damaged, name + " cut to " + show(static_cast<uint64_t>(shorter)));
            }
        });
    });
    subject.check("null data and another type are rejected", [&](Probe& probe) {
        Bench const bench = prepare(subject, probe);
        eachField(bench, [&](size_t which, std::string const& name) {
            Fields damaged = bench.fields;
            damaged[which].nullData = true;
            if (damaged[which].length > 0)
            {
                expectRefused(subject, probe, bench, damaged, name + " with null data");
            }
            damaged = bench.fields;
            damaged[which].type = damaged[which].type == PluginFieldType::kFLOAT32 ? PluginFieldType::kINT32
                                                                                  : PluginFieldType::kFLOAT32;
            damaged[which].bytes.resize(damaged[which].bytes.size() * 4);
            expectRefused(subject, probe, bench, damaged, name + " of another type");
            damaged = bench.fields;
            damaged[which].type = static_cast<PluginFieldType>(99);
            expectRefused(subject, probe, bench, damaged, name + " of an unknown type");
        });
    });
    subject.check("missing, unknown and repeated fields are rejected", [&](Probe& probe) {
        Bench const bench = prepare(subject, probe);
        expectRefused(subject, probe, bench, {}, "no fields");
        Fields more = bench.fields;
        more.push_back(ints("no_such_field", {1}));
        expectRefused(subject, probe, bench, more, "a field of another name");
        more = bench.fields;
        more.push_back(ints("", {1}));
        more.back().name.reset();
        expectRefused(subject, probe, bench, more, "a field without a name");
        eachField(bench, [&](size_t which, std::string const& name) {
            Fields damaged = bench.fields;
            damaged.erase(damaged.begin() + static_cast<long>(which));
            expectRefused(subject, probe, bench, damaged, "no " + name);
            damaged = bench.fields;
            damaged.push_back(bench.fields[which]);
            expectRefused(subject, probe, bench, damaged, name + " twice");
            damaged = bench.fields;
            damaged[which].name = *damaged[which].name + "x";
            expectRefused(subject, probe, bench, damaged, name + " under another name");
            damaged = bench.fields;
            damaged[which].name.reset();
            expectRefused(subject, probe, bench, damaged, name + " without its name");
        });
    });
    subject.check("the loader rejects invalid collections", [&](Probe& probe) {
        Bench const bench = prepare(subject, probe);
        probe.at("a null collection");
        probe.that(Owned(bench.loader->createPlugin("node", nullptr, TensorRTPhase::kRUNTIME)) == nullptr, "a plugin",
            "null");
        subject.expectError(probe);
        for (int32_t count : {1, -1, INT32_MIN, INT32_MAX})
        {
            probe.at(show(count) + " fields at null");
            Collection collection({});
            collection.raw().nbFields = count;
            Owned plugin(bench.loader->createPlugin("node", collection.get(), TensorRTPhase::kRUNTIME));
            probe.that(plugin == nullptr, "a plugin", "null");
            subject.expectError(probe);
        }
        probe.at("a null node name");
        Collection const good(bench.fields);
        Owned plugin(bench.loader->createPlugin(nullptr, good.get(), TensorRTPhase::kRUNTIME));
        probe.that(plugin != nullptr, "a refusal", "a plugin");
    });
    subject.check("valid fields still load afterwards", [&](Probe& probe) {
        Bench const bench = prepare(subject, probe);
        Owned plugin = subject.loaded(probe, *bench.loader, bench.fields);
        std::string const fault = difference(subject.serialize(probe, *plugin), bench.fields);
        probe.that(fault.empty(), fault, "the same fields");
    });
}

}
