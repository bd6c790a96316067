// Copyright of the Cubinder authors; Apache-2.0.
//
// The tested models and their expected results, written by `models.py`: one fact per line, words separated by spaces.
//
//   library FILE                         starts a library
//   creator NAME VERSION NAMESPACE       registered by the library
//   model FILE GROUP                     starts a model; the report counts by group
//   flags BITS                           `NetworkDefinitionCreationFlags`
//   node LAYER NAME VERSION NAMESPACE    a layer of the network and its plugin
//   tensor NAME TYPE EXTENT...           a tensor after parsing; -1 is an unknown extent
//   profile NAME MIN OPT MAX             for an input with an unknown extent: 1x3x4x4
//   refused TEXT                         the parser rejects the model with this error
//   build                                the model is also built
//
// Owns: the format of the list and the options. Never: calls TensorRT.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace proof
{

struct Plugin
{
    std::string name;
    std::string version;
    std::string nameSpace;

    std::string text() const
    {
        return nameSpace + "::" + name + " " + version;
    }

    bool operator==(Plugin const& other) const
    {
        return text() == other.text();
    }
};

struct Shape
{
    bool isKnown{true};
    std::vector<int64_t> extents;
};

struct Tensor
{
    std::string name;
    std::string type;
    Shape shape;

    // `y f32 (2, -1)`, or `y f32 ?` for an unknown rank.
    std::string text() const;
};

struct Library
{
    std::string file;
    std::vector<Plugin> plugins;
};

struct Node
{
    std::string name;
    Plugin plugin;
};

struct Model
{
    std::string file;
    std::string group;
    uint32_t flags{};
    std::vector<Node> nodes;
    std::vector<Tensor> tensors;
    // Min, opt and max shapes by input.
    std::map<std::string, std::array<std::vector<int64_t>, 3>> profile;
    std::string refused;
    bool isBuilt{};
};

struct List
{
    std::vector<Library> libraries;
    std::vector<Model> models;
};

struct Options
{
    std::string list;
    std::string models;
    std::string libraries;
    // `PLUGIN CREATOR_V3QUICK` or `PLUGIN CREATOR_V3ONE`.
    std::string kind;
    bool isBuilding{};
    // Empty if builds must succeed.
    std::string stopsAt;
    double seconds{60};
    std::string table;
    std::string json;
};

// Throw `std::runtime_error` with place and reason.
List read(std::string const& path);
Options options(int argc, char** argv);

}
