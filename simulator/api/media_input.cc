// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/media_input.h"

#include <array>
#include <optional>
#include <utility>

#include "simulator/api/api_error.h"
#include "simulator/api/image_size.h"
#include "simulator/core/sha256.h"
#include "simulator/processor/image_grid.h"

namespace sightline::api {
namespace {

// The processed bytes of a token. A token of Qwen2-VL is 4 patches of 2×3×14×14 float32 values.
constexpr std::uint64_t kProcessedBytesPerToken = 4ULL * 1176 * 4;

Error refused(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

constexpr std::array<std::int8_t, 256> kBase64Values = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    values[static_cast<std::uint8_t>(alphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

// Returns the bytes of a data: URL. The messages are those of vLLM's media connector.
Result<std::string> decode_url(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  if (scheme == "http" || scheme == "https") {
    const std::string_view rest = url.substr(std::min(url.size(), scheme.size() + 3));
    return internal_error("Cannot connect to host " + std::string(rest.substr(0, rest.find('/'))) +
                          " ssl:default [Network is unreachable]");
  }
  if (scheme == "file") {
    return internal_error("Cannot load local files without `--allowed-local-media-path`.");
  }
  const std::size_t comma = url.find(',');
  if (scheme != "data" || comma == std::string_view::npos) {
    return refused("The URL must be either a HTTP, data or file URL.");
  }
  const std::string_view header = url.substr(0, comma);
  const std::string_view encoding = header.substr(header.find(';') + 1);
  if (encoding != "base64") return refused("Only base64 data URLs are supported for now.");
  return decode_base64(url.substr(comma + 1));
}

// Reads the media of one request. Each request needs its own reader.
class MediaReader {
 public:
  MediaReader(const processor::Checkpoint& checkpoint, ProcessorCache& cache)
      : checkpoint_(checkpoint), cache_(cache) {}

  Result<Done> read_part(const json::Value& part) {
    if (!part.is(json::Kind::Object)) return Done{};  // a bare string is text
    const auto type = part.find("type");
    const std::string_view name = type ? type->string().value_or("") : "";
    if (name == "image_url") return read_image(part);
    if (name == "video_url") return refused("Could not open video stream");
    if (name == "input_audio" || name == "audio_url") {
      return parameter_error("At most 0 audio(s) may be provided in one prompt.", "audio");
    }
    const bool known = name == "text" || name == "input_text" || name == "output_text" ||
                       name == "refusal" || name == "thinking";
    return known ? Result<Done>(Done{}) : refused("Unknown part type: " + std::string(name));
  }

  std::vector<MediaInput> take() { return std::move(inputs_); }

 private:
  Result<Done> read_image(const json::Value& part) {
    if (!checkpoint_.takes_media) {
      return parameter_error("At most 0 image(s) may be provided in one prompt.", "image");
    }
    const auto image = part.find("image_url");
    const auto uuid = uuid_of(part);
    if (!image) return parameter_error("Missing 'type' field in multimodal part.", "type");
    if (image->is(json::Kind::Null) && !uuid) {
      return refused(
          "1 validation error for ChatCompletionContentPartImageParam\nimage_url\n  Input should "
          "be a valid dictionary [type=dict_type, input_value=None, input_type=NoneType]\n    For "
          "further information visit https://errors.pydantic.dev/2.14/v/dict_type");
    }
    const auto url = image->is(json::Kind::Object) ? image->find("url") : image;
    const std::string_view payload = url ? url->string().value_or("") : "";
    return payload.empty() && uuid ? add_remembered(*uuid) : add_sent(payload, uuid);
  }

  static std::optional<std::string> uuid_of(const json::Value& part) {
    const auto uuid = part.find("uuid");
    if (!uuid || uuid->is(json::Kind::Null)) return std::nullopt;
    return std::string(uuid->string().value_or(uuid->raw()));
  }

  Result<Done> add_remembered(const std::string& identifier) {
    // Without this cache vLLM passes the missing image to its processor, which fails with this
    // message
    // (recorded in the capture qwen2vl-no-processor-cache).
    if (!cache_.enabled) {
      return refused(
          "Failed to apply Qwen2VLProcessor on data={'images': [None]} with "
          "kwargs={'do_normalize': "
          "False, 'do_rescale': False, 'return_tensors': 'pt'}");
    }
    const auto tokens = look_up(identifier);
    if (!tokens) {
      return refused("Cache miss for image at index " + std::to_string(inputs_.size()) +
                     " but data is not provided.");
    }
    inputs_.push_back({identifier, *tokens});
    return Done{};
  }

  Result<Done> add_sent(std::string_view url, const std::optional<std::string>& uuid) {
    const std::string bytes = SL_TRY(decode_url(url));
    const ByteView view = bytes_of(bytes);
    const ImageSize size = SL_TRY(measure_image(view));
    const std::string identifier = uuid ? *uuid : to_hex(core::sha256(view));
    // The cached item counts, even if the bytes are different ones.
    if (const auto tokens = look_up(identifier)) {
      inputs_.push_back({identifier, *tokens});
      return Done{};
    }
    const std::uint32_t tokens = SL_TRY(count_tokens(size));
    cache_.items.add({identifier, tokens, tokens * kProcessedBytesPerToken});
    inputs_.push_back({identifier, tokens});
    return Done{};
  }

  Result<std::uint32_t> count_tokens(const ImageSize& size) const {
    if (!checkpoint_.images) {
      return client_error(ErrorCode::Unsupported,
                          "no image processor is simulated for models of "
                          "type \"" +
                              checkpoint_.model_type + "\"");
    }
    const auto grid = SL_TRY(
        processor::grid_of(*checkpoint_.images, {.width = size.width, .height = size.height}));
    return static_cast<std::uint32_t>(grid.tokens());
  }

  std::optional<std::uint32_t> look_up(const std::string& identifier) {
    if (!cache_.enabled) return std::nullopt;
    const auto tokens = cache_.items.find(identifier);
    ++cache_.queries;
    cache_.hits += tokens ? 1 : 0;
    return tokens;
  }

  const processor::Checkpoint& checkpoint_;
  ProcessorCache& cache_;
  std::vector<MediaInput> inputs_;
};

}  // namespace

Result<std::string> decode_base64(std::string_view text) {
  std::size_t padding = 0;
  // Only two padding characters at the end count. Any other one is not a base64 digit.
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const std::int8_t value = kBase64Values[static_cast<std::uint8_t>(c)];
    if (value < 0) return refused("Non-base64 digit found");
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    if (++digits % 4 != 0) continue;
    out += static_cast<char>(bits >> 16U);
    out += static_cast<char>(bits >> 8U);
    out += static_cast<char>(bits);
  }
  if (text.size() % 4 != 0 || digits % 4 == 1) return refused("Incorrect padding");
  if (digits % 4 == 2) out += static_cast<char>(bits >> 4U);
  if (digits % 4 == 3) {
    out += static_cast<char>(bits >> 10U);
    out += static_cast<char>(bits >> 2U);
  }
  return out;
}

Result<std::vector<MediaInput>> read_media(const json::Value& messages,
                                           const processor::Checkpoint& checkpoint,
                                           ProcessorCache& cache) {
  MediaReader reader(checkpoint, cache);
  for (const json::Value message : messages) {
    const auto content = message.find("content");
    if (!content || !content->is(json::Kind::Array)) continue;
    for (const json::Value part : *content) SL_TRY(reader.read_part(part));
  }
  return reader.take();
}

}  // namespace sightline::api
