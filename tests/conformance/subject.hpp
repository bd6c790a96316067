// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: one plugin under test and the ways TensorRT brings it to a state: created, configured, serialized, loaded.
// Never: judges semantics; that is for the checks.
#pragma once

#include "cases.hpp"
#include "expressions.hpp"
#include "host.hpp"
#include "library.hpp"
#include "report.hpp"

#include <string>
#include <vector>

namespace oracle
{

// Descriptions of a node's tensors, in the three forms in which TensorRT passes them.
struct Tensors
{
    std::vector<nvinfer1::PluginTensorDesc> in;
    std::vector<nvinfer1::PluginTensorDesc> out;

    // Inputs and then outputs, `dims` as they are, min, opt and max the same.
    std::vector<nvinfer1::DynamicPluginTensorDesc> all() const;
    // The profile of a dynamic network: dims -1, min 1, opt as they are, max twice that.
    std::vector<nvinfer1::DynamicPluginTensorDesc> dynamic() const;
};

nvinfer1::Dims dimsOf(Shape const& shape);

class Subject
{
public:
    Subject(Report& report, Logger& logger, Facts const& facts, Creator& op, std::vector<Library const*> libraries)
        : report(report)
        , logger(logger)
        , facts(facts)
        , op(op)
        , mLibraries(std::move(libraries))
    {
    }

    Report& report;
    Logger& logger;
    Facts const& facts;
    Creator& op;

    // Starts a check of this plugin.
    void check(std::string const& name, std::function<void(Probe&)> const& body) const;

    // A plugin for building. The check ends when the creator refuses the attributes.
    Owned create(Probe& probe, Fields const& attributes) const;
    Owned create(Probe& probe) const
    {
        return create(probe, facts.attributes());
    }

    Tensors tensors(int32_t dataType, Shape const& shape, std::vector<int32_t> const& attribute) const;
    Tensors tensors(int32_t dataType = 0) const
    {
        return tensors(dataType, facts.shape, facts.attributeValue);
    }

    // Asks for the shapes of a static network.
    int32_t outputShapes(Probe& probe, nvinfer1::IPluginV3& plugin, Shape const& shape, Shape* result = nullptr) const;

    int32_t configure(
        Probe& probe, nvinfer1::IPluginV3& plugin, std::vector<nvinfer1::DynamicPluginTensorDesc> const& all) const;
    // A plugin configured for `dataType`, float32 by default.
    Owned configured(Probe& probe, int32_t dataType = 0) const;

    Fields serialize(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    // The creator that TensorRT would look for when it loads an engine with `plugin` in it.
    Creator& loader(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    // `createPlugin` for running. Null is an answer here.
    Owned load(Creator& loader, Fields const& fields, size_t shift = 0) const;
    Owned loaded(Probe& probe, Creator& loader, Fields const& fields) const;

    // Demands that the last call was refused with an error in the log. Empties the log.
    void expectError(Probe& probe, std::string const& naming = "") const;

    // One whole life: parsed, built, serialized, loaded, attached, asked to run. Returns what the engine would keep.
    Fields life(Probe& probe, int32_t dataType = 0) const;

private:
    std::vector<Library const*> mLibraries;
};

// Addresses as a GPU has them, in no mapping of the process: no plugin may read through them on the host.
std::vector<void*> devicePointers(size_t count);

// The checks, in the order of a plugin's life.
void checkBuild(Subject const& subject);
void checkShapes(Subject const& subject);
void checkFields(Subject const& subject);
void checkRuntime(Subject const& subject);
void checkStress(Subject const& subject);
void checkDamage(Subject const& subject);

} // namespace oracle
