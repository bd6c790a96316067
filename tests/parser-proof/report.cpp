// Copyright of the Cubinder authors; Apache-2.0.
#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <stdexcept>

namespace proof
{

namespace
{

// Maximum number in the summary.
constexpr size_t SHOWN = 5;
constexpr size_t SHOWN_LETTERS = 300;

std::string quoted(std::string const& text)
{
    std::string found = "\"";
    for (char const letter : text)
    {
        if (letter == '"' || letter == '\\')
            found += std::string("\\") + letter;
        else if (static_cast<unsigned char>(letter) < 0x20)
        {
            char code[8];
            std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(letter));
            found += code;
        }
        else
            found += letter;
    }
    return found + "\"";
}

char const* truth(bool value)
{
    return value ? "true" : "false";
}

std::string number(double value)
{
    char text[32];
    std::snprintf(text, sizeof(text), "%.3f", value);
    return text;
}

template <class T, class F>
std::string array(std::vector<T> const& values, F const& written)
{
    std::string found;
    for (auto const& value : values)
        found += (found.empty() ? "" : ", ") + written(value);
    return "[" + found + "]";
}

std::string array(std::vector<std::string> const& values)
{
    return array(values, quoted);
}

std::string written(Plugin const& plugin)
{
    return "\"name\": " + quoted(plugin.name) + ", \"version\": " + quoted(plugin.version)
        + ", \"namespace\": " + quoted(plugin.nameSpace);
}

std::string written(Creator const& creator)
{
    return "{" + written(creator.plugin) + ", \"kind\": " + quoted(creator.kind) + ", \"fields\": " + array(creator.fields) + "}";
}

std::string written(Layer const& layer)
{
    return "{\"layer\": " + quoted(layer.name) + ", \"core\": " + quoted(layer.core) + ", \"build\": " + quoted(layer.build) + ", "
        + written(layer.plugin) + "}";
}

std::string written(Tensor const& tensor)
{
    auto const extent = [](int64_t value) { return std::to_string(value); };
    return "{\"name\": " + quoted(tensor.name) + ", \"type\": " + quoted(tensor.type)
        + ", \"shape\": " + (tensor.shape.isKnown ? array(tensor.shape.extents, extent) : "null") + "}";
}

template <class T>
std::string objects(std::vector<T> const& values)
{
    return array(values, [](T const& value) { return written(value); });
}

std::string cut(std::string text)
{
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text.size() <= SHOWN_LETTERS ? text : text.substr(0, SHOWN_LETTERS) + " ...";
}

}

Report::Report(Options const& options)
    : mTable(options.table)
    , mJson(options.json)
    , mIsBuilding(options.isBuilding)
{
    if (!mTable || !mJson)
        throw std::runtime_error("cannot write `" + options.table + "` or `" + options.json + "`");
}

void Report::differ(std::string const& place, Differences const& differences)
{
    for (auto const& text : differences.texts())
    {
        mDifferences.push_back(place + ": " + text);
        mTable << "  unexpected: " << text << "\n";
    }
}

void Report::versions(int32_t library, int32_t parser)
{
    mTable << "TensorRT " << library << ", ONNX parser " << parser << std::endl;
    std::cout << "TensorRT " << library << ", ONNX parser " << parser << "\n";
    mJson << "{\"tensorrt\": " << library << ", \"parser\": " << parser << "}" << std::endl;
}

void Report::loaded(Loaded const& loaded)
{
    ++mLibraries;
    mTable << "library " << loaded.library << (loaded.isLoaded ? " loaded" : " refused") << " in " << number(loaded.milliseconds)
           << " ms\n";
    for (auto const& creator : loaded.creators)
    {
        ++mKinds[creator.kind];
        mTable << "  creator " << creator.plugin.text() << ", " << creator.kind << "\n";
    }
    differ(loaded.library, loaded.differences);
    mTable << std::flush;
    mJson << "{\"library\": " << quoted(loaded.library) << ", \"loaded\": " << truth(loaded.isLoaded)
          << ", \"milliseconds\": " << number(loaded.milliseconds) << ", \"creators\": " << objects(loaded.creators)
          << ", \"differences\": " << array(loaded.differences.texts()) << "}" << std::endl;
}

void Report::said(std::string const& when, std::vector<std::string> const& lines)
{
    for (auto const& line : lines)
        mTable << "  log of the " << when << ": " << line << "\n";
    mTable << std::flush;
    mJson << "{\"log\": " << quoted(when) << ", \"lines\": " << array(lines) << "}" << std::endl;
    if (when == "builder")
        for (auto const& line : lines)
            if (line.rfind("VERBOSE", 0) != 0)
                std::cout << "log of the builder: " << cut(line) << "\n";
}

