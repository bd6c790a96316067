"""Unpacks a wheel into a folder: `unpack.py WHEEL FOLDER [PATTERN...]`, leaving out what a pattern matches.

A wheel is a zip file. Nothing of it is run and nothing is installed.
"""

import fnmatch
import sys
import zipfile

wheel, folder, patterns = sys.argv[1], sys.argv[2], sys.argv[3:]
with zipfile.ZipFile(wheel) as archive:
    for member in archive.infolist():
        if not any(fnmatch.fnmatchcase(member.filename, pattern) for pattern in patterns):
            archive.extract(member, folder)
