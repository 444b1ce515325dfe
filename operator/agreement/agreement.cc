// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/agreement/agreement.h"

#include <algorithm>
#include <array>

#include <blake3.h>

#include "common/base/bytes.h"

namespace sightline::agreement {
namespace {

// Part of the digest. Change it only if the fields of an agreement are encoded in another way,
// because each object then gets a new revision.
constexpr std::string_view kVersion = "sightline revision 1";
constexpr std::string_view kLetters = "abcdefghjkmnpqrstvwx";
constexpr std::string_view kCharacters = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr std::size_t kNameLength = 8;
constexpr std::size_t kDigestBytes = 16;

// Digests fields with their lengths, so two different lists of fields never give the same bytes.
class Digest {
 public:
  Digest() {
    blake3_hasher_init(&hasher_);
    add(kVersion);
  }
  void add(std::string_view text) {
    const std::string length = std::to_string(text.size()) + ":";
    blake3_hasher_update(&hasher_, length.data(), length.size());
    blake3_hasher_update(&hasher_, text.data(), text.size());
  }
  void add(std::int64_t number) { add(std::to_string(number)); }
  [[nodiscard]] std::array<std::uint8_t, kNameLength> value() const {
    std::array<std::uint8_t, kNameLength> bytes{};
    blake3_hasher_finalize(&hasher_, bytes.data(), bytes.size());
    return bytes;
  }

 private:
  blake3_hasher hasher_{};
};

}  // namespace

std::string source_text(const crd::Model& model) {
  if (!model.source) return "hub";
  if (model.source->uri) return *model.source->uri;
  if (model.source->pvc) {
    return "pvc://" + model.source->pvc->claim_name + "/" + model.source->pvc->path;
  }
  if (model.source->image) {
    return "image://" + model.source->image->reference + "//" + model.source->image->path;
  }
  return "hub";
}

std::string digest_of(std::string_view text) {
  if (text.empty()) return {};
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, text.data(), text.size());
  std::array<std::uint8_t, kDigestBytes> bytes{};
  blake3_hasher_finalize(&hasher, bytes.data(), bytes.size());
  return to_hex(bytes);
}

Agreement agreement_of(const crd::Spec& spec, const Digests& digests) {
  Agreement agreement{.model_name = spec.model.name,
                      .model_source = source_text(spec.model),
                      .model_revision = spec.model.revision,
                      .chat_template = digests.chat_template,
                      .block_size = spec.kv.block_size,
                      .hash_seed = spec.kv.hash_seed,
                      .events = spec.kv.events,
                      .modalities = spec.multimodal.modalities,
                      .processor = spec.multimodal.processor,
                      .transfer = spec.transfer.mode,
                      .identity_key = digests.identity_key};
  // The same modalities in another order must give the same revision.
  std::sort(agreement.modalities.begin(), agreement.modalities.end());
  return agreement;
}

std::string revision_of(const Agreement& agreement) {
  Digest digest;
  digest.add(agreement.model_name);
  digest.add(agreement.model_source);
  digest.add(agreement.model_revision);
  digest.add(agreement.chat_template);
  digest.add(agreement.block_size);
  digest.add(agreement.hash_seed);
  // The number of the enumerator: another order of the enum would give each object a new revision.
  digest.add(static_cast<std::int64_t>(agreement.events));
  digest.add(static_cast<std::int64_t>(agreement.modalities.size()));
  for (const std::string& modality : agreement.modalities) digest.add(modality);
  digest.add(static_cast<std::int64_t>(agreement.processor.size()));
  for (const auto& [name, value] : agreement.processor) {
    digest.add(name);
    digest.add(value);
  }
  digest.add(static_cast<std::int64_t>(agreement.transfer));
  digest.add(agreement.identity_key);
  std::string name;
  for (const std::uint8_t byte : digest.value()) {
    const std::string_view characters = name.empty() ? kLetters : kCharacters;
    name += characters[byte % characters.size()];
  }
  return name;
}

}  // namespace sightline::agreement
