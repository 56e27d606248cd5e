# SPDX-License-Identifier: Apache-2.0
# api.sh SOURCE_DIR OUTPUT_DIR: the API reference without a warning.
command -v doxygen >/dev/null || { echo 'skipped: doxygen is not installed (./dev docs installs it)'; exit 77; }
cd "$1" && { cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = $2"; } | doxygen -
