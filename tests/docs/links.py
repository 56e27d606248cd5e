# SPDX-License-Identifier: Apache-2.0
"""Every relative link and image of a Markdown file, and every path under docs/ that a source names, leads somewhere."""

import re
import subprocess
import sys
from pathlib import Path

TEXT = (".md", ".h", ".hpp", ".c", ".cc", ".inc", ".cmake", ".txt", ".py")


def tracked_files(root):
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
        return [root / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # a source archive
        folders = ("kernels", "jit", "bench", "tools", "tests", "docs", "cmake")
        return [*root.glob("*.md"), *(path for folder in folders for path in (root / folder).rglob("*"))]


def main():
    root = Path(sys.argv[1])
    problems, checked = [], 0
    for path in tracked_files(root):
        if path.suffix not in TEXT or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        targets = []
        if path.suffix == ".md":
            prose = re.sub(r"```.*?```", "", text, flags=re.S)
            for link in re.findall(r"\]\(([^)\s]+)\)", prose):
                if not re.match(r"[a-z]+:|#", link):
                    targets.append((link, path.parent / link.split("#")[0]))
        targets += [(name, root / name) for name in re.findall(r"(?<![\w/.])docs/[\w./-]+\.md\b", text)]
        for name, target in targets:
            checked += 1
            if not target.exists():
                problems.append(f"{path.relative_to(root)}: {name} does not exist")
    print(f"{checked} links")
    print("\n".join(sorted(set(problems))))
    return 1 if problems or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
