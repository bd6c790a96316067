// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: one plugin under test, and bringing it into a state as TensorRT does: created, configured, serialized, loaded.
// Never: judges semantics.
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

struct Tensors
{
    std::vector<nvinfer1::PluginTensorDesc> in;
    std::vector<nvinfer1::PluginTensorDesc> out;
    // Optimal shapes of outputs with extents of -1.
    std::vector<nvinfer1::Dims> opt;
    std::vector<nvinfer1::Dims> max;

    // Inputs, then outputs; min, opt and max are equal; data-dependent sizes have min 0.
    std::vector<nvinfer1::DynamicPluginTensorDesc> all() const;
};

using Described = std::vector<nvinfer1::DynamicPluginTensorDesc>;

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
    bool everyByte{false};

    void check(std::string const& name, std::function<void(Probe&)> const& body) const;

    // Ends the check if the creator rejects the attributes.
    Owned create(Probe& probe, Fields const& attributes) const;
    Owned create(Probe& probe) const
    {
        return create(probe, facts.attributes());
    }

    // Returns the tensors, without shape inputs.
    Tensors tensors(Combination const& combination, Given const& given) const;
    Tensors tensors(int32_t combination = 0) const
    {
        return tensors(facts.combinations().at(static_cast<size_t>(combination)), facts.given());
    }
    Tensors tensors(int32_t dataType, Shape const& shape, std::vector<int32_t> const& attribute) const;
    // dims -1, min 1, max twice opt.
    Described profile(Combination const& combination, Given const& given) const;
    // The profile's maximum shapes.
    Given greatest(Given const& given) const;

    int32_t outputShapes(
        Probe& probe, nvinfer1::IPluginV3& plugin, Given const& given, std::vector<Shape>* result = nullptr) const;

    int32_t configure(Probe& probe, nvinfer1::IPluginV3& plugin, Described const& all) const;
    // Configured after its shapes were queried.
    Owned configured(Probe& probe, int32_t combination = 0) const;

    size_t workspaceSize(Probe& probe, nvinfer1::IPluginV3& plugin, Described const& all) const;
    // Returns the tactics of the last configuration; ends the check on an invalid answer.
    std::vector<int32_t> tacticsOf(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    Fields serialize(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    // Loads engines with `plugin`.
    Creator& loader(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    // May return null.
    Owned load(Creator& loader, Fields const& fields, size_t shift = 0) const;
    Owned loaded(Probe& probe, Creator& loader, Fields const& fields) const;

    // Expects an error logged by the last call. Clears the log.
    void expectError(Probe& probe, std::string const& naming = "") const;

    // Parses, builds, serializes, loads, attaches, runs. Returns the serialized fields.
    Fields life(Probe& probe, int32_t combination = 0) const;

private:
    std::vector<Library const*> mLibraries;
};

// Returns unmapped addresses, so that reading them on the host crashes.
std::vector<void*> devicePointers(size_t count);

// TensorRT-RTX 1.7 passes no address for shape inputs (observed).
class Places
{
public:
    explicit Places(Facts const& facts);

    void const* const* inputs() const
    {
        return mInputs.data();
    }
    void* const* outputs() const
    {
        return mOutputs.data();
    }
    void* workspace() const
    {
        return mWorkspace;
    }

private:
    std::vector<void const*> mInputs;
    std::vector<void*> mOutputs;
    void* mWorkspace;
};

// Checks, in the order of a plugin's life.
void checkBuild(Subject const& subject);
void checkOffer(Subject const& subject);
void checkShapes(Subject const& subject);
void checkFields(Subject const& subject);
void checkRuntime(Subject const& subject);
void checkStress(Subject const& subject);
void checkDamage(Subject const& subject);

}
