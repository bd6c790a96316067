// Copyright of the Cubinder authors; Apache-2.0.
//
// What is tried and what is expected of it, as `models.py` writes it: a line for each fact, its words parted by spaces.
//
//   library FILE                         what follows belongs to it
//   creator NAME VERSION NAMESPACE       one that the library registers
//   model FILE GROUP                     what follows belongs to it; the group is what the report counts by
//   flags BITS                           `NetworkDefinitionCreationFlags`
//   node LAYER NAME VERSION NAMESPACE    a layer of the network, and the plugin that it is
//   tensor NAME TYPE EXTENT...           a tensor after parsing; -1 is an extent that is not known yet
//   profile NAME MIN OPT MAX             of an input that has such an extent: 1x3x4x4
//   refused TEXT                         the parser refuses the model, and an error says this
//   build                                the model is also built
//
// Owns: the form of the list, and of the options. Never: calls TensorRT.
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

    // `y f32 (2, -1)`, and `y f32 ?` where not even the rank is known.
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
    // By input: the smallest, the best and the largest shape.
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
    // Folders: of the models, which are beside the list, and of the libraries.
    std::string models;
    std::string libraries;
    // `PLUGIN CREATOR_V3QUICK` or `PLUGIN CREATOR_V3ONE`.
    std::string kind;
    bool isBuilding{};
    // What an error says where every build is to stop; empty where engines are to come of it.
    std::string stopsAt;
    // No build is begun later than this after the start.
    double seconds{60};
    // A line for each model, and one JSON object a line with everything.
    std::string table;
    std::string json;
};

// These throw `std::runtime_error` with the place and what is wrong.
List read(std::string const& path);
Options options(int argc, char** argv);

} // namespace proof
