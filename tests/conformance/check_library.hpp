// Copyright of the Cubinder authors; Apache-2.0.
//
// Owns: checks of a whole library. Never: knows what a plugin computes.
#pragma once

#include "host.hpp"
#include "library.hpp"
#include "report.hpp"

#include <string>
#include <vector>

namespace oracle
{

void checkLibrary(Report& report, Logger& logger, Finder& finder, Library const& library, std::string const& role);

// A registry rejects two creators of one name, so libraries must share none.
void checkTogether(Report& report, std::vector<Library const*> const& libraries);

// Opens a second copy and deletes its file, as TensorRT does with a library that a plan carries.
void checkCopy(Report& report, Finder& finder, Library const& library, std::string const& role);

// 50 times after use; the process must keep no resources.
void checkUnloading(Report& report, Finder& finder, std::vector<std::string> const& paths, size_t openFilesBefore);

size_t openFiles();

void checkLayout(Report& report);

// Skipped if the headers lack quick creators.
void checkQuick(Report& report, Logger& logger, Library const& library);

void checkAttributes(Report& report, Logger& logger, Creator& creator);

} // namespace oracle
