// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: opening, querying and closing a plugin library as TensorRT's registry does. Never: calls a closed library.
#pragma once

#include "report.hpp"

#include <NvInferRuntime.h>

#include <memory>
#include <string>
#include <vector>

namespace oracle
{

using Creator = nvinfer1::IPluginCreatorV3One;
// Deletes through vtable slot 3, as TensorRT does.
using Owned = std::unique_ptr<nvinfer1::IPluginV3>;

struct Identity
{
    std::string name;
    std::string version;
    std::string space;

    bool operator==(Identity const& other) const
    {
        return name == other.name && version == other.version && space == other.space;
    }
    std::string text() const
    {
        return space + "::" + name + ":" + version;
    }
};

class Library
{
public:
    // Throws `std::runtime_error` with the loader's message.
    explicit Library(std::string path);
    ~Library();
    Library(Library const&) = delete;
    Library& operator=(Library const&) = delete;

    void setLoggerFinder(nvinfer1::ILoggerFinder* finder) const;

    // Fails the check on an invalid answer.
    std::vector<nvinfer1::IPluginCreatorInterface*> creators(Probe& probe) const;

    std::vector<Creator*> v3One(Probe& probe) const;

    Creator* find(Probe& probe, Identity const& identity) const;

    std::string const& path() const
    {
        return mPath;
    }

private:
    std::string mPath;
    void* mHandle{nullptr};
    void (*mSetLoggerFinder)(nvinfer1::ILoggerFinder*){nullptr};
    nvinfer1::IPluginCreatorInterface* const* (*mGetCreators)(int32_t&){nullptr};
};

// Returns null for another kind.
Creator* asV3One(nvinfer1::IPluginCreatorInterface* creator);

Identity identityOf(Probe& probe, Creator& creator);

// Ends the check where TensorRT would fail.
nvinfer1::IPluginV3OneCore& coreOf(Probe& probe, nvinfer1::IPluginV3& plugin);
nvinfer1::IPluginV3OneBuild& buildOf(Probe& probe, nvinfer1::IPluginV3& plugin);
nvinfer1::IPluginV3OneRuntime& runtimeOf(Probe& probe, nvinfer1::IPluginV3& plugin);

Identity coreIdentityOf(Probe& probe, nvinfer1::IPluginV3& plugin);

// Ends the check unless it is a new object.
Owned cloneOf(Probe& probe, nvinfer1::IPluginV3& plugin);
Owned attachedOf(Probe& probe, nvinfer1::IPluginV3& plugin, nvinfer1::IPluginResourceContext* context);

}
