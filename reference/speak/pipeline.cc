// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "reference/speak/bounded_queue.h"

namespace ref::speak {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Thrown through the side that decodes when the run is over before its time.
struct Ended {
  SpeechEnd end;
};

// What the maker hands over: a frame, or the end of a piece.
struct Item {
  std::optional<tts::Frame> frame;
};

SpeechEnd end_of(tts::Stop stop) {
  switch (stop) {
    case tts::Stop::kEndOfSpeech:
      return SpeechEnd::kEndOfSpeech;
    case tts::Stop::kContextFull:
      return SpeechEnd::kContextFull;
    default:
      return SpeechEnd::kMaxFrames;
  }
}

// Makes frames, and keeps account of pieces.
class Maker {
 public:
  Maker(FrameSource* source, const PipelineOptions& options, Clock::time_point start)
      : source_(*source), options_(options), start_(start) {}

  // `emit` takes each item; false: no more are wanted.
  template <typename Emit>
  void run(const Emit& emit) {
    for (size_t piece = 0; piece < options_.budgets.size(); ++piece) {
      const int64_t left = options_.most_frames - frames_;
      if (left <= 0) {
        pieces_.push_back({0, SpeechEnd::kMaxFrames});
        return;
      }
      pieces_.emplace_back();
      if (!speak(piece, std::min(options_.budgets[piece], left), emit)) return;
    }
  }

  void report(SpeechRun* run) const {
    run->pieces = pieces_;
    run->frames = frames_;
    SpeechTimes& times = run->times;
    times.prefill = times_.prefill;
    times.talker = times_.talker;
    times.predictor = times_.predictor;
    times.sampling = times_.sampling;
    times.substep = times_.substep;
    times.maker_waits = times_.maker_waits;
    times.first_prompt = times_.first_prompt;
    for (const PieceOutcome& piece : pieces_) {
      if (run->end == SpeechEnd::kEndOfSpeech) run->end = piece.end;
    }
  }

 private:
  template <typename Emit>
  bool speak(size_t piece, int64_t budget, const Emit& emit) {
    const Clock::time_point begin = Clock::now();
    source_.start(piece, budget);
    times_.prefill += seconds_since(begin);
    if (piece == 0) times_.first_prompt = seconds_since(start_);
    while (const std::optional<tts::Frame> frame = source_.next()) {
      count(source_.times());
      ++pieces_.back().frames;
      ++frames_;
      if (!hand_over({frame}, emit)) return false;
    }
    pieces_.back().end = end_of(source_.stop());
    return hand_over({std::nullopt}, emit);
  }

  template <typename Emit>
  bool hand_over(Item item, const Emit& emit) {
    const Clock::time_point begin = Clock::now();
    const bool wanted = emit(std::move(item));
    if (options_.overlap) times_.maker_waits += seconds_since(begin);
    return wanted;
  }

  void count(const tts::FrameTimes& frame) {
    times_.talker += frame.talker;
    times_.predictor += frame.predictor;
    times_.sampling += frame.sampling;
    for (size_t i = 0; i < frame.substep.size(); ++i) times_.substep[i] += frame.substep[i];
  }

  FrameSource& source_;
  const PipelineOptions& options_;
  Clock::time_point start_;
  std::vector<PieceOutcome> pieces_;
  int64_t frames_ = 0;
  SpeechTimes times_;
};

// Collects frames to chunks, decodes them and hands the samples on.
class Speaker {
 public:
  Speaker(SampleDecoder* decoder, const PipelineOptions& options, const PipelineHooks& hooks, Clock::time_point start)
      : decoder_(*decoder), hooks_(hooks), schedule_(options.schedule), start_(start) {}

  // What comes before all that is heard, some frames at a time.
  void take_prefix(const std::vector<tts::Frame>& frames) {
    const Clock::time_point begin = Clock::now();
    // All but the last few frames cost little, so that Ctrl-C waits for no more than a fraction of a second.
    constexpr size_t kStep = 250;
    for (size_t at = 0; at < frames.size(); at += kStep) {
      look();
      decoder_.pass(std::span(frames).subspan(at, std::min(kStep, frames.size() - at)));
    }
    times_.prefix = seconds_since(begin);
  }

