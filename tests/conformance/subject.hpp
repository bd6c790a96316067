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
    // For outputs with extents of -1: what the builder optimizes for, and the most.
    std::vector<nvinfer1::Dims> opt;
    std::vector<nvinfer1::Dims> max;

    // Inputs and then outputs, `dims` as they are, min, opt and max the same; 0 is the least of a size that depends on data.
    std::vector<nvinfer1::DynamicPluginTensorDesc> all() const;
};

// The descriptors of a call at build time, in the two parts in which TensorRT passes them.
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
    // Whether every byte of an engine's fields is damaged, however many there are.
    bool everyByte{false};

    // Starts a check of this plugin.
    void check(std::string const& name, std::function<void(Probe&)> const& body) const;

    // A plugin for building. The check ends when the creator refuses the attributes.
    Owned create(Probe& probe, Fields const& attributes) const;
    Owned create(Probe& probe) const
    {
        return create(probe, facts.attributes());
    }

    // A node's tensors as the builder describes them; shape inputs are not among them.
    Tensors tensors(Combination const& combination, Given const& given) const;
    // Of the combination of that number, for `facts.given()`. Where a plugin takes float32 and float16 in rows, 0 and 1 are these types.
    Tensors tensors(int32_t combination = 0) const
    {
        return tensors(facts.combinations().at(static_cast<size_t>(combination)), facts.given());
    }
    // Of a plugin whose tensors are all of one type, in rows.
    Tensors tensors(int32_t dataType, Shape const& shape, std::vector<int32_t> const& attribute) const;
    // The descriptors of a dynamic network: dims -1, min 1, opt as they are, max twice that.
    Described profile(Combination const& combination, Given const& given) const;
    // What the greatest shapes of that are.
    Given greatest(Given const& given) const;

    // Asks for the shapes of a static network.
    int32_t outputShapes(
        Probe& probe, nvinfer1::IPluginV3& plugin, Given const& given, std::vector<Shape>* result = nullptr) const;

    int32_t configure(Probe& probe, nvinfer1::IPluginV3& plugin, Described const& all) const;
    // A plugin configured for the combination of that number, after its shapes were asked for.
    Owned configured(Probe& probe, int32_t combination = 0) const;

    size_t workspaceSize(Probe& probe, nvinfer1::IPluginV3& plugin, Described const& all) const;
    // Every tactic of the combination that was configured last; ends the check on an impossible answer.
    std::vector<int32_t> tacticsOf(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    Fields serialize(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    // The creator that TensorRT would look for when it loads an engine with `plugin` in it.
    Creator& loader(Probe& probe, nvinfer1::IPluginV3& plugin) const;

    // `createPlugin` for running. Null is an answer here.
    Owned load(Creator& loader, Fields const& fields, size_t shift = 0) const;
    Owned loaded(Probe& probe, Creator& loader, Fields const& fields) const;

    // Demands that the last call was refused with an error in the log. Empties the log.
    void expectError(Probe& probe, std::string const& naming = "") const;

    // One whole life: parsed, built, serialized, loaded, attached, asked to run. Returns what the engine would keep.
    Fields life(Probe& probe, int32_t combination = 0) const;

private:
    std::vector<Library const*> mLibraries;
};

// Addresses as a GPU has them, in no mapping of the process: no plugin may read through them on the host.
std::vector<void*> devicePointers(size_t count);

// Where the tensors of a node lie, shape inputs aside: TensorRT-RTX 1.7 gives them to nothing that runs (seen).
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

// The checks, in the order of a plugin's life.
void checkBuild(Subject const& subject);
void checkOffer(Subject const& subject);
void checkShapes(Subject const& subject);
void checkFields(Subject const& subject);
void checkRuntime(Subject const& subject);
void checkStress(Subject const& subject);
void checkDamage(Subject const& subject);

} // namespace oracle
