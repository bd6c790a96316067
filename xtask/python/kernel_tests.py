"""Runs `cubinder test` and `cubinder tune` over the libraries of a folder that `cargo xtask gpu-test --prepare DIR` wrote; needs a GPU and NumPy.

    python3 kernel_tests.py DIR/kernels [--only TEXT]

Of a run with planted faults each case whose name begins with a kind of fault has to have faults of that kind alone; every other case has
to pass. Of a run that measures each case has to have a time of each variant. What the command says of a run that is not as it should be is
shown.

A run of `routes` is one plugin by each route: with the native library, whose kernels `cubinder test` launches the way that TensorRT documents
for its own launches, and with plugin libraries of PTX (`ptx`) and of machine code (`code`). For each case and each variant that the native
library runs, the other two have to run the variant of the same id and leave the same bytes, by the digests in the command's JSON. Every case
has to run. Variants that only the others have are not looked at: what asks for addresses or the device cannot go the native route. Whether
the bytes are right is not asked here, other runs ask it. So a fault of the native library may be there where both others have one of the same
kind with the same variant: a kernel that leaves elements as they were does so on every route. And what the others alone are blamed for, such as
variants that are meant to differ, counts by its bytes alone. Runs that have no bytes to write are counted apart: they can fail, but not differ.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys

NATIVE = "native"
# BLAKE3 of zero bytes.
NOTHING = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
# Processes mostly wait, for start-up and driver compilation.
AT_ONCE = 9
# Maximum lines of problems per plugin.
MOST_LINES = 20


def faults(case):
    """Returns fault kinds; early errors count as faults of the data."""
    kinds = [fault["kind"] for ran in case["variants"] for fault in ran["faults"]]
    return kinds + ["data"] * len(case["differs"]) + ["refused"] * (case["refused"] is not None)


def as_planted(case):
    kind, separator, _ = case["name"].partition(": ")
    kinds = faults(case)
    return bool(kinds) and set(kinds) == {kind} if separator else case["passed"]


def judge(run, status, text):
    """Returns why a run is wrong, or a false value."""
    try:
        report = json.loads(text.splitlines()[-1])
        cases = report["cases"]
    except (IndexError, KeyError, ValueError):
        return "no report"
    if run["command"] == "tune":
        return judge_times(report, status)
    wrong = [case["name"] for case in cases if not as_planted(case)]
    if wrong:
        return "unexpected results: " + ", ".join(wrong)
    planted = any(": " in case["name"] for case in cases)
    if status != (1 if planted else 0):
        return f"exit code {status}"
    return None if cases else "no case ran"


def judge_times(report, status):
    """The same for measurements: times and copy rate must be plausible."""
    if status != 0 or report["result"] != "tuned":
        return f"exit code {status}"
    rate = report["copy_gigabytes_per_second"]
    if rate is None or not 50 < rate < 50000:
        return f"it copies {rate} GB/s"
    for case in report["cases"]:
        wrong = [one for one in case["variants"] if not 0 < one["least"] <= one["microseconds"] <= one["most"]]
        if wrong or not case["variants"]:
            return f"{case['case']}: {wrong or 'no variant'}"
        # Quartiles within a factor of 1.5.
        loose = [one for one in case["variants"] if one["upper_quartile"] > 1.5 * one["lower_quartile"]]
        if loose:
            return f"{case['case']}: the times are too far apart: {loose}"
    return None if report["cases"] else "nothing was measured"


def ran(report):
    """Returns the results of each case's variants, by name and ID."""
    return {(case["name"], one["id"]): one for case in report["cases"] for one in case["variants"]}


def wrong_report(text):
    """Parses a report of a complete run; otherwise returns the reason."""
    try:
        report = json.loads(text.splitlines()[-1])
        if report["result"] not in ("passed", "failed") or report["errors"]:
            return None, f"{report['result']}: {report.get('why') or report.get('errors')}"
        ran(report)
    except (IndexError, KeyError, TypeError, ValueError):
        return None, "no report: " + " | ".join(text.strip().splitlines()[-5:])
    return report, None


def wrong_native(report):
    """Returns errors of the native report: each case must have run."""
    for case in report["cases"]:
        if case["refused"] is not None or case["differs"]:
            yield f"{case['name']}: {case['refused'] or case['differs']}"
        elif not case["variants"]:
            yield f"{case['name']}: no variant ran"
        for one in case["variants"]:
            if not one["digests"]:
                yield f"{case['name']}, variant {one['id']}: {one['faults'] or 'no result'}"


