"""Runs `cubinder test` and `cubinder tune` over the libraries of a folder that `cargo xtask gpu-test --prepare DIR` wrote; needs a GPU and NumPy.

    python3 kernel_tests.py DIR/kernels [--only TEXT]

Of a run with planted faults each case whose name begins with a kind of fault has to have faults of that kind alone; every other case has
to pass. Of a run that measures each case has to have a time of each variant. What the command says of a run that is not as it should be is
shown.
"""

import argparse
import json
import os
import subprocess
import sys


def faults(case):
    """The kinds of what is wrong with a case; what is wrong before anything runs is one with the data."""
    kinds = [fault["kind"] for ran in case["variants"] for fault in ran["faults"]]
    return kinds + ["data"] * len(case["differs"]) + ["refused"] * (case["refused"] is not None)


def as_planted(case):
    kind, separator, _ = case["name"].partition(": ")
    kinds = faults(case)
    return bool(kinds) and set(kinds) == {kind} if separator else case["passed"]


def judge(run, status, text):
    """Why a run is not as it should be; nothing where it is."""
    try:
        report = json.loads(text.splitlines()[-1])
        cases = report["cases"]
    except (IndexError, KeyError, ValueError):
        return "it has no report"
    if run["command"] == "tune":
        return judge_times(report, status)
    wrong = [case["name"] for case in cases if not as_planted(case)]
    if wrong:
        return "not as they should be: " + ", ".join(wrong)
    planted = any(": " in case["name"] for case in cases)
    if status != (1 if planted else 0):
        return f"exit code {status}"
    return None if cases else "nothing was run"


def judge_times(report, status):
    """The same for one that measures: times, and the rate of copies, are of an order that there is."""
    if status != 0 or report["result"] != "tuned":
        return f"exit code {status}"
    rate = report["copy_gigabytes_per_second"]
    if rate is None or not 50 < rate < 50000:
        return f"it copies {rate} GB/s"
    for case in report["cases"]:
        wrong = [one for one in case["variants"] if not 0 < one["least"] <= one["microseconds"] <= one["most"]]
        if wrong or not case["variants"]:
            return f"{case['case']}: {wrong or 'no variant'}"
        # Half of the times differ by less than half: what is measured is no accident.
        loose = [one for one in case["variants"] if one["upper_quartile"] > 1.5 * one["lower_quartile"]]
        if loose:
            return f"{case['case']}: the times are too far apart: {loose}"
    return None if report["cases"] else "nothing was measured"


def execute(folder, run, more=()):
    command = [os.path.abspath(os.path.join(folder, "cubinder")), run["command"], *run["arguments"], *more]
    environment = {**os.environ, "CUBINDER_PYTHON": sys.executable}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=600
        )
    except subprocess.TimeoutExpired:
        return 1, "timed out after 600 s"
    return done.returncode, done.stdout + (done.stderr if "--json" not in more else "")


def run_all(folder, only=""):
    """How many runs are as they should be, and how many are not."""
    with open(os.path.join(folder, "runs.json")) as file:
        runs = [run for run in json.load(file) if only in run["name"]]
    passed = failed = 0
    # What was copied from another machine may not be executable.
    os.chmod(os.path.join(folder, "cubinder"), 0o755)
    for run in runs:
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
    return passed, failed


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
