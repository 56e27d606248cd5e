// SPDX-License-Identifier: Apache-2.0
// omni-speech-worker: a packed Qwen3-TTS model as an arm of `omni-bench --op speech` (docs/workers.md, docs/end-to-end-speed.md).
#include <CLI/CLI.hpp>
#include <iostream>

#include "reference/worker/speech_parts.h"

int main(int argc, char** argv) {
  CLI::App app{"omni-speech-worker: a packed speech model as an arm of omni-bench --op speech"};
  ref::worker::SpeechSettings settings;
  app.add_option("MODEL", settings.model, "a packed directory")->required();
  app.add_option("--weights-memory", settings.memory)->check(CLI::IsMember({"mapped", "huge"}));
  app.add_option("--kv", settings.kv)->check(CLI::IsMember({"bf16", "f32", "int8"}));
  app.add_option("--codec-chunk", settings.codec_chunk, "frames that the codec gets at once in whole")->check(CLI::Range(1, 300));
  app.add_option("--codec-rows", settings.codec_rows, "frames that go through its layers at once")->check(CLI::Range(1, 300));
  app.add_flag("--codec-fp32", settings.codec_fp32, "its rows in fp32 also where its weights are bf16");
  app.add_flag("--greedy", settings.greedy, "instead of sampling");
  app.add_option("--threads", settings.threads, "instead of those of the case")->check(CLI::Range(1, 256));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  ref::worker::serve(std::cin, std::cout,
                     [&](const nlohmann::json& question) { return ref::worker::make_speech_part(settings, question); });
  return 0;
}
