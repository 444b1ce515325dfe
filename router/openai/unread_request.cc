// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/unread_request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/bytes.h"

#include "router/openai/message_content.h"

namespace sightline::openai {
namespace {

using json::Kind;
using json::Value;

// Far more replacements than a request may have media. Most of them are identifiers of media.
constexpr std::size_t kFixesMax = 16'384;

constexpr std::array<std::string_view, 6> kTransferFields = {
    "kv_transfer_params", "ec_transfer_params", "bootstrap_host",
    "bootstrap_port",     "bootstrap_room",     "disaggregated_params"};

// The meaning of a string below a member.
enum class Use {
  None,
  Url,      // a URL in any form.
  Payload,  // base64, else a URL or a path.
};

struct MediaName {
  std::string_view name;
  Modality modality;
  Use use;
};

// Members with media, from the engines' request schemas.
constexpr std::array kMediaNames = {
    MediaName{"image_url", Modality::Image, Use::Url},
    MediaName{"video_url", Modality::Video, Use::Url},
    MediaName{"audio_url", Modality::Audio, Use::Url},
    MediaName{"file_url", Modality::Other, Use::Url},
    MediaName{"image", Modality::Image, Use::Payload},
    MediaName{"video", Modality::Video, Use::Payload},
    MediaName{"audio", Modality::Audio, Use::Payload},
    MediaName{"images", Modality::Image, Use::Payload},
    MediaName{"videos", Modality::Video, Use::Payload},
    MediaName{"audios", Modality::Audio, Use::Payload},
    MediaName{"image_data", Modality::Image, Use::Payload},
    MediaName{"video_data", Modality::Video, Use::Payload},
    MediaName{"audio_data", Modality::Audio, Use::Payload},
    MediaName{"image_embeds", Modality::Other, Use::None},
    MediaName{"audio_embeds", Modality::Other, Use::None},
    MediaName{"video_embeds", Modality::Other, Use::None},
    MediaName{"prompt_embeds", Modality::Other, Use::None},
    MediaName{"image_pil", Modality::Other, Use::None},
    MediaName{"input_audio", Modality::Other, Use::None},
};

struct MediaType {
  std::string_view type;
  Modality modality;
};

// Types of objects whose "url" an engine fetches and whose "uuid" names media.
constexpr std::array kMediaTypes = {
    MediaType{"image_url", Modality::Image},    MediaType{"video_url", Modality::Video},
    MediaType{"audio_url", Modality::Audio},    MediaType{"input_image", Modality::Image},
    MediaType{"input_video", Modality::Video},  MediaType{"input_audio", Modality::Audio},
    MediaType{"image", Modality::Image},        MediaType{"video", Modality::Video},
    MediaType{"audio", Modality::Audio},        MediaType{"url", Modality::Image},
    MediaType{"image_embeds", Modality::Other}, MediaType{"audio_embeds", Modality::Other},
    MediaType{"video_embeds", Modality::Other}, MediaType{"image_pil", Modality::Other},
    MediaType{"document", Modality::Other},     MediaType{"file", Modality::Other},
    MediaType{"input_file", Modality::Other},
};

// Members that an engine treats as data. A URL in them is not fetched.
constexpr std::array<std::string_view, 9> kOpaqueMembers = {"tools",
                                                            "tool_choice",
                                                            "functions",
                                                            "metadata",
                                                            "response_format",
                                                            "text",
                                                            "structured_outputs",
                                                            "guided_json",
                                                            "chat_template_kwargs"};

template <class Entries>
auto find_named(const Entries& entries, std::string_view name) -> decltype(entries.data()) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [name](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

const MediaType* media_type_of(const Value& object) {
  const auto type = object.find("type");
  const auto name = type ? type->string() : std::nullopt;
  if (!name) return nullptr;
  const auto* found = std::find_if(kMediaTypes.begin(), kMediaTypes.end(),
                                   [&](const MediaType& it) { return it.type == *name; });
  return found == kMediaTypes.end() ? nullptr : found;
}

bool is_container(const Value& value) { return value.is(Kind::Object) || value.is(Kind::Array); }

Error bad(std::string message, std::string param) {
  return client_error(ErrorCode::InvalidArgument, std::move(message), std::move(param));
}

bool is_transfer(const Value& member) {
  return !member.is(Kind::Null) && std::find(kTransferFields.begin(), kTransferFields.end(),
                                             member.name()) != kTransferFields.end();
}

Error transfer_refused(std::string_view name) {
  return bad(std::string(name) +
                 " may not be sent by clients: it makes an engine fetch from the host in it",
             std::string(name));
}

// Refuses servers that an engine would contact for the client, at addresses that the client writes.
Result<Done> check_no_tool_server(const Value& root) {
  if (const auto servers = root.find("mcp_servers"); servers && servers->size() > 0) {
    return bad(
        "mcp_servers is not supported: engines may not connect to servers that a client names",
        "mcp_servers");
  }
  const auto tools = root.find("tools");
  if (!tools || !tools->is(Kind::Array)) return Done{};
  for (const Value tool : *tools) {
    const auto url = tool.find("server_url");
    if (!url || url->is(Kind::Null)) continue;
    return bad(
        "server_url is not supported: engines may not connect to servers that a client names",
        "tools");
  }
  return Done{};
}

// Walks a whole body. The parser's limit on depth also limits the recursion.
class Finder {
 public:
  Finder(UnreadRequest& request, const UnreadRules& rules) : request_(request), rules_(rules) {}

  Result<Done> walk_body(const Value& root) {
    if (!root.is(Kind::Object)) return walk(root, {});
    ParentObject deps{root, {}};
    for (const Value member : root) {
      const auto& opaque = kOpaqueMembers;
      if (std::find(opaque.begin(), opaque.end(), member.name()) != opaque.end()) continue;
      SL_TRY(visit_member(member, deps));
    }
    return Done{};
  }

 private:
  // The role of a value.
  struct Place {
    Use use = Use::None;
    Modality modality = Modality::Other;
  };

  // An object whose members are visited. Facts that several members need are computed once.
  // Otherwise a client that repeats a member could cost a search of the object for each copy.
  struct ParentObject {
    Value object;
    Place place;
    std::optional<const MediaType*> known_type = std::nullopt;
    std::optional<bool> known_media = std::nullopt;

    const MediaType* type() {
      if (!known_type) known_type = media_type_of(object);
      return *known_type;
    }
    bool is_media() {
      if (known_media) return *known_media;
      known_media = place.use != Use::None || type() != nullptr ||
                    std::any_of(kMediaNames.begin(), kMediaNames.end(), [&](const MediaName& it) {
                      return object.find(it.name).has_value();
                    });
      return *known_media;
    }
  };

  Result<Done> walk(const Value& value, const Place& place) {
    if (value.is(Kind::String)) return visit_string(value, place);
    if (value.is(Kind::Array)) return walk_array(value, place);
    if (!value.is(Kind::Object)) return Done{};
    ParentObject deps{value, place};
    for (const Value member : value) SL_TRY(visit_member(member, deps));
    return Done{};
  }

  Result<Done> walk_array(const Value& array, const Place& place) {
    const std::size_t path_size = path_.size();
    std::size_t position = 0;
    for (const Value element : array) {
      const std::size_t here = position++;
      if (place.use == Use::None && !is_container(element)) continue;
      path_ += '[' + std::to_string(here) + ']';
      SL_TRY(walk(element, place));
      path_.resize(path_size);
    }
    return Done{};
  }

  Result<Done> visit_member(const Value& member, ParentObject& deps) {
    const std::string_view name = member.name();
    if (is_transfer(member)) return transfer_refused(name);
    const FixedMember* fixed = find_named(rules_.fixed, name);
    if (fixed != nullptr) return add_fix(member, fixed->value);
    if (name == "uuid" && deps.is_media()) return add_fix(member, "null");
    const Place place = place_of(member, deps);
    if (place.use == Use::None && !is_container(member)) return Done{};
    // Names come from the client, so an error shows only their beginning.
    constexpr std::size_t kShownNameBytesMax = 64;
    const std::size_t path_size = path_.size();
    if (!path_.empty()) path_ += '.';
    path_ += utf8_prefix(name.substr(0, kShownNameBytesMax), kShownNameBytesMax);
    SL_TRY(walk(member, place));
    path_.resize(path_size);
    return Done{};
  }

  Result<Done> add_fix(const Value& member, std::string_view value) {
    if (request_.fixes.size() == kFixesMax) {
      return limit_error(ErrorCode::InvalidArgument, "replaced-members-max",
                         "the body has more than " + std::to_string(kFixesMax) +
                             " members like this one, which the router must replace "
                             "(replaced-members-max, fixed)",
                         std::string(member.name()));
    }
    request_.fixes.push_back({member, value});
    return Done{};
  }

  // Returns the role of the strings below a member.
  static Place place_of(const Value& member, ParentObject& deps) {
    if (const MediaName* known = find_named(kMediaNames, member.name())) {
      return {known->use, known->modality};
    }
    if (member.name() != "url") return {};
    const Place& place = deps.place;
    if (place.use != Use::None) return {Use::Url, place.modality};
    const MediaType* type = deps.type();
    return type == nullptr ? Place{} : Place{Use::Url, type->modality};
  }

  Result<Done> visit_string(const Value& value, const Place& place) {
    const std::string_view text = value.string().value_or("");
    if (place.use == Use::None || text.empty()) return Done{};
    // Base64 is the media itself. An engine does not fetch it.
    if (place.use == Use::Payload && is_base64(text)) return Done{};
    if (request_.media.size() == rules_.media_max) {
      return too_many_media(rules_.media_max, path_);
    }
    request_.media.push_back({.modality = place.modality,
                              .part = value,
                              .url = value,
                              .message = 0,
                              .position = 0,
                              .path = path_});
    return Done{};
  }

  UnreadRequest& request_;
  const UnreadRules& rules_;
  std::string path_;
};

// Returns the first transfer parameter of an object, or of an object in it.
std::optional<Value> find_transfer(const Value& object) {
  for (const Value member : object) {
    if (is_transfer(member)) return member;
    if (!member.is(Kind::Object)) continue;
    if (const auto found = find_transfer(member)) return found;
  }
  return std::nullopt;
}

// Frees the values that were not found. A body may have millions of values, and few are found.
void drop_rest(UnreadRequest& request, HeldBytes* memory) {
  std::vector<Value*> kept;
  for (MediaPart& part : request.media) {
    kept.push_back(&part.part);
    kept.push_back(&*part.url);
  }
  for (UnreadRequest::Fix& fix : request.fixes) kept.push_back(&fix.old);
  const std::size_t free = request.document->drop_but(kept);
  if (memory != nullptr) memory->remove(free);
}

bool is_form(std::string_view content_type) {
  constexpr std::string_view kForm = "multipart/";
  if (content_type.size() < kForm.size()) return false;
  return std::equal(kForm.begin(), kForm.end(), content_type.begin(), [](char want, char seen) {
    return want == (seen >= 'A' && seen <= 'Z' ? static_cast<char>(seen + 32) : seen);
  });
}

}  // namespace

Result<Done> check_no_transfer(const Value& root) {
  const auto found = find_transfer(root);
  return found ? Result<Done>(transfer_refused(found->name())) : Done{};
}

Result<UnreadRequest> read_unread(std::string body, std::string_view content_type,
                                  const UnreadRules& rules) {
  UnreadRequest request;
  if (body.empty()) return request;
  if (is_form(content_type)) {
    // No form of an engine has these names. A plain search finds them in any spelling of a field's
    // header.
    for (const std::string_view name : kTransferFields) {
      if (body.find(name) != std::string::npos) return transfer_refused(name);
    }
    request.form = std::move(body);
    return request;
  }
  request.document =
      SL_TRY(json::Document::parse(without_mark(std::move(body)), {.memory = rules.memory}));
  const Value root = request.document->root();
  SL_TRY(check_no_tool_server(root));
  SL_TRY(Finder(request, rules).walk_body(root));
  drop_rest(request, rules.memory);
  return request;
}

}  // namespace sightline::openai
