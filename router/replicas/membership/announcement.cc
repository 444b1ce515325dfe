// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/announcement.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <blake3.h>

#include "common/base/bytes.h"
#include "common/base/json.h"

namespace sightline::membership {
namespace {

constexpr std::array kRoles = {Role::Router, Role::Frontend, Role::Agent};
static_assert(kRoles.size() == kRoleCount);
constexpr std::size_t kKeyCheckBytes = 8;
// The text around the digits of a proof, at the end of an announcement.
constexpr std::string_view kProofBegin = R"(,"proof":")";
constexpr std::string_view kProofEnd = R"("})";

Error corrupt(std::string message) {
  return worker_error(ErrorCode::Corrupt, std::move(message), false);
}

// In UTF-8, bytes 10xxxxxx continue a character.
bool is_continuation(char byte) {
  constexpr auto kMask = 0xC0U;
  constexpr auto kContinuation = 0x80U;
  return (static_cast<unsigned char>(byte) & kMask) == kContinuation;
}

// Returns the text as JSON, within the limit. It is cut between characters, because readers reject
// broken UTF-8.
std::string told(std::string_view text) {
  constexpr std::size_t kQuotes = 2;
  constexpr std::size_t kEscapeBytesMax = 6;  // of one byte
  if (!is_utf8(text)) return json::to_quoted("");
  if (text.size() > kAnnouncedTextBytesMax) {
    std::size_t size = kAnnouncedTextBytesMax;
    while (is_continuation(text[size])) --size;
    text = text.substr(0, size);
  }
  while (true) {
    std::string quoted = json::to_quoted(text);
    if (quoted.size() <= kAnnouncedTextBytesMax + kQuotes) return quoted;
    const std::size_t excess = quoted.size() - kAnnouncedTextBytesMax - kQuotes;
    // Cuts as few bytes as can be enough: each may have taken the longest escape. Repeated until it
    // fits.
    std::size_t size = text.size() - (excess + kEscapeBytesMax - 1) / kEscapeBytesMax;
    while (size > 0 && is_continuation(text[size])) --size;
    text = text.substr(0, size);
  }
}

class Writer {
 public:
  void text(std::string_view name, std::string_view value) {
    begin(name);
    out_ += told(value);
  }
  template <class Integer>
  void number(std::string_view name, Integer value) {
    begin(name);
    out_ += std::to_string(value);
  }
  void truth(std::string_view name, bool value) {
    begin(name);
    out_ += value ? "true" : "false";
  }
  std::string take() && { return std::move(out_) + "}"; }

 private:
  void begin(std::string_view name) {
    out_ += out_.empty() ? "{" : ",";
    json::append_quoted(out_, name);
    out_ += ":";
  }
  std::string out_;
};

class Reader {
 public:
  explicit Reader(const json::Value& object) : object_(object) {}

  [[nodiscard]] bool has(std::string_view name) const { return object_.find(name).has_value(); }

  Result<std::string> text(std::string_view name) const {
    const auto value = object_.find(name);
    const auto text = value ? value->string() : std::nullopt;
    if (!text) return wrong(name, "must be a string");
    if (text->size() > kAnnouncedTextBytesMax) return wrong(name, "is too long");
    return std::string(*text);
  }

  template <class Integer>
  Result<Integer> number(std::string_view name) const {
    const auto value = object_.find(name);
    const auto number = value ? value->integer() : std::nullopt;
    if (!number || *number < 0 ||
        static_cast<std::uint64_t>(*number) >
            static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())) {
      return wrong(name, "must be a whole number of at least 0");
    }
    return static_cast<Integer>(*number);
  }

  // JSON readers do not keep all 64 bits of a number, so these are texts.
  Result<std::uint64_t> hex(std::string_view name) const {
    const std::string digits = SL_TRY(text(name));
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value, 16);
    if (digits.empty() || read.ec != std::errc{} || read.ptr != end) {
      return wrong(name, "must be a 64-bit hexadecimal number");
    }
    return value;
  }

  Result<bool> truth(std::string_view name) const {
    const auto value = object_.find(name);
    if (!value) return false;
    if (!value->boolean()) return wrong(name, "must be true or false");
    return *value->boolean();
  }

  Result<Role> role(std::string_view name) const {
    const std::string given = SL_TRY(text(name));
    for (const Role role : kRoles) {
      if (name_of(role) == given) return role;
    }
    return wrong(name, "is not known");
  }

 private:
  static Error wrong(std::string_view name, std::string_view what) {
    return corrupt("announcement: \"" + std::string(name) + "\" " + std::string(what));
  }
  json::Value object_;
};

}  // namespace

