// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: plugin fields with their data. Never: keeps a plugin's pointer beyond one call.
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

// An ONNX INTS attribute: kINT32; an empty list has length 0 and null data.
Field ints(std::string const& name, std::vector<int32_t> const& values);
Field floats(std::string const& name, std::vector<float> const& values);

// 0 for types unknown to the headers.
size_t elementSize(nvinfer1::PluginFieldType type);

// Copies the fields; also checks names, types, lengths, data and duplicates.
Fields copy(Probe& probe, nvinfer1::PluginFieldCollection const* collection);

// The first difference, or an empty string.
std::string difference(Fields const& found, Fields const& expected);

// As TensorRT passes it; data are `shift` bytes off, because engines guarantee no alignment.
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
    // Returns the mutable collection, to make it invalid.
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

}
