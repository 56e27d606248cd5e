// SPDX-License-Identifier: Apache-2.0
#include "bench/golden/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

namespace omni_golden {
namespace {

std::vector<std::byte> file(const std::string& header, size_t data_bytes, int64_t length = -1) {
  const uint64_t size = length < 0 ? header.size() : static_cast<uint64_t>(length);
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  for (int i = 0; i < 8; ++i) bytes[static_cast<size_t>(i)] = static_cast<std::byte>(size >> 8 * i);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i) bytes[8 + header.size() + i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const SafetensorsFile read("x", file(R"({"__metadata__":{"N":"64"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
                                       R"("b":{"dtype":"U8","shape":[],"data_offsets":[12,13]},)"
                                       R"("c":{"dtype":"F32","shape":[0,9],"data_offsets":[13,13]}})",
                                       13));
  EXPECT_EQ(read.metadata_number("N"), 64);
  EXPECT_EQ(read.at("a").as<uint16_t>(), (std::vector<uint16_t>{0x0100, 0x0302, 0x0504, 0x0706, 0x0908, 0x0B0A}));
  EXPECT_EQ(read.at("b").as<uint8_t>(), std::vector<uint8_t>{12});
  EXPECT_TRUE(read.at("c").as<float>().empty());
  EXPECT_EQ(read.find("d"), nullptr);
  EXPECT_THROW((void)read.at("d"), SafetensorsError);
  EXPECT_THROW((void)read.at("a").as<uint8_t>(), SafetensorsError);
  EXPECT_THROW((void)read.metadata_number("K"), SafetensorsError);
}

TEST(Safetensors, RefusesWhatIsNotWellFormed) {
  const auto refused = [](std::vector<std::byte> bytes) { EXPECT_THROW(SafetensorsFile("x", std::move(bytes)), SafetensorsError); };
  const std::string good = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  EXPECT_NO_THROW(SafetensorsFile("x", file(good, 4)));
  refused({});
  refused(std::vector<std::byte>(7));
  refused(file(good, 4, 1000));       // header longer than the file
  refused(file(good, 4, INT64_MAX));  // and than memory
  refused(file(good, 3));             // truncated data
  refused(file(good, 5));             // bytes of no tensor
  refused(file("[1]", 0));
  refused(file(R"({"a")", 0));
  for (const char* header : {
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U9","shape":[4],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})",
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0]}})",
           R"({"a":{"dtype":"U8","shape":[4]}})",
           R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})",
           R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[18446744073709551612,4]}})",
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           R"({"__metadata__":{"N":64},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
           R"({"__metadata__":[],"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       }) {
    SCOPED_TRACE(header);
    refused(file(header, 4));
  }
}

TEST(Safetensors, SaysWhatAFileProbablyIs) {
  const auto error_of = [](std::string_view content) -> std::string {
    std::vector<std::byte> bytes(content.size());
    std::memcpy(bytes.data(), content.data(), content.size());
    try {
      const SafetensorsFile file("x", std::move(bytes));
    } catch (const SafetensorsError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(error_of("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n").find("git-lfs pointer"),
            std::string::npos);
  EXPECT_NE(error_of("<!DOCTYPE html><html><body>404</body></html>").find("HTML"), std::string::npos);
  EXPECT_NE(error_of(std::string_view("PK\x03\x04\x14\0\0\0\0\0", 10)).find("zip"), std::string::npos);
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
  EXPECT_NE(error_of(std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10)).find("exceeds the file"), std::string::npos);
}

TEST(Safetensors, NamesADuplicate) {
  try {
    const SafetensorsFile twice("x", file(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                          R"("w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                          2));
    FAIL();
  } catch (const SafetensorsError& error) {
    EXPECT_NE(std::string(error.what()).find("duplicate name \"w\""), std::string::npos) << error.what();
  }
}

TEST(Safetensors, SpansSurviveAMove) {
  SafetensorsFile first("x", file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4));
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(second.at("a").as<uint8_t>(), (std::vector<uint8_t>{0, 1, 2, 3}));
}

TEST(Safetensors, AMissingFileIsNamed) {
  try {
    (void)SafetensorsFile::open("no such file");
    FAIL();
  } catch (const SafetensorsError& error) {
    EXPECT_STREQ(error.what(), "no such file: cannot be opened (No such file or directory)");
  }
}

}  // namespace
}  // namespace omni_golden