std::string_view name_of(Role role) {
  switch (role) {
    case Role::Router:
      return "router";
    case Role::Frontend:
      return "frontend";
    case Role::Agent:
      return "agent";
  }
  return "router";
}

std::string key_check_of(const contract::IdentityKey& key) {
  blake3_hasher hasher;
  blake3_hasher_init_derive_key(&hasher, "sightline 2026 identity key check");
  blake3_hasher_update(&hasher, key.bytes.data(), key.bytes.size());
  std::array<std::uint8_t, kKeyCheckBytes> bytes{};
  blake3_hasher_finalize(&hasher, bytes.data(), bytes.size());
  return to_hex(bytes);
}

std::string encode(const Announcement& a) {
  Writer out;
  out.text("role", name_of(a.role));
  out.text("name", a.name);
  out.text("instance", to_hex(a.instance));
  out.text("scope", a.scope);
  out.text("revision", a.revision);
  out.text("model_digest", a.model_digest);
  out.text("served_model", a.served_model);
  out.number("block_size", a.block_size);
  out.text("key_check", a.key_check);
  out.number("frames_min", a.frames.min);
  out.number("frames_max", a.frames.max);
  out.text("admin_address", a.admin_address);
  out.text("selection_address", a.selection_address);
  out.number("started", a.started);
  out.text("generation", to_hex(a.generation));
  out.text("number", to_hex(a.number));
  out.truth("leaving", a.leaving);
  return std::move(out).take();
}

std::string encode(const Announcement& announcement, std::string_view subject,
                   const envelope::Sealer& sealer) {
  std::string text = encode(announcement);
  // The closing brace follows the proof.
  text.pop_back();
  // The proof covers all bytes before it, so no field can be changed.
  const std::string proof = sealer.proof(subject, text);
  return text.append(kProofBegin).append(proof).append(kProofEnd);
}

// The proof is checked on the bytes, before any JSON is parsed. So forged announcements cost
// little.
bool is_proven(std::string_view json, std::string_view subject, const envelope::Sealer& sealer) {
  constexpr std::size_t kTail = kProofBegin.size() + envelope::kProofDigits + kProofEnd.size();
  if (json.size() > kAnnouncementBytesMax || json.size() < kTail) return false;
  const auto text = json.substr(0, json.size() - kTail);
  const auto tail = json.substr(text.size());
  return tail.starts_with(kProofBegin) && tail.ends_with(kProofEnd) &&
         sealer.proves(subject, text, tail.substr(kProofBegin.size(), envelope::kProofDigits));
}

Result<Announcement> decode(std::string_view text) {
  // Checked first. So a large text costs little.
  if (text.size() > kAnnouncementBytesMax) {
    return Error{
        .code = ErrorCode::TooLarge,
        .blame = Blame::Worker,
        .message = "announcement: more than " + std::to_string(kAnnouncementBytesMax) + " bytes"};
  }
  // An announcement is flat. Deeper or larger JSON would only cost memory.
  const auto document =
      json::Document::parse(std::string(text), {.depth_max = 4, .values_max = 256});
  if (!document.ok()) return corrupt("announcement: " + document.error().message);
  if (!document->root().is(json::Kind::Object)) return corrupt("announcement: must be an object");
  const Reader in(document->root());
  Announcement a;
  a.role = SL_TRY(in.role("role"));
  a.name = SL_TRY(in.text("name"));
  a.instance = SL_TRY(in.hex("instance"));
  a.scope = SL_TRY(in.text("scope"));
  a.revision = SL_TRY(in.text("revision"));
  a.model_digest = SL_TRY(in.text("model_digest"));
  a.served_model = SL_TRY(in.text("served_model"));
  a.block_size = SL_TRY(in.number<std::uint32_t>("block_size"));
  a.key_check = SL_TRY(in.text("key_check"));
  a.frames.min = SL_TRY(in.number<std::uint32_t>("frames_min"));
  a.frames.max = SL_TRY(in.number<std::uint32_t>("frames_max"));
  a.admin_address = SL_TRY(in.text("admin_address"));
  a.selection_address = SL_TRY(in.text("selection_address"));
  a.started = SL_TRY(in.number<std::int64_t>("started"));
  a.generation = SL_TRY(in.hex("generation"));
  // Releases with frames of version 1 send no number.
  if (in.has("number")) a.number = SL_TRY(in.hex("number"));
  a.leaving = SL_TRY(in.truth("leaving"));
  return a;
}

}  // namespace sightline::membership
