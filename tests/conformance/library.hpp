// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: one plugin library, opened, asked and closed as TensorRT's registry does it; plugins and their capabilities.
// Never: calls into a library that is closed.
#pragma once

#include "report.hpp"

#include <NvInferRuntime.h>

#include <memory>
#include <string>
#include <vector>

namespace oracle
{

using Creator = nvinfer1::IPluginCreatorV3One;
// Deleted through slot 3 of its vtable, as TensorRT does it.
using Owned = std::unique_ptr<nvinfer1::IPluginV3>;

// What a registry knows a creator by, and an engine a plugin.
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
    // Opens the library and looks up both entry points. Throws `std::runtime_error` with the loader's words.
    explicit Library(std::string path);
    ~Library();
    Library(Library const&) = delete;
    Library& operator=(Library const&) = delete;

    void setLoggerFinder(nvinfer1::ILoggerFinder* finder) const;

    // Every creator. Fails the check on an impossible answer.
    std::vector<nvinfer1::IPluginCreatorInterface*> creators(Probe& probe) const;

    // Those of the kind V3One. A library may hold quick ones beside them.
    std::vector<Creator*> v3One(Probe& probe) const;

    // The V3One creator of that identity, or null.
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

// The V3One creator behind `creator`, judged by the kind it names; null for another kind.
Creator* asV3One(nvinfer1::IPluginCreatorInterface* creator);

Identity identityOf(Probe& probe, Creator& creator);

// The capabilities of a plugin. They end the check where TensorRT would crash or give up.
nvinfer1::IPluginV3OneCore& coreOf(Probe& probe, nvinfer1::IPluginV3& plugin);
nvinfer1::IPluginV3OneBuild& buildOf(Probe& probe, nvinfer1::IPluginV3& plugin);
nvinfer1::IPluginV3OneRuntime& runtimeOf(Probe& probe, nvinfer1::IPluginV3& plugin);

// The identity that an engine keeps of the plugin.
Identity coreIdentityOf(Probe& probe, nvinfer1::IPluginV3& plugin);

// A clone; ends the check where it is null or no new object.
Owned cloneOf(Probe& probe, nvinfer1::IPluginV3& plugin);
// The copy for an execution context; likewise.
Owned attachedOf(Probe& probe, nvinfer1::IPluginV3& plugin, nvinfer1::IPluginResourceContext* context);

} // namespace oracle
