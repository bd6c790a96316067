// Copyright of the Cubinder authors; Apache-2.0.
#pragma once

#include "expected.hpp"

namespace oracle
{

void checkGood(Bench const& bench, Launching const& plugin);
void checkAlike(Bench const& bench, Launching const& plugin);
void checkAlikeLogs(Bench const& bench, Launching const& plugin);
void checkScalars(Bench const& bench, Launching plugin);
void checkFailures(Bench const& bench, Launching const& plugin);
void checkRefusals(Bench const& bench, Launching const& plugin);
void checkRefusedLaunch(Bench const& bench, Launching const& plugin);
void checkGuards(Bench const& bench, Launching const& plugin);
void checkNoVariant(Bench const& bench, Launching const& plugin);
void checkSteps(Bench const& bench);
FakeSignature copiedSignature();
FakeSignature biasedSignature();
FakeSignature finishedSignature();
void checkUnchanged(Bench const& bench);
FakeSignature eightSignature();
// With EXPECTED_WARNING: no ranges and that warning.
void checkRanges(Bench const& bench, Launching const& plugin);
// `bench` has only code for `sm_75` and `sm_90a`.
void checkOtherDevice(Bench const& bench, Launching const& plugin);

}
