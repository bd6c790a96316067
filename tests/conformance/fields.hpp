// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: plugin fields with their own memory: attributes as the ONNX parser makes them, and what an engine keeps of a plugin.
// Never: trusts a pointer longer than one call.
#pragma once

#include "report.hpp"

#include <NvInferRuntime.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oracle
{

struct Field
{
    std::optional<std::string> name;
    nvinfer1::PluginFieldType type{nvinfer1::PluginFieldType::kUNKNOWN};
    int32_t length{0};
    std::vector<uint8_t> bytes;
    bool nullData{false};

    bool operator==(Field const& other) const
    {
        return name == other.name && type == other.type && length == other.length && bytes == other.bytes;
    }
    bool operator!=(Field const& other) const
    {
        return !(*this == other);
    }
};

using Fields = std::vector<Field>;

// An ONNX INTS attribute: kINT32; an empty list has length 0 and no data.
Field ints(std::string const& name, std::vector<int32_t> const& values);
// An ONNX FLOATS attribute.
Field floats(std::string const& name, std::vector<float> const& values);

// Bytes of one element, 0 for a type that the headers do not know.
size_t elementSize(nvinfer1::PluginFieldType type);

// A deep copy. Every rule about a collection that comes from a plugin is checked: names, types, lengths, data, duplicates.
Fields copy(Probe& probe, nvinfer1::PluginFieldCollection const* collection);

// The first difference between two sets of fields, or an empty text.
std::string difference(Fields const& found, Fields const& expected);

// A collection as TensorRT hands it over. The data lie `shift` bytes behind an aligned address: an engine promises no
// alignment.
class Collection
{
public:
    explicit Collection(Fields fields, size_t shift = 0);
    Collection(Collection const&) = delete;
    Collection& operator=(Collection const&) = delete;

    nvinfer1::PluginFieldCollection const* get() const
    {
        return &mCollection;
    }
    // For collections that are wrong in themselves.
    nvinfer1::PluginFieldCollection& raw()
    {
        return mCollection;
    }

private:
    Fields mFields;
    std::vector<std::vector<uint8_t>> mMemory;
    std::vector<nvinfer1::PluginField> mRaw;
    nvinfer1::PluginFieldCollection mCollection;
};

} // namespace oracle
