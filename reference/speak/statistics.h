// SPDX-License-Identifier: Apache-2.0
// Where the time of a run went: by stage, as a share of the 80 ms that a frame is heard for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/speak/pipeline.h"

namespace ref::speak {

inline constexpr double kFrameSeconds = 0.08;

// One line of the table.
struct Stage {
  std::string name;
  double milliseconds = 0;  // a frame
  double total = 0;         // seconds
  bool part = false;        // of the stage above: not counted again

  double share() const { return milliseconds / (kFrameSeconds * 1e3); }
};

// Stages that work on frames, in order, and waiting. Without frames all figures are 0.
std::vector<Stage> stages_of(const SpeechRun& run);
// Seconds that the run took for a second of sound; 0 without sound.
double real_time_factor(const SpeechRun& run);

// A Markdown table, and lines about the whole.
std::string statistics_text(const SpeechRun& run);
nlohmann::ordered_json statistics_json(const SpeechRun& run);

// Bars of the stages in SVG, drawn by gnuplot; "" when it cannot be run.
std::string statistics_svg(const SpeechRun& run, const std::string& title);

}  // namespace ref::speak
