"""Unpacks a wheel into a folder: `unpack.py WHEEL FOLDER [PATTERN...]`, leaving out what a pattern matches.

A wheel is a zip file. Nothing of it is run and nothing is installed.
"""

import fnmatch
import os
import sys
import zipfile

wheel, folder, patterns = sys.argv[1], sys.argv[2], sys.argv[3:]
with zipfile.ZipFile(wheel) as archive:
    for member in archive.infolist():
        if not any(fnmatch.fnmatchcase(member.filename, pattern) for pattern in patterns):
            path = archive.extract(member, folder)
            # `extract` forgets which files are programs.
            if (member.external_attr >> 16) & 0o111 and os.path.isfile(path):
                os.chmod(path, 0o755)