def unlike(here, there):
    """Returns why another route's run differs, or a false value."""
    if there is None:
        return "did not run"
    if sorted(here["digests"]) != sorted(there["digests"]):
        return "other bytes" if there["digests"] else f"no result: {there['faults']}"
    more = {fault["kind"] for fault in here["faults"]} - {fault["kind"] for fault in there["faults"]}
    return f"without the native route's faults: {', '.join(sorted(more))}" if more else None


def judge_routes(texts):
    """Returns problems, one per line, and counts; `texts` is the command's output by route."""
    reports, why, counts = {}, [], collections.Counter()
    for route, text in texts.items():
        reports[route], wrong = wrong_report(text)
        why += [f"{route}: {wrong}"] if wrong else []
    if why or len(reports) < 2 or NATIVE not in reports:
        return why or ["fewer than two routes"], counts
    why += [f"{NATIVE}: {wrong}" for wrong in wrong_native(reports[NATIVE])]
    native = ran(reports.pop(NATIVE))
    others = {route: ran(report) for route, report in reports.items()}
    nodes = set()
    for key, here in native.items():
        said = {route: unlike(here, there.get(key)) for route, there in others.items()}
        differences = [f"{route}: {key[0]}, variant {key[1]}: {one}" for route, one in said.items() if one]
        why += differences
        if here["digests"] == [NOTHING]:
            counts["empty"] += 1
        else:
            nodes.add(key[0])
            counts["unlike" if differences else "same"] += 1
    counts["nodes"], counts["runs"] = len(nodes), counts["same"] + counts["unlike"]
    if not counts["runs"]:
        why.append("no bytes were compared")
    return why, counts


def execute(folder, run, more=()):
    command = [os.path.abspath(os.path.join(folder, "cubinder")), run["command"], *run["arguments"], *more]
    environment = {**os.environ, "CUBINDER_PYTHON": sys.executable}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=600
        )
    except subprocess.TimeoutExpired:
        return 1, "timed out after 600 s"
    return done.returncode, done.stdout + (done.stderr if "--json" not in more or not done.stdout else "")


def run_routes(folder, runs):
    """Runs routes concurrently because they are the longest."""
    passed, total = 0, collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        begun = []
        for run in runs:
            test = {**run, "command": "test"}
            texts = {
                route: pool.submit(execute, folder, test, ["--on", library, "--json"])
                for route, library in run["libraries"].items()
            }
            begun.append((run, texts))
        for run, texts in begun:
            why, counts = judge_routes({route: text.result()[1] for route, text in texts.items()})
            passed += not why
            total.update(counts)
            print(f"{'FAILED' if why else 'ok'} {run['name']} [cubinder test]: {run['what']}")
            print(f"    {told(counts)}")
            more = [f"and {len(why) - MOST_LINES} more"] * (len(why) > MOST_LINES)
            for line in why[:MOST_LINES] + more:
                print(f"    {line[:600]}")
            sys.stdout.flush()
    if runs:
        print(f"routes of {len(runs)} plugins: {told(total)}")
    return passed, len(runs) - passed


def told(counts):
    return (
        f"{counts['nodes']} nodes, {counts['runs']} runs of variants: {counts['same']} equal, {counts['unlike']} different; "
        f"{counts['empty']} runs without output bytes"
    )


def run_all(folder, only=""):
    """Returns the numbers of correct and incorrect runs."""
    with open(os.path.join(folder, "runs.json")) as file:
        runs = [run for run in json.load(file) if only in run["name"]]
    passed = failed = 0
    # Copies from other machines may lack it.
    os.chmod(os.path.join(folder, "cubinder"), 0o755)
    for run in [run for run in runs if run["command"] != "routes"]:
        status, text = execute(folder, run, ["--json"])
        why = judge(run, status, text)
        passed, failed = passed + (why is None), failed + (why is not None)
        print(f"{'ok' if why is None else 'FAILED'} {run['name']} [cubinder {run['command']}]: {run['what']}")
        if why is not None:
            _, shown = execute(folder, run)
            print(f"    {why}\n    " + "\n    ".join(shown.strip().splitlines()[-60:]))
        else:
            cases = json.loads(text.splitlines()[-1])["cases"]
            variants = sum(len(case["variants"]) for case in cases)
            print(f"    {len(cases)} cases, {variants} runs of variants")
        sys.stdout.flush()
    routes = run_routes(folder, [run for run in runs if run["command"] == "routes"])
    return passed + routes[0], failed + routes[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    passed, failed = run_all(args.folder, args.only)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
