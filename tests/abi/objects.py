# SPDX-License-Identifier: Apache-2.0
"""Reads the machine code of object files.

baseline: no object outside the leaf sources holds a VEX or EVEX instruction (AVX and later, BMI, opmasks, AMX).
leaves:   an object compiled for one ISA holds no static initialiser, which would run on any machine, and no weak symbol: of equal
          inline functions the linker keeps one copy, and the copy compiled for AVX-512 would then serve callers on any machine.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# In 64-bit mode these first opcode bytes are VEX (C4, C5) or EVEX (62) and nothing else. Legacy prefixes may come before.
LEGACY_PREFIXES = {"26", "2e", "36", "3e", "64", "65", "67"}
VEX = {"c4", "c5", "62"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_lines(path):
    return [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line]


def vex_instructions(objdump, path):
    """(function, instruction) of every VEX or EVEX instruction, and the number of instructions read."""
    found, total, function = [], 0, "?"
    for line in run(objdump, "-d", "-w", "-C", path).splitlines():
        header = re.fullmatch(r"[0-9a-f]+ <(.*)>:", line)
        if header:
            function = header.group(1)
            continue
        fields = line.split("\t")
        if len(fields) < 3:
            continue
        total += 1
        for byte in fields[1].split():
            if byte in LEGACY_PREFIXES:
                continue
            if byte in VEX:
                found.append((function, fields[2].strip()))
            break
    return found, total


def split_objects(arguments):
    leaf_suffixes = tuple(f"/{source}.o" for source in read_lines(arguments.leaf_sources))
    objects = [path for path in read_lines(arguments.objects) if not path.endswith(".gch")]  # precompiled headers hold no code
    # bench/CMakeFiles/target.dir/arms/x.cc.o is the object of bench/arms/x.cc
    leaves = [path for path in objects if re.sub(r"CMakeFiles/[^/]+\.dir/(\./)?", "", path).endswith(leaf_suffixes)]
    if len(leaves) != len(leaf_suffixes):
        sys.exit(f"{len(leaf_suffixes)} leaf sources but {len(leaves)} objects: this check no longer finds them")
    return [path for path in objects if path not in set(leaves)], leaves


def check_baseline(arguments):
    baseline, leaves = split_objects(arguments)
    problems, total = [], 0
    for path in baseline:
        found, count = vex_instructions(arguments.objdump, path)
        total += count
        problems += [f"{path}: {instruction}   in {function}" for function, instruction in found[:3]]
        if len(found) > 3:
            problems.append(f"{path}: and {len(found) - 3} more")
    # The other way round: leaves do use such instructions, so the check sees them.
    for path in leaves:
        if not vex_instructions(arguments.objdump, path)[0]:
            problems.append(f"{path}: a leaf object without one AVX instruction; is it listed by mistake?")
    if total == 0:
        problems.append("no instruction was read")
    print(f"{len(baseline)} baseline objects, {total} instructions; {len(leaves)} leaf objects")
    return problems


def check_leaves(arguments):
    _, leaves = split_objects(arguments)
    problems = []
    for path in leaves:
        sections = run(arguments.objdump, "-h", path)
        for section in re.findall(r"^\s*\d+\s+(\.(?:init_array|preinit_array|ctors|fini_array|dtors)\S*)", sections, flags=re.M):
            problems.append(f"{path}: static initialiser section {section}")
        for line in run(arguments.nm, "-C", "--defined-only", path).splitlines():
            _, kind, name = line.split(maxsplit=2)
            if kind in "WwVvu":
                problems.append(f"{path}: weak symbol {name}")
    print(f"{len(leaves)} leaf objects")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("check", choices=["baseline", "leaves"])
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--objects", required=True)
    parser.add_argument("--leaf-sources", required=True)
    parser.add_argument("--skip", metavar="REASON")
    arguments = parser.parse_args()
    if arguments.skip:
        print(f"skipped: {arguments.skip}")
        return 77
    problems = check_baseline(arguments) if arguments.check == "baseline" else check_leaves(arguments)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
