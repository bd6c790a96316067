"""Runs the program `cubinder`: `python -m cubinder compile ...`."""

import os
import sys

from . import program

path = str(program())
os.execv(path, [path, *sys.argv[1:]])
