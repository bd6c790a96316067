// Copyright of the Cubinder authors; Apache-2.0.
#include "fields.hpp"

#include <cstring>
#include <set>

namespace oracle
{

using nvinfer1::PluginFieldType;

namespace
{

// More mean a broken plugin or misread collection.
constexpr int32_t kMOST_FIELDS = 4096;
constexpr size_t kALIGNMENT = 16;

template <class T>
Field listOf(std::string const& name, PluginFieldType type, std::vector<T> const& values)
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

}

Field ints(std::string const& name, std::vector<int32_t> const& values)
{
    return listOf(name, PluginFieldType::kINT32, values);
}

Field floats(std::string const& name, std::vector<float> const& values)
{
    return listOf(name, PluginFieldType::kFLOAT32, values);
}

size_t elementSize(PluginFieldType type)
{
    // Numbers: older headers lack names. 12 and 13 pack two elements into a byte.
    switch (static_cast<int32_t>(type))
    {
    case 0: return 2;                      // kFLOAT16
    case 1: return 4;                      // kFLOAT32
    case 2: return 8;                      // kFLOAT64
    case 3: return 1;                      // kINT8
    case 4: return 2;                      // kINT16
    case 5: return 4;                      // kINT32
    case 6: return 1;                      // kCHAR
    case 7: return sizeof(nvinfer1::Dims); // kDIMS
    case 8: return 1;                      // kUNKNOWN
    case 9: return 2;                      // kBF16
    case 10: return 8;                     // kINT64
    case 11: return 1;                     // kFP8
    default: return 0;
    }
}

Fields copy(Probe& probe, nvinfer1::PluginFieldCollection const* collection)
{
    probe.need(collection != nullptr, "no collection of fields (null)", "a collection");
    int32_t const count = collection->nbFields;
    probe.need(count >= 0 && count <= kMOST_FIELDS, "a collection of " + show(count) + " fields", "0 to 4096");
    probe.need(count == 0 || collection->fields != nullptr, "null instead of " + show(count) + " fields", "an array");
    Fields fields;
    std::set<std::string> names;
    for (int32_t i = 0; i < count; ++i)
    {
        nvinfer1::PluginField const& raw = collection->fields[i];
        std::string const which = "field " + show(i);
        // TensorRT crashes on null.
        probe.need(raw.name != nullptr, which + " without a name (null)", "a name");
        probe.that(names.insert(raw.name).second, "field " + show(raw.name) + " twice", "each name once");
        size_t const size = elementSize(raw.type);
        probe.need(size != 0, which + " of type " + show(static_cast<int32_t>(raw.type)), "a type of the headers");
        probe.need(raw.length >= 0, which + " of length " + show(raw.length), "0 or more");
        probe.need(raw.length == 0 || raw.data != nullptr, which + " with null data", "data");
        Field field;
        field.name = raw.name;
        field.type = raw.type;
        field.length = raw.length;
        auto const* bytes = static_cast<uint8_t const*>(raw.data);
        field.bytes.assign(bytes, bytes + size * static_cast<size_t>(raw.length));
        fields.push_back(std::move(field));
    }
    return fields;
}

std::string difference(Fields const& found, Fields const& expected)
{
    if (found.size() != expected.size())
    {
        return std::to_string(found.size()) + " fields instead of " + std::to_string(expected.size());
    }
    for (size_t i = 0; i < found.size(); ++i)
    {
        if (found[i] != expected[i])
        {
            return "field " + show(expected[i].name.value_or("")) + " with another content";
        }
    }
    return "";
}

Collection::Collection(Fields fields, size_t shift)
    : mFields(std::move(fields))
    , mMemory(mFields.size())
{
    for (size_t i = 0; i < mFields.size(); ++i)
    {
        Field const& field = mFields[i];
        auto& memory = mMemory[i];
        memory.resize(field.bytes.size() + kALIGNMENT + shift, 0xA5);
        auto const address = reinterpret_cast<uintptr_t>(memory.data());
        uint8_t* data = memory.data() + (kALIGNMENT - address % kALIGNMENT) % kALIGNMENT + shift;
        std::memcpy(data, field.bytes.data(), field.bytes.size());
        mRaw.emplace_back(
            field.name ? field.name->c_str() : nullptr, field.nullData ? nullptr : data, field.type, field.length);
    }
    mCollection.nbFields = static_cast<int32_t>(mRaw.size());
    mCollection.fields = mRaw.empty() ? nullptr : mRaw.data();
}

}
