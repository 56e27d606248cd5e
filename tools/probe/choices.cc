// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/choices.h"

#include <algorithm>

#include "tools/probe/failure.h"

namespace probe {
namespace {

void check(omni_status status, const char* what) {
  if (status == OMNI_OK) return;
  throw Failure(Exit::kLibrary, std::string(what) + ": " + omni_status_name(status) + ": " + omni_last_error());
}

struct Question {
  const char* name;
  omni_numerics numerics;
  const char* x_name;
  omni_dtype x_type;
  omni_format weights;
};

constexpr Question kQuestions[] = {{"group", OMNI_NUMERICS_GROUP, "bf16", OMNI_DTYPE_BF16, OMNI_FORMAT_TG4},
                                   {"torch", OMNI_NUMERICS_TORCH, "bf16", OMNI_DTYPE_BF16, OMNI_FORMAT_TG4},
                                   {"torch", OMNI_NUMERICS_TORCH, "f32", OMNI_DTYPE_F32, OMNI_FORMAT_TG4},
                                   {"exact", OMNI_NUMERICS_EXACT, "bf16", OMNI_DTYPE_BF16, OMNI_FORMAT_W4S},
                                   {"fast", OMNI_NUMERICS_FAST, "bf16", OMNI_DTYPE_BF16, OMNI_FORMAT_TG4}};

Choice ask_linear(const Question& question, const tools::Shape& shape, uint32_t m) {
  Choice choice{"linear", question.name, question.x_name, shape, m, kGroup, "", "", ""};
  try {
    const Plan plan(shape, m, question.numerics, question.x_type, nullptr, question.weights);
    const omni_plan_info info = plan.info();
    const bool many = m > 1 && info.kernel_rows[0] != '\0';
    choice.kernel = many ? info.kernel_rows : info.kernel;
    choice.reason = many ? info.reason_rows : info.reason;
    choice.code = info.code;
  } catch (const Failure& failure) {
    choice.reason = failure.what();
  }
  return choice;
}

// Packing and dequantisation make no plans: they take the first row of the registry that can run, a compiled one when executable
// memory is refused.
Choice first_usable(const char* op, const tools::Shape& shape, const std::vector<omni_kernel_info>& kernels, bool refused) {
  Choice choice{op, "", "", shape, 0, kGroup, "", "", "no row of the registry can run on this machine"};
  for (const omni_kernel_info& kernel : kernels) {
    if (std::string(kernel.op) != op || kernel.usable == 0 || (refused && std::string(kernel.code) == "jit")) continue;
    choice.kernel = kernel.name;
    choice.code = kernel.code;
    choice.reason = refused ? "executable memory is refused: first compiled row that runs here" : "first row that runs here";
    break;
  }
  return choice;
}

// A plan is compiled although a generated row of its operation could run: the memory for code was refused.
bool code_memory_refused(const std::vector<Choice>& plans, const std::vector<omni_kernel_info>& kernels) {
  const auto is_generated = [](const omni_kernel_info& kernel) {
    return kernel.usable != 0 && std::string(kernel.code) == "jit" && std::string(kernel.op).rfind("gem", 0) == 0;
  };
  return std::any_of(kernels.begin(), kernels.end(), is_generated) &&
         std::all_of(plans.begin(), plans.end(), [](const Choice& plan) { return plan.code == "compiled"; });
}

}  // namespace

Plan::Plan(const tools::Shape& shape, uint32_t m, omni_numerics numerics, omni_dtype x_type, const char* kernel,
           omni_format weights) {
  const bool dense = weights == OMNI_FORMAT_W16 || weights == OMNI_FORMAT_W32;
  const omni_dtype real = x_type == OMNI_DTYPE_F32 ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
  omni_linear_query query{};
  query.size = sizeof query;
  query.numerics = static_cast<uint16_t>(numerics);
  query.x_type = static_cast<uint16_t>(x_type);
  query.y_type = static_cast<uint16_t>(real);
  query.residual_type = OMNI_DTYPE_NONE;
  query.epilogue = OMNI_EPILOGUE_NONE;
  query.max_m = m;
  query.kernel = kernel;
  const auto group = dense ? static_cast<uint32_t>(shape.k) : kGroup;
  check(omni_layout_init(&query.weights, weights, shape.n, shape.k, group, dense ? OMNI_DTYPE_NONE : real), "omni_layout_init");
  if (weights == OMNI_FORMAT_W16) query.weights.flags |= OMNI_LAYOUT_SCRUBBED;  // bf16 x asks for it
  check(omni_select(&query, &plan_), "omni_select");
}

omni_plan_info Plan::info() const {
  omni_plan_info info{};
  info.size = sizeof info;
  check(omni_plan_get_info(plan_, &info), "omni_plan_get_info");
  return info;
}

std::vector<omni_kernel_info> list_kernels() {
  std::vector<omni_kernel_info> kernels(omni_kernel_count());
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].size = sizeof kernels[i];
    check(omni_kernel_get(i, &kernels[i]), "omni_kernel_get");
  }
  return kernels;
}

std::vector<Choice> list_choices() {
  const std::vector<omni_kernel_info> kernels = list_kernels();
  std::vector<Choice> choices;
  bool refused = false;
  for (const tools::Shape& shape : tools::kShapes) {
    for (const Question& question : kQuestions) {
      for (const uint32_t m : {1U, 16U}) choices.push_back(ask_linear(question, shape, m));
    }
    if (shape.name == tools::kShapes[0].name) refused = code_memory_refused(choices, kernels);
    for (const char* op : {"pack", "dequant"}) choices.push_back(first_usable(op, shape, kernels, refused));
  }
  return choices;
}

}  // namespace probe
