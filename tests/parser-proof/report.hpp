// Copyright of the Cubinder authors; Apache-2.0.
//
// What was found, for people and for programs: a summary on standard output, a table with a line for each model, and JSON, one object a line,
// each written as soon as it is known, so that a crash loses nothing.
//
// Owns: the words. Never: calls TensorRT, or decides what is right.
#pragma once

#include "list.hpp"

#include <fstream>

namespace proof
{

// What is not as expected.
class Differences
{
public:
    void expect(bool isSo, std::string const& otherwise)
    {
        if (!isSo)
            mTexts.push_back(otherwise);
    }

    std::vector<std::string> const& texts() const
    {
        return mTexts;
    }

private:
    std::vector<std::string> mTexts;
};

struct Creator
{
    Plugin plugin;
    std::string kind;
    std::vector<std::string> fields;
};

struct Loaded
{
    std::string library;
    bool isLoaded{};
    double milliseconds{};
    std::vector<Creator> creators;
    Differences differences;
};

// A plugin layer: its interfaces, and what the plugin calls itself.
struct Layer
{
    std::string name;
    std::string core;
    std::string build;
    Plugin plugin;
};

struct Outcome
{
    bool isParsed{};
    double parseMilliseconds{};
    std::vector<std::string> parserErrors;
    // How often the parser said that it made one.
    size_t created{};
    std::vector<Layer> plugins;
    // TensorRT's number of the kind, and the name.
    std::vector<std::string> layers;
    std::vector<Tensor> tensors;
    std::vector<std::string> log;
    bool isBuildTried{};
    double buildMilliseconds{};
    size_t planBytes{};
    std::string buildError;
    std::vector<std::string> buildLog;
    Differences differences;
};

class Report
{
public:
    explicit Report(Options const& options);

    void versions(int32_t library, int32_t parser);
    void loaded(Loaded const& loaded);
    // Lines of the log that belong to no model.
    void said(std::string const& when, std::vector<std::string> const& lines);
    void noBuilder();
    // A model is about to be tried: where the process ends in it, this is the last line of the table.
    void begin(Model const& model);
    void tried(Model const& model, Outcome const& outcome);
    // Prints the summary. The exit code: 0 where everything is as expected, 1 where it is not, 3 where there is no builder.
    int32_t end();

private:
    struct Group
    {
        size_t models{};
        size_t created{};
        size_t refused{};
        size_t wrong{};
        double parseMilliseconds{};
    };

    void tabulate(Model const& model, Outcome const& outcome);
    void write(Model const& model, Outcome const& outcome);
    void differ(std::string const& place, Differences const& differences);

    std::ofstream mTable;
    std::ofstream mJson;
    bool mIsBuilding;
    bool mHasBuilder{true};
    std::map<std::string, Group> mGroups;
    std::map<std::string, size_t> mBuildErrors;
    std::map<std::string, size_t> mKinds;
    std::vector<std::string> mDifferences;
    size_t mModels{};
    size_t mLibraries{};
};

} // namespace proof
