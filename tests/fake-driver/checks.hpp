// Copyright of the Cubinder authors; Apache-2.0.
//
// The checks of the run path.
#pragma once

#include "expected.hpp"

namespace oracle
{

void checkGood(Bench const& bench, Launching const& plugin);
// `plugin` takes tensors of rank 0.
void checkScalars(Bench const& bench, Launching plugin);
void checkFailures(Bench const& bench, Launching const& plugin);
// What `tiles` is refused for.
void checkRefusals(Bench const& bench, Launching const& plugin);
// What the log says where the driver refuses to launch `tiles`.
void checkRefusedLaunch(Bench const& bench, Launching const& plugin);
// Which of the variants of `vectors` runs, and what it is refused for.
void checkGuards(Bench const& bench, Launching const& plugin);
// `aligned` has no variant for every address.
void checkNoVariant(Bench const& bench, Launching const& plugin);
// Sequences of steps, with `steps`; the signatures are those of its kernels.
void checkSteps(Bench const& bench);
FakeSignature copiedSignature();
FakeSignature biasedSignature();
FakeSignature finishedSignature();
// What the same shapes cost, with `eight`.
void checkUnchanged(Bench const& bench);
FakeSignature eightSignature();
// What a profiler sees of `vectors`, or where EXPECTED_WARNING is set that there is none and what the log says of it.
void checkRanges(Bench const& bench, Launching const& plugin);
// The libraries of `bench` hold code for `sm_75` and `sm_90a` alone.
void checkOtherDevice(Bench const& bench, Launching const& plugin);

} // namespace oracle
