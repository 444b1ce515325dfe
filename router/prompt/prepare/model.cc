// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/model.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include <blake3.h>

#include "common/base/bytes.h"

namespace sightline::prepare {
namespace {

namespace fs = std::filesystem;

Error unreadable(const fs::path& file, const std::string& what) {
  return Error{ErrorCode::InvalidArgument, Blame::Internal, false, file.string() + ": " + what, {}};
}

// Absent if the file does not exist.
Result<std::optional<std::string>> read_file(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error == std::errc::no_such_file_or_directory) return std::optional<std::string>{};
  if (error) return unreadable(file, error.message());
  // The size is limited before the read, because --model-path may name any directory.
  if (size > model::kModelFileBytesMax) {
    return unreadable(file, "larger than " + std::to_string(model::kModelFileBytesMax) + " bytes");
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(size, '\0');
  if (!stream.read(text.data(), static_cast<std::streamsize>(size))) {
    return unreadable(file, "cannot be read. Check its permissions");
  }
  return std::optional<std::string>(std::move(text));
}

Result<std::string> read_required(const fs::path& file) {
  auto text = SL_TRY(read_file(file));
  if (!text) {
    return unreadable(file, "missing. --model-path must name a Hugging Face model directory");
  }
  return std::move(*text);
}

Result<model::ModelFiles> read_files(const fs::path& directory) {
  model::ModelFiles files;
  files.config = SL_TRY(read_required(directory / model::kConfigFile));
  files.tokenizer_config = SL_TRY(read_file(directory / model::kTokenizerConfigFile));
  files.template_jinja = SL_TRY(read_file(directory / model::kTemplateFile));
  files.template_json = SL_TRY(read_file(directory / model::kTemplateJsonFile));
  files.preprocessor = SL_TRY(read_file(directory / model::kPreprocessorFile));
  files.processor = SL_TRY(read_file(directory / model::kProcessorFile));
  return files;
}

// Hashes names and contents of files, in the order of the calls.
class FilesDigest {
 public:
  FilesDigest() { blake3_hasher_init_derive_key(&hasher_, "sightline 2026 model files"); }

  // Each text follows its length. Without the lengths, two different lists of files could give the
  // same bytes.
  void add(std::string_view name, std::string_view content) {
    add_text(name);
    add_text(content);
  }
  void add(std::string_view name, const std::optional<std::string>& content) {
    if (content) add(name, std::string_view(*content));
  }

  [[nodiscard]] std::string hex() const {
    std::array<std::uint8_t, BLAKE3_OUT_LEN> bytes{};
    blake3_hasher_finalize(&hasher_, bytes.data(), bytes.size());
    return to_hex(bytes);
  }

 private:
  void add_text(std::string_view text) {
    std::array<std::uint8_t, 8> size{};
    store_le64(size.data(), text.size());
    blake3_hasher_update(&hasher_, size.data(), size.size());
    blake3_hasher_update(&hasher_, text.data(), text.size());
  }

  blake3_hasher hasher_{};
};

std::string digest_of(const model::ModelFiles& files, std::string_view tokenizer) {
  FilesDigest digest;
  digest.add(model::kConfigFile, std::string_view(files.config));
  digest.add(model::kTokenizerFile, tokenizer);
  digest.add(model::kTokenizerConfigFile, files.tokenizer_config);
  digest.add(model::kTemplateFile, files.template_jinja);
  digest.add(model::kTemplateJsonFile, files.template_json);
  digest.add(model::kPreprocessorFile, files.preprocessor);
  digest.add(model::kProcessorFile, files.processor);
  return digest.hex();
}

// The texts that represent an item where a template takes flat text. vLLM 0.32 writes them for the
// Qwen vision families (get_placeholder_str).
chat::MediaPlaceholders flat_placeholders(model::ModelFamily family) {
  using model::ModelFamily;
  if (family != ModelFamily::Qwen2Vl && family != ModelFamily::Qwen2_5Vl &&
      family != ModelFamily::Qwen3Vl) {
    return {};
  }
  return {.image = "<|vision_start|><|image_pad|><|vision_end|>",
          .video = "<|vision_start|><|video_pad|><|vision_end|>"};
}

Result<std::optional<chat::ChatTemplate>> parse_template(const model::ModelProfile& profile,
                                                         const std::string& source) {
  if (source.empty()) return std::optional<chat::ChatTemplate>{};
  chat::SpecialTokens tokens;
  for (const model::SpecialToken& token : profile.special_tokens) {
    tokens.emplace_back(token.name, token.text);
  }
  auto parsed = chat::ChatTemplate::create(source, tokens, flat_placeholders(profile.family));
  if (!parsed.ok()) return with_context(std::move(parsed).error(), "chat template");
  return std::optional<chat::ChatTemplate>(std::move(parsed).value());
}

}  // namespace

Result<std::shared_ptr<const LoadedModel>> load_model(const std::string& path) {
  const fs::path directory(path);
  auto model = std::make_shared<LoadedModel>();
  const model::ModelFiles files = SL_TRY(read_files(directory));
  model->profile = SL_TRY(model::parse_model(files));
  const std::string tokenizer = SL_TRY(read_required(directory / model::kTokenizerFile));
  auto created = tokenizer::Tokenizer::create(tokenizer);
  // The parser of the tokenizer does not know the file's name.
  if (!created.ok()) {
    return with_context(std::move(created).error(), (directory / model::kTokenizerFile).string());
  }
  model->tokenizer = std::move(created).value();
  model->files_digest = digest_of(files, tokenizer);
  model->chat_template = SL_TRY(parse_template(model->profile, model->profile.chat_template));
  model->tools_template =
      SL_TRY(parse_template(model->profile, model->profile.chat_template_with_tools));
  return std::shared_ptr<const LoadedModel>(std::move(model));
}

}  // namespace sightline::prepare