  void take(const Item& item) {
    look();
    if (item.frame) pending_.push_back(*item.frame);
    // At the end of a piece the next is still to be read: what there is is worth hearing now.
    if (!item.frame || static_cast<int64_t>(pending_.size()) == schedule_.next()) flush();
  }

  void flush() {
    if (pending_.empty()) return;
    Clock::time_point begin = Clock::now();
    samples_.resize(pending_.size() * tts::kFrameSamples);
    decoder_.decode(pending_, samples_);
    times_.decode += seconds_since(begin);
    heard_ += static_cast<int64_t>(pending_.size());
    pending_.clear();
    schedule_.advance();
    begin = Clock::now();
    if (hooks_.write && !hooks_.write(samples_)) throw Ended{SpeechEnd::kClosed};
    times_.write += seconds_since(begin);
    if (times_.first_audio == 0) times_.first_audio = seconds_since(start_);
    if (hooks_.progress) hooks_.progress(heard_);
  }

  void look() const {
    if (hooks_.interrupted && hooks_.interrupted()) throw Ended{SpeechEnd::kInterrupted};
  }
  void waited(double seconds) { times_.decoder_waits += seconds; }

  void report(SpeechRun* run) const {
    run->samples = heard_ * tts::kFrameSamples;
    run->times.decode = times_.decode;
    run->times.write = times_.write;
    run->times.prefix = times_.prefix;
    run->times.decoder_waits = times_.decoder_waits;
    run->times.first_audio = times_.first_audio;
  }

 private:
  SampleDecoder& decoder_;
  const PipelineHooks& hooks_;
  ChunkSchedule schedule_;
  Clock::time_point start_;
  std::vector<tts::Frame> pending_;
  std::vector<float> samples_;
  int64_t heard_ = 0;
  SpeechTimes times_;
};

void take_turns(Maker* maker, Speaker* speaker, const PipelineOptions& options) {
  speaker->take_prefix(options.prefix);
  maker->run([&](const Item& item) {
    speaker->take(item);
    return true;
  });
  speaker->flush();
}

void side_by_side(Maker* maker, Speaker* speaker, const PipelineOptions& options) {
  BoundedQueue<Item> queue(std::max<size_t>(options.queue, 1));
  std::thread thread([&] {
    try {
      maker->run([&](Item item) { return queue.push(std::move(item)); });
      queue.finish();
    } catch (...) {
      queue.finish(std::current_exception());
    }
  });
  // However this side ends, the other does too before anything of it is gone.
  struct Joiner {
    ~Joiner() {
      queue.cancel();
      thread.join();
    }
    BoundedQueue<Item>& queue;
    std::thread& thread;
  } joiner{queue, thread};
  speaker->take_prefix(options.prefix);
  for (;;) {
    const Clock::time_point begin = Clock::now();
    const std::optional<Item> item = queue.pop([&] { speaker->look(); });
    speaker->waited(seconds_since(begin));
    if (!item) break;
    speaker->take(*item);
  }
  speaker->flush();
}

}  // namespace

std::string_view speech_end_name(SpeechEnd end) {
  constexpr std::array<std::string_view, 5> kNames = {"end_of_speech", "max_frames", "context_full", "interrupted", "closed"};
  return kNames[static_cast<size_t>(end)];
}

SpeechRun run_pipeline(FrameSource* source, SampleDecoder* decoder, const PipelineOptions& options, const PipelineHooks& hooks) {
  const Clock::time_point start = Clock::now();
  Maker maker(source, options, start);
  Speaker speaker(decoder, options, hooks, start);
  SpeechRun run;
  std::optional<SpeechEnd> ended;
  try {
    if (options.overlap) {
      side_by_side(&maker, &speaker, options);
    } else {
      take_turns(&maker, &speaker, options);
    }
  } catch (const Ended& early) {
    ended = early.end;
  }
  maker.report(&run);
  speaker.report(&run);
  if (ended) run.end = *ended;
  run.times.total = seconds_since(start);
  return run;
}

}  // namespace ref::speak
