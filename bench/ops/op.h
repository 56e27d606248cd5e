// SPDX-License-Identifier: Apache-2.0
// The table of operations. One row is all that the command line, the reports and the arms need to know of an operation; the code
// behind it (operands, reference, our arm, peers) is a Workload in a file of its own in this folder.
#ifndef OMNI_BENCH_OPS_OP_H
#define OMNI_BENCH_OPS_OP_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/workload.h"

namespace omnibench {

/// A peer that runs as a worker: `argument` follows the command of --peers.
struct Peer {
  std::string name, argument;
};

struct Op {
  std::string name;
  std::string what;                   ///< one line for --list
  std::vector<std::string> sizes;     ///< names of a shape's sizes, "n", "k"; the first two are Case::n() and Case::k()
  std::vector<Shape> shapes;          ///< that --shape knows by name; the first is the default, all of them are "all"
  std::vector<std::string> variants;  ///< that --class takes; the first is the default; empty: one form only
  int64_t most_rows = 0;              ///< --m goes to here; 0: the operation has no rows
  std::string group;                  ///< default of --group, "128" or "K"; "": the operation has no groups
  bool cold = true;                   ///< weights are read once per call; activations were just written: false
  std::vector<std::string> registry;  ///< words of the kernel registry whose rows serve this operation
  std::vector<std::string> weights;   ///< those of them that have one of these words in their names; empty: all
  std::vector<std::string> peers;     ///< peers inside this process
  std::vector<std::string> limits;    ///< of "read", "peak-fma", "peak-bf16", "peak-vnni"
  std::vector<Peer> workers;          ///< peers outside, asked for with --peers
  bool only_workers = false;          ///< nothing of ours runs in this process: arms are workers and limits
  std::string bytes_model;            ///< Parts in words
  std::vector<Part> (*parts)(const Case&);
  double (*operations)(const Case&);  ///< of one call; nullptr: none are counted
  std::unique_ptr<Workload> (*make)(const Case&, const Pool&);
};

const std::vector<Op>& all_ops();
/// nullptr: no such operation. "gemv" is an older name of "w4a16".
const Op* find_op(const std::string& name);
/// The row of a case; throws for a name that is none.
const Op& op_of(const Case& c);

/// A known name, or as many sizes as the operation has joined by "x", with one more in front for M; nothing for anything else.
std::optional<Shape> parse_shape(const Op& op, const std::string& text);
/// e.g. "gate_up, down, NxK or MxNxK".
std::string shapes_text(const Op& op);

}  // namespace omnibench
#endif
