// SPDX-License-Identifier: Apache-2.0
// What became of each tensor, as a table and as JSON.
#pragma once

#include <string>

#include "reference/pack/packer.h"

namespace pack {

std::string report_table(const ref::PackResult& result);
std::string report_json(const ref::PackResult& result);
// Throws ref::OutputError. The file appears as a whole or not at all.
void write_report(const std::string& path, const std::string& text);

}  // namespace pack
