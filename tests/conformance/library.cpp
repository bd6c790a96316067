// Copyright of the Cubinder authors; Apache-2.0.
#include "library.hpp"

#include <cstring>
#include <dlfcn.h>
#include <stdexcept>

namespace oracle
{

using nvinfer1::IPluginCapability;
using nvinfer1::IPluginV3;
using nvinfer1::PluginCapabilityType;

namespace
{

constexpr int32_t kMOST_CREATORS = 1024;

void* entry(void* handle, std::string const& path, char const* name)
{
    void* found = dlsym(handle, name);
    if (found == nullptr)
    {
        throw std::runtime_error(path + " does not export " + name);
    }
    return found;
}

std::string textOf(Probe& probe, char const* what, char const* text)
{
    probe.need(text != nullptr, std::string(what) + " null", "a text");
    return text;
}

template <class T>
T& capability(Probe& probe, IPluginV3& plugin, PluginCapabilityType type, char const* what)
{
    IPluginCapability* found = plugin.getCapabilityInterface(type);
    probe.need(found != nullptr, std::string("no capability ") + what + " (null)", "a capability");
    return *static_cast<T*>(found);
}

}

Library::Library(std::string path)
    : mPath(std::move(path))
{
    mHandle = dlopen(mPath.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (mHandle == nullptr)
    {
        throw std::runtime_error(dlerror());
    }
    mSetLoggerFinder
        = reinterpret_cast<decltype(mSetLoggerFinder)>(entry(mHandle, mPath, "setLoggerFinder"));
    mGetCreators = reinterpret_cast<decltype(mGetCreators)>(entry(mHandle, mPath, "getCreators"));
}

Library::~Library()
{
    if (mHandle != nullptr)
    {
        dlclose(mHandle);
    }
}

void Library::setLoggerFinder(nvinfer1::ILoggerFinder* finder) const
{
    mSetLoggerFinder(finder);
}

std::vector<nvinfer1::IPluginCreatorInterface*> Library::creators(Probe& probe) const
{
    int32_t count = -1;
    nvinfer1::IPluginCreatorInterface* const* array = mGetCreators(count);
    probe.need(count >= 1 && count <= kMOST_CREATORS, show(count) + " creators", "1 to 1024");
    probe.need(array != nullptr, "null instead of the creators", "an array");
    std::vector<nvinfer1::IPluginCreatorInterface*> creators(array, array + count);
    for (auto* creator : creators)
    {
        probe.need(creator != nullptr, "a null creator", "a creator");
    }
    return creators;
}

std::vector<Creator*> Library::v3One(Probe& probe) const
{
    std::vector<Creator*> found;
    for (auto* any : creators(probe))
    {
        Creator* creator = asV3One(any);
        if (creator != nullptr)
        {
            found.push_back(creator);
        }
    }
    return found;
}

Creator* Library::find(Probe& probe, Identity const& identity) const
{
    for (Creator* creator : v3One(probe))
    {
        if (identityOf(probe, *creator) == identity)
        {
            return creator;
        }
    }
    return nullptr;
}

Creator* asV3One(nvinfer1::IPluginCreatorInterface* creator)
{
    nvinfer1::InterfaceInfo const info = creator->getInterfaceInfo();
    bool const isV3One = info.kind != nullptr && std::strcmp(info.kind, "PLUGIN CREATOR_V3ONE") == 0;
    return isV3One ? static_cast<Creator*>(creator) : nullptr;
}

Identity identityOf(Probe& probe, Creator& creator)
{
    return {textOf(probe, "creator name", creator.getPluginName()),
        textOf(probe, "creator version", creator.getPluginVersion()),
        textOf(probe, "creator namespace", creator.getPluginNamespace())};
}

nvinfer1::IPluginV3OneCore& coreOf(Probe& probe, IPluginV3& plugin)
{
    return capability<nvinfer1::IPluginV3OneCore>(probe, plugin, PluginCapabilityType::kCORE, "CORE");
}

nvinfer1::IPluginV3OneBuild& buildOf(Probe& probe, IPluginV3& plugin)
{
    return capability<nvinfer1::IPluginV3OneBuild>(probe, plugin, PluginCapabilityType::kBUILD, "BUILD");
}

nvinfer1::IPluginV3OneRuntime& runtimeOf(Probe& probe, IPluginV3& plugin)
{
    return capability<nvinfer1::IPluginV3OneRuntime>(probe, plugin, PluginCapabilityType::kRUNTIME, "RUNTIME");
}

Identity coreIdentityOf(Probe& probe, IPluginV3& plugin)
{
    nvinfer1::IPluginV3OneCore& core = coreOf(probe, plugin);
    return {textOf(probe, "core name", core.getPluginName()), textOf(probe, "core version", core.getPluginVersion()),
        textOf(probe, "core namespace", core.getPluginNamespace())};
}

Owned cloneOf(Probe& probe, IPluginV3& plugin)
{
    IPluginV3* clone = plugin.clone();
    probe.need(clone != nullptr, "a null clone", "a plugin");
    probe.need(clone != &plugin, "the plugin itself as its clone", "another object");
    return Owned(clone);
}

Owned attachedOf(Probe& probe, IPluginV3& plugin, nvinfer1::IPluginResourceContext* context)
{
    IPluginV3* attached = runtimeOf(probe, plugin).attachToContext(context);
    probe.need(attached != nullptr, "null from attachToContext", "a plugin");
    probe.need(attached != &plugin, "the plugin itself from attachToContext", "a new object");
    return Owned(attached);
}

}