void Report::noBuilder()
{
    mHasBuilder = false;
    mJson << "{\"builder\": null}" << std::endl;
}

void Report::begin(Model const& model)
{
    mTable << model.file << std::flush;
}

void Report::tried(Model const& model, Outcome const& outcome)
{
    ++mModels;
    auto& group = mGroups[model.group];
    bool const isRight = outcome.differences.texts().empty();
    ++group.models;
    group.created += outcome.plugins.size();
    group.refused += !model.refused.empty() && isRight;
    group.wrong += !isRight;
    group.parseMilliseconds += outcome.parseMilliseconds;
    if (outcome.isBuildTried)
        ++mBuildErrors[outcome.planBytes > 0 ? "an engine" : outcome.buildError];
    tabulate(model, outcome);
    differ(model.file, outcome.differences);
    mTable << std::flush;
    write(model, outcome);
}

void Report::tabulate(Model const& model, Outcome const& outcome)
{
    mTable << ": " << (outcome.isParsed ? "parsed" : "not parsed") << " in " << number(outcome.parseMilliseconds) << " ms\n";
    for (auto const& layer : outcome.plugins)
        mTable << "  plugin layer " << layer.name << ": " << layer.plugin.text() << ", " << layer.core << ", " << layer.build << "\n";
    for (auto const& expected : model.tensors)
        for (auto const& tensor : outcome.tensors)
            if (tensor.name == expected.name)
                mTable << "  " << tensor.text() << (tensor.text() == expected.text() ? ", as expected" : ", expected " + expected.text()) << "\n";
    // Messages about the file repeat.
    for (auto const& line : outcome.log)
        if (line.rfind("INFO", 0) != 0 || line.find("plugin") != std::string::npos)
            if (line.rfind("VERBOSE", 0) != 0)
                mTable << "  " << cut(line) << "\n";
    if (outcome.isBuildTried)
        mTable << "  build, " << number(outcome.buildMilliseconds) << " ms: "
               << (outcome.planBytes > 0 ? "an engine of " + std::to_string(outcome.planBytes) + " bytes" : outcome.buildError) << "\n";
}

void Report::write(Model const& model, Outcome const& outcome)
{
    mJson << "{\"model\": " << quoted(model.file) << ", \"group\": " << quoted(model.group) << ", \"parsed\": " << truth(outcome.isParsed)
          << ", \"parse_milliseconds\": " << number(outcome.parseMilliseconds) << ", \"created\": " << outcome.created
          << ", \"expected\": " << objects(model.tensors) << ", \"tensors\": " << objects(outcome.tensors)
          << ", \"plugins\": " << objects(outcome.plugins) << ", \"layers\": " << array(outcome.layers)
          << ", \"parser_errors\": " << array(outcome.parserErrors) << ", \"log\": " << array(outcome.log);
    if (outcome.isBuildTried)
        mJson << ", \"build_milliseconds\": " << number(outcome.buildMilliseconds) << ", \"plan_bytes\": " << outcome.planBytes
              << ", \"build_error\": " << quoted(outcome.buildError) << ", \"build_log\": " << array(outcome.buildLog);
    mJson << ", \"differences\": " << array(outcome.differences.texts()) << "}" << std::endl;
}

int32_t Report::end()
{
    std::cout << mLibraries << " libraries";
    for (auto const& [kind, count] : mKinds)
        std::cout << ", " << count << " creators of the kind `" << kind << "`";
    std::cout << "\n";
    double milliseconds = 0;
    for (auto const& [name, group] : mGroups)
    {
        milliseconds += group.parseMilliseconds;
        std::cout << "  " << name << " " << group.models << ": " << group.created << " layers";
        if (group.refused > 0)
            std::cout << ", " << group.refused << " rejected as expected";
        if (group.wrong > 0)
            std::cout << ", " << group.wrong << " UNEXPECTED";
        std::cout << ";";
    }
    std::cout << "\n  parsing took " << number(milliseconds) << " ms\n";
    for (auto const& [error, count] : mBuildErrors)
        std::cout << "  " << count << " builds: " << cut(error) << "\n";
    for (size_t i = 0; i < mDifferences.size() && i < SHOWN; ++i)
        std::cout << "  unexpected: " << cut(mDifferences[i]) << "\n";
    if (mDifferences.size() > SHOWN)
        std::cout << "  and " << mDifferences.size() - SHOWN << " more\n";
    if (!mHasBuilder)
        std::cout << "no builder: nothing was parsed\n";
    std::cout << mModels << (mIsBuilding ? " models built, " : " models parsed, ") << mDifferences.size() << " differences" << std::endl;
    if (!mHasBuilder)
        return 3;
    return mDifferences.empty() && mModels > 0 ? 0 : 1;
}

}
