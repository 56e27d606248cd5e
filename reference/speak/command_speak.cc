// SPDX-License-Identifier: Apache-2.0
// omni-speak [speak]: text to sound.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "reference/cli/console.h"
#include "reference/speak/commands.h"
#include "reference/speak/speak_options.h"
#include "reference/speak/speak_report.h"
#include "reference/speak/speech_weight.h"
#include "reference/speak/statistics.h"
#include "reference/speak/text_split.h"
#include "reference/speak/voice_request.h"

namespace ref::speak {
namespace {

int list(const SpeakOptions& options, const Model& model) {
  std::string text;
  if (options.list_speakers) {
    for (const auto& [name, id] : model.config().talker.speakers) {
      const auto dialect = model.config().talker.dialects.find(name);
      text += dialect == model.config().talker.dialects.end() ? name + "\n" : fmt::format("{} ({})\n", name, dialect->second);
    }
  }
  if (options.list_languages) {
    text += "auto\n";
    for (const auto& [name, id] : model.config().talker.languages) text += name + "\n";
  }
  cli::write_out(text);
  return 0;
}

// Nothing where only a voice is to be saved.
std::optional<std::string> read_text(const CLI::App& app, const SpeakOptions& options) {
  const bool argument = app.count("TEXT") != 0, file = app.count("--file") != 0;
  if (argument && file) throw Failure(Exit::kUsage, "more than one of TEXT and --file");
  if (file) return cli::read_input("--file", options.file);
  if (argument && options.text != "-") return options.text;
  if (!argument && !options.voice.save_voice.empty()) return std::nullopt;
  if (!argument && isatty(STDIN_FILENO) != 0)
    throw Failure(Exit::kUsage, "no text: give one, - for standard input, or --file FILE");
  return cli::read_input("TEXT", "-");
}

SplitText split(const SpeakOptions& options, const std::string& text) {
  SplitOptions split;
  split.letters = options.piece_letters;
  split.language = options.language;
  std::ranges::transform(split.language, split.language.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  SplitText pieces = split_text(text, split);
  if (pieces.pieces.empty()) throw Failure(Exit::kInput, "the text has no letter and no number: there is nothing to speak");
  return pieces;
}

// Frames of each piece: what the caller says, else what its text may need at most. A limit for all of it leaves a piece the longest
// run that the model's makers allow.
std::vector<int64_t> budgets_of(const SpeakOptions& options, const Model& model, const std::vector<std::string>& pieces) {
  std::vector<int64_t> budgets;
  const int64_t most = std::max<int64_t>(model.defaults().most_frames, 1);
  for (const std::string& piece : pieces) {
    const int64_t by_text = options.max_seconds ? most : std::min(most, default_frames(piece));
    budgets.push_back(options.max_frames.value_or(by_text));
  }
  return budgets;
}

// Seconds of sound on a terminal's stderr.
class SecondsLine {
 public:
  explicit SecondsLine(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO) != 0) {}
  ~SecondsLine() {
    if (shown_) write("\r\x1b[K");
  }
  SecondsLine(const SecondsLine&) = delete;
  SecondsLine& operator=(const SecondsLine&) = delete;
  void show(int64_t frames) const {
    if (shown_) write(fmt::format("\rspeaking {:.1f} s", static_cast<double>(frames) * kFrameSeconds));
  }

 private:
  static void write(const std::string& text) {
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // a terminal that has gone changes nothing
  }
  bool shown_;
};

class Session {
 public:
  Session(const CLI::App& app, const SpeakOptions& options)
      : options_(options), model_(options.model), text_(read_text(app, options)), voice_(options.voice, model_) {
    model_.check_language(options.language);
    if (!text_) return;
    pieces_ = split(options, *text_);
    model_.templates();
    output_.emplace(options.output);
  }

  int run() {
    for (const std::string& line : voice_.notes()) {
      if (!options_.machine.quiet) cli::note("note: " + line);
    }
    if (pieces_.left_out > 0 && !options_.machine.quiet) {
      cli::note(fmt::format("note: {} characters between sentences are no words and are left out", pieces_.left_out));
    }
    prepare();
    return text_ ? speak() : 0;
  }

 private:
  void prepare() {
    request_.sampling = resolve_sampling(options_.sampling, model_.defaults().sampling);
    model_.load(options_.weights, options_.machine, voice_.needs_encoders());
    request_.voice = voice_.voice(model_);
    request_.pieces = pieces_.pieces;
    request_.instruct = options_.voice.instruct;
    request_.language = options_.language;
    request_.streaming_text =
        options_.text_feed == "auto" ? model_.config().type == tts::ModelType::kBase : options_.text_feed == "stream";
  }

