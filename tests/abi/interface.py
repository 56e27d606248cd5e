# SPDX-License-Identifier: Apache-2.0
"""Compares the public headers with the shared library, and checks the form of every struct."""

import argparse
import re
import subprocess
import sys
from pathlib import Path


def without_comments(path):
    text = Path(path).read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def declared(headers):
    """Functions marked OMNI_API."""
    names = set()
    for header in headers:
        for declaration in re.findall(r"\bOMNI_API\b([^;{]*);", without_comments(header)):
            match = re.search(r"\b(omni_\w+)\s*\(", declaration)
            if match:
                names.add(match.group(1))
    return names


def exported(nm, library):
    """Dynamic symbols that the library defines, without the version node."""
    output = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    symbols = {}
    for line in output.splitlines():
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@")
        if kind != "A":
            symbols[name] = (kind, version.lstrip("@"))
    return symbols


def check_exports(arguments):
    wanted = declared(arguments.headers)
    symbols = exported(arguments.nm, arguments.library)
    problems = [f"declared but not exported: {name}" for name in sorted(wanted - symbols.keys())]
    problems += [f"exported but not declared: {name}" for name in sorted(symbols.keys() - wanted)]
    for name, (kind, version) in sorted(symbols.items()):
        if kind != "T":
            problems.append(f"not a plain function: {name} has nm type {kind}")
        if not re.fullmatch(r"OMNI_\d+", version):
            problems.append(f"without a version node: {name}")
    if len(wanted) < 10:
        problems.append(f"only {len(wanted)} declarations found: this check no longer reads the headers")
    print(f"{len(wanted)} functions declared, {len(symbols)} exported")
    return problems


def check_structs(arguments):
    problems, count = [], 0
    for header in arguments.headers:
        if not header.endswith(".h"):
            continue
        for body, name in re.findall(r"typedef\s+struct\s+\w+\s*\{(.*?)\}\s*(\w+)\s*;", without_comments(header), flags=re.S):
            count += 1
            first = " ".join(body.split(";")[0].split())
            if first != "uint32_t size":
                problems.append(f"{name} begins with '{first}', not with 'uint32_t size'")
            if not name.startswith("omni_"):
                problems.append(f"{name} lacks the prefix omni_")
    if count < 5:
        problems.append(f"only {count} structs found: this check no longer reads the headers")
    print(f"{count} structs")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("check", choices=["exports", "structs"])
    parser.add_argument("headers", nargs="+")
    parser.add_argument("--nm")
    parser.add_argument("--library")
    arguments = parser.parse_args()
    problems = check_exports(arguments) if arguments.check == "exports" else check_structs(arguments)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
