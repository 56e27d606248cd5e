// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/codec/quantiser.h"

#include "reference/core/describe.h"

namespace ref::tts {

Quantiser::Part Quantiser::part(const ModelContext& context, const std::string& name, int64_t levels,
                                const CodecDecoderConfig& config) {
  const int64_t dim = config.codebook_dim / 2, size = config.codebook_size;
  const std::string prefix = "decoder.quantizer." + name;
  const Plain& books = context.weights.plain(prefix + ".codebook", {levels, size, dim});
  const Matrix& matrix = context.weights.matrix(prefix + ".output_proj", config.codebook_dim, dim);
  const omni_dtype row_type = common_row_type({&matrix}, context.policy);
  std::vector<RowTable> tables;
  const size_t book_bytes = books.bytes.size() / static_cast<size_t>(levels);
  for (int64_t i = 0; i < levels; ++i) {
    tables.emplace_back(Plain{books.type, {size, dim}, books.bytes.subspan(static_cast<size_t>(i) * book_bytes, book_bytes)});
  }
  return {std::move(tables), context.linear(prefix + ".output_proj", config.codebook_dim, dim, false, row_type), row_type};
}

Quantiser::Quantiser(const CodecDecoderConfig& config, const ModelContext& context, int64_t most_rows, StageClock* clock)
    : most_rows_(most_rows),
      width_(config.codebook_dim),
      first_(part(context, "rvq_first", 1, config)),
      rest_(part(context, "rvq_rest", kCodebooks - 1, config)),
      lap_(clock->stage("quantiser")) {}

void Quantiser::place(Placement* placement) {
  entries_ = placement->rows(OMNI_DTYPE_F32, most_rows_, width_ / 2);
  cast_ = placement->rows(OMNI_DTYPE_F32, most_rows_, width_ / 2);
  rest_rows_ = placement->rows(OMNI_DTYPE_F32, most_rows_, width_);
  output_ = placement->rows(OMNI_DTYPE_F32, most_rows_, width_);
}

void Quantiser::project(const Part& part, size_t level, std::span<const Frame> frames, const Rows2d& out) const {
  for (size_t row = 0; row < frames.size(); ++row) {
    float* sum = entries_.f32(static_cast<int64_t>(row));
    for (size_t i = 0; i < part.tables.size(); ++i) {
      const int64_t code = frames[row][level + i];
      if (i == 0) {
        part.tables[i].copy(code, sum);
      } else {
        part.tables[i].add(code, sum);
      }
    }
  }
  const auto rows = static_cast<uint32_t>(frames.size());
  const Rows2d cast = cast_.as(part.row_type);
  cast_rows(entries_, rows, cast);
  part.projection.run(rows, cast.at(0), cast.ld, out.at(0), out.ld);
}

void Quantiser::run(std::span<const Frame> frames, int64_t position, StageClock* clock, Observer* observer) const {
  const auto rows = static_cast<int64_t>(frames.size());
  project(first_, 0, frames, output_);
  project(rest_, 1, frames, rest_rows_);
  observe_rows(observer, "rvq_first", position, rows, width_, output_);
  observe_rows(observer, "rvq_rest", position, rows, width_, rest_rows_);
  for (int64_t i = 0; i < rows * width_; ++i) output_.f32(0)[i] += rest_rows_.f32(0)[i];
  observe_rows(observer, "rvq", position, rows, width_, output_);
  clock->lap(lap_);
}

uint64_t Quantiser::weight_bytes() const { return first_.projection.bytes() + rest_.projection.bytes(); }

void Quantiser::describe(std::vector<std::string>* lines) const {
  add_line(lines, linear_line("codebook projection", first_.projection, first_.row_type));
  add_line(lines, linear_line("codebook projection", rest_.projection, rest_.row_type));
}

}  // namespace ref::tts
