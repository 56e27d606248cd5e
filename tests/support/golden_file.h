// SPDX-License-Identifier: Apache-2.0
// Where golden files are.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace okl::test {

// The file of tests/data, else of the folder that OMNI_GOLDENS names, else "".
inline std::string golden_path(const std::string& folder, const std::string& name) {
  std::vector<std::string> candidates = {std::string(OMNI_TEST_DATA) + "/" + folder + "/" + name};
  if (const char* goldens = std::getenv("OMNI_GOLDENS")) {
    candidates.push_back(std::string(goldens) + "/" + name);
    candidates.push_back(std::string(goldens) + "/" + folder + "/" + name);
  }
  for (const std::string& path : candidates) {
    if (std::ifstream(path).good()) return path;
  }
  return "";
}

}  // namespace okl::test
