// SPDX-License-Identifier: Apache-2.0
// CLI11's classes by name. Its header alone takes as long to compile as four sources of ours, so only those that define options
// read it.
#pragma once

namespace CLI {
class App;
class Validator;
}  // namespace CLI