  PipelineOptions pipeline_options() const {
    PipelineOptions pipeline;
    pipeline.budgets = budgets_of(options_, model_, request_.pieces);
    if (options_.max_seconds) {
      pipeline.most_frames = static_cast<int64_t>(std::floor(*options_.max_seconds * tts::kFramesPerSecond + 1e-6));
    }
    for (int64_t& budget : pipeline.budgets) budget = std::min(budget, pipeline.most_frames);
    pipeline.prefix = request_.voice.frames;
    if (!options_.chunks.empty()) pipeline.schedule = ChunkSchedule::parse(options_.chunks);
    pipeline.queue = static_cast<size_t>(options_.queue);
    pipeline.overlap = overlaps(options_.pipeline);
    return pipeline;
  }

  int speak() {
    const PipelineOptions pipeline = pipeline_options();
    const int64_t context =
        std::min(context_needed(model_.templates(), request_, pipeline.budgets), model_.config().talker.positions);
    tts::Talker talker = model_.talker(options_.weights, options_.machine, context);
    tts::CodePredictor predictor = model_.predictor(options_.weights);
    tts::CodecDecoder codec = model_.codec(options_.weights);
    std::vector<std::string> kernels = talker.describe();
    for (const std::vector<std::string>& more : {predictor.describe(), codec.describe()}) {
      kernels.insert(kernels.end(), more.begin(), more.end());
    }
    note_model(model_, options_.machine, kernels);
    ModelSource source(&talker, &predictor, model_.templates(), request_);
    CodecSamples decoder(&codec);
    SpeechRun run;
    {
      const SecondsLine seconds(options_.machine.quiet || output_->to_stdout());
      PipelineHooks hooks;
      hooks.write = [&](std::span<const float> samples) { return output_->write(samples, cli::interrupted); };
      hooks.interrupted = cli::interrupted;
      hooks.progress = [&](int64_t frames) { seconds.show(frames); };
      run = guarded(Exit::kMachine, [&] { return run_pipeline(&source, &decoder, pipeline, hooks); });
    }
    // A reader that lets the output wait is no reason not to hear Ctrl-C.
    if (run.end == SpeechEnd::kInterrupted || (run.end == SpeechEnd::kClosed && cli::interrupted())) throw cli::Interrupted();
    if (run.end == SpeechEnd::kClosed) return 0;
    output_->finish();
    return report({model_, request_, pipeline.budgets, pieces_.left_out, run, pipeline.overlap});
  }

  int report(const SpokenText& spoken) {
    if (options_.json) tell(cli::dump(speech_json(spoken, *output_, voice_.notes())));
    if (!options_.stats_plot.empty()) {
      const std::string svg = statistics_svg(spoken.run, fmt::format("{}: {}", model_.title(), model_.form()));
      if (svg.empty()) throw Failure(Exit::kMachine, fmt::format("--stats-plot {}: gnuplot cannot be run", options_.stats_plot));
      cli::write_file("--stats-plot", options_.stats_plot, svg);
    }
    if (options_.stats) cli::note(statistics_text(spoken.run) + fmt::format("seed           {}", request_.sampling.seed));
    if (!options_.machine.quiet) {
      if (output_->clipped() > 0) cli::note(fmt::format("note: {} samples were clipped", output_->clipped()));
      cli::note(summary_text(spoken));
    }
    const std::string limit = limit_text(spoken);
    if (!limit.empty()) throw Failure(Exit::kLimit, limit);
    return 0;
  }

  void tell(const std::string& text) const {
    if (output_->to_stdout()) {
      cli::note(text.substr(0, text.size() - 1));
    } else {
      cli::write_out(text);
    }
  }

  const SpeakOptions& options_;
  Model model_;
  std::optional<std::string> text_;
  VoiceRequest voice_;
  SplitText pieces_;
  std::optional<SoundOutput> output_;
  SpeechRequest request_;
};

int run(const CLI::App& app, const SpeakOptions& options) {
  cli::set_up_machine(options.machine);
  if (options.list_speakers || options.list_languages) return list(options, Model(options.model));
  return Session(app, options).run();
}

}  // namespace

Run add_speak(CLI::App* app) {
  auto options = std::make_shared<SpeakOptions>();
  add_speak_options(app, options.get());
  return [app, options] { return run(*app, *options); };
}

}  // namespace ref::speak
