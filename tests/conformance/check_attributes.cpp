// Copyright of the Cubinder authors; Apache-2.0.
//
// Attributes of every kind, valid and invalid. `tests/data/run/attributes.toml` rejects nodes whose `show` is 1 with
// all values.
#include "check_library.hpp"
#include "subject.hpp"

#include <cstring>
#include <functional>

namespace oracle
{

using nvinfer1::PluginFieldType;

namespace
{

enum class Holds
{
    kINTEGERS,
    kFLOATS,
    kBOOLEANS,
    kTEXT,
    kBYTES
};

struct Kind
{
    char const* name;
    Holds holds;
    bool isList;
    size_t width;
};

constexpr Kind kKINDS[] = {
    {"tiny", Holds::kINTEGERS, false, 1}, {"small", Holds::kINTEGERS, false, 2}, {"count", Holds::kINTEGERS, false, 4},
    {"large", Holds::kINTEGERS, false, 8}, {"half", Holds::kFLOATS, false, 2}, {"single", Holds::kFLOATS, false, 4},
    {"double", Holds::kFLOATS, false, 8}, {"show", Holds::kBOOLEANS, false, 1}, {"mode", Holds::kTEXT, false, 1},
    {"table", Holds::kBYTES, false, 1}, {"axes", Holds::kINTEGERS, true, 8}, {"halves", Holds::kFLOATS, true, 2},
    {"scales", Holds::kFLOATS, true, 4}, {"flags", Holds::kBOOLEANS, true, 1}, {"modes", Holds::kTEXT, true, 1},
};

template <class T>
Field of(char const* name, PluginFieldType type, std::vector<T> const& values)
{
    Field field;
    field.name = name;
    field.type = type;
    field.length = static_cast<int32_t>(values.size());
    field.bytes.resize(values.size() * sizeof(T));
    std::memcpy(field.bytes.data(), values.data(), field.bytes.size());
    field.nullData = values.empty();
    return field;
}

Field text(char const* name, std::string const& bytes)
{
    return of(name, PluginFieldType::kCHAR, std::vector<char>(bytes.begin(), bytes.end()));
}

std::vector<Field> good(Kind const& kind)
{
    constexpr auto kINT64 = static_cast<PluginFieldType>(10); // some releases lack the name
    switch (kind.holds)
    {
    case Holds::kINTEGERS:
        return {of<int8_t>(kind.name, PluginFieldType::kINT8, {77}), of<int16_t>(kind.name, PluginFieldType::kINT16, {77}),
            of<int32_t>(kind.name, PluginFieldType::kINT32, {77}), of<int64_t>(kind.name, kINT64, {77})};
    case Holds::kFLOATS:
        return {of<float>(kind.name, PluginFieldType::kFLOAT32, {0.75F}), of<double>(kind.name, PluginFieldType::kFLOAT64, {0.75})};
    case Holds::kBOOLEANS: return {of<int32_t>(kind.name, PluginFieldType::kINT32, {1}), of<int64_t>(kind.name, kINT64, {1})};
    case Holds::kTEXT: return {text(kind.name, std::string("hello") + '\0'), text(kind.name, "hello")};
    case Holds::kBYTES: return {text(kind.name, std::string("M") + '\0'), of<int8_t>(kind.name, PluginFieldType::kINT8, {77})};
    }
    return {};
}

std::string shown(Kind const& kind)
{
    switch (kind.holds)
    {
    case Holds::kFLOATS: return "0.75";
    case Holds::kBOOLEANS: return "true";
    case Holds::kTEXT: return "hello";
    default: return "77";
    }
}

struct Wrong
{
    std::string label;
    Field field;
};

std::vector<Wrong> wrong(Kind const& kind)
{
    std::vector<Wrong> all;
    bool const isText = kind.holds == Holds::kTEXT || kind.holds == Holds::kBYTES;
    bool const isInteger = kind.holds == Holds::kINTEGERS || kind.holds == Holds::kBOOLEANS;
    if (!isText)
    {
        all.push_back({"text", text(kind.name, "1")});
    }
    if (!isInteger)
    {
        all.push_back({"integers", of<int32_t>(kind.name, PluginFieldType::kINT32, {1})});
    }
    if (kind.holds != Holds::kFLOATS)
    {
        all.push_back({"floats", of<float>(kind.name, PluginFieldType::kFLOAT32, {1.0F})});
    }
    if (kind.width != 2 || isInteger)
    {
        all.push_back({"half floats", of<uint16_t>(kind.name, PluginFieldType::kFLOAT16, {0x3C00})});
    }
    all.push_back({"dimensions", of<nvinfer1::Dims>(kind.name, PluginFieldType::kDIMS, {nvinfer1::Dims{}})});
    Field unknown = good(kind)[0];
    unknown.type = static_cast<PluginFieldType>(99);
    all.push_back({"an unknown type", unknown});
    Field null = good(kind)[0];
    null.nullData = true;
    all.push_back({"null data with a length", null});
    for (int32_t length : {-1, INT32_MIN})
    {
        Field negative = good(kind)[0];
        negative.length = length;
        all.push_back({"a length of " + show(length), negative});
    }
    if (!kind.isList && !isText)
    {
        all.push_back({"no value", of<int32_t>(kind.name, isInteger ? PluginFieldType::kINT32 : PluginFieldType::kFLOAT32, {})});
        all.push_back({"two values", isInteger ? of<int32_t>(kind.name, PluginFieldType::kINT32, {0, 1})
                                               : of<float>(kind.name, PluginFieldType::kFLOAT32, {0.5F, 0.5F})});
    }
    if (kind.holds == Holds::kINTEGERS && kind.width < 8)
    {
        int64_t const beyond = int64_t{1} << (8 * kind.width - 1);
        all.push_back({"a number above its type's range", of<int64_t>(kind.name, static_cast<PluginFieldType>(10), {beyond})});
        all.push_back({"a number below its type's range", of<int64_t>(kind.name, static_cast<PluginFieldType>(10), {-beyond - 1})});
    }
    if (kind.holds == Holds::kFLOATS && kind.width == 2)
    {
        all.push_back({"a number above its type's range", of<float>(kind.name, PluginFieldType::kFLOAT32, {1e6F})});
    }
    if (kind.holds == Holds::kBOOLEANS)
    {
        all.push_back({"2", of<int32_t>(kind.name, PluginFieldType::kINT32, {2})});
        all.push_back({"-1", of<int32_t>(kind.name, PluginFieldType::kINT32, {-1})});
    }
    if (kind.holds == Holds::kTEXT)
    {
        all.push_back({"text that is not UTF-8", text(kind.name, "\xC3(")});
        if (!kind.isList)
        {
            all.push_back({"two texts", text(kind.name, std::string("a\0b\0", 4))});
        }
    }
    return all;
}

}

void checkAttributes(Report& report, Logger& logger, Creator& creator)
{
    auto create = [&](Fields const& fields, size_t shift = 0) {
        Collection const collection(fields, shift);
        logger.take();
        return Owned(creator.createPlugin("node", collection.get(), nvinfer1::TensorRTPhase::kBUILD));
    };
    report.run("attributes: each may be omitted", [&](Probe& probe) {
        probe.that(create({}) != nullptr, "a refusal " + show(firstError(logger.take())), "a plugin");
    });
    report.run("attributes: each is read from every type of field, at any address", [&](Probe& probe) {
        for (Kind const& kind : kKINDS)
        {
            for (Field const& field : good(kind))
            {
                for (size_t shift : {0, 1, 3})
                {
                    probe.at(std::string(kind.name) + " of type " + show(static_cast<int32_t>(field.type)) + ", shifted by "
                        + show(static_cast<uint64_t>(shift)));
                    bool const isShow = std::strcmp(kind.name, "show") == 0;
                    probe.equal("a plugin", create({field}, shift) != nullptr, !isShow);
                    Fields fields{field};
                    if (!isShow)
                    {
                        fields.push_back(ints("show", {1}));
                    }
                    probe.that(create(fields, shift) == nullptr, "a plugin", "a rejection that names every value");
                    std::string const error = firstError(logger.take());
                    probe.that(error.find(shown(kind)) != std::string::npos, show(error), show(shown(kind)) + " in it");
                }
            }
        }
    });
    report.run("attributes: an empty list has no data", [&](Probe& probe) {
        for (Kind const& kind : kKINDS)
        {
            Field empty = ints(kind.name, {});
            probe.at(kind.name);
            bool const mayBe = kind.isList || kind.holds == Holds::kBYTES;
            probe.equal("a plugin", create({empty}) != nullptr, mayBe);
        }
    });
    report.run("attributes: invalid values are rejected by name", [&](Probe& probe) {
        for (Kind const& kind : kKINDS)
        {
            for (Wrong const& one : wrong(kind))
            {
                probe.at(std::string(kind.name) + " with " + one.label);
                probe.that(create({one.field}) == nullptr, "a plugin", "null");
                std::string const error = firstError(logger.take());
                probe.that(error.find(kind.name) != std::string::npos, "the message " + show(error), "one that names " + show(kind.name));
            }
            Field const twice = good(kind)[0];
            probe.at(std::string(kind.name) + " twice");
            probe.that(create({twice, twice}) == nullptr, "a plugin", "null");
        }
    });
}

}
