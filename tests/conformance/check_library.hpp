// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: the checks of a library as a whole: entry points, creators, loading and unloading.
// Never: knows what a plugin computes.
#pragma once

#include "host.hpp"
#include "library.hpp"
#include "report.hpp"

#include <string>
#include <vector>

namespace oracle
{

// `role` begins the names of the checks: `library` or `runtime library`.
void checkLibrary(Report& report, Logger& logger, Finder& finder, Library const& library, std::string const& role);

// No registry takes two creators of one name, so two libraries must not have any in common.
void checkTogether(Report& report, std::vector<Library const*> const& libraries);

// A second copy under another name, its file deleted: what TensorRT does with a library that a plan carries.
void checkCopy(Report& report, Finder& finder, Library const& library, std::string const& role);

// Opens and closes every library 50 times, after it was in use. Nothing may be left in the process.
void checkUnloading(Report& report, Finder& finder, std::vector<std::string> const& paths, size_t openFilesBefore);

size_t openFiles();

// The headers themselves.
void checkLayout(Report& report);

// The quick creators of the library, and what they make. Skipped with headers that have none.
void checkQuick(Report& report, Logger& logger, Library const& library);

// The plugin with an attribute of every kind.
void checkAttributes(Report& report, Logger& logger, Creator& creator);

} // namespace oracle
