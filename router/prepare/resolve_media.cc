// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prepare/resolve_media.h"

#include <utility>
#include <variant>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>

#include "router/image/header.h"
#include "router/media/base64.h"
#include "router/media/image_source.h"
#include "router/media/media_id.h"
#include "router/prompt/image_tokens.h"

namespace sightline::prepare {
namespace {

using openai::MediaPart;
using openai::Modality;

Error at_item(Error error, const MediaPart& part) {
  if (error.param.empty()) error.param = part.path;
  return with_context(std::move(error), part.path);
}

// Downloads under way. Shared with the fetcher's callbacks, which may outlive the request.
struct Pending {
  explicit Pending(std::size_t count) : results(count) {}
  Gate done;
  std::size_t missing = 0;
  std::vector<std::optional<Result<media::FetchedImage>>> results;
};

Result<Downloads> collect(const openai::ChatBody& chat, Pending& pending, const MediaRules& rules) {
  Downloads downloads(chat.media.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < downloads.size(); ++i) {
    auto& result = pending.results[i];
    if (!result) continue;
    if (!result->ok()) return at_item(result->error(), chat.media[i]);
    downloads[i] = (*result)->bytes;
    total += downloads[i]->size();
  }
  if (total > rules.fetched_bytes_max) {
    return limit_error(ErrorCode::TooLarge, "body-bytes-max",
                       "the images of this request exceed " +
                           std::to_string(rules.fetched_bytes_max) + " bytes together",
                       "messages");
  }
  return downloads;
}

Result<ByteView> inline_bytes(const media::InlineImage& image, const MediaRules& rules) {
  // One buffer a thread: the bytes are needed for their hash and header only.
  static thread_local Bytes buffer;
  const std::size_t bound = media::base64_bytes_max(image.payload.size());
  if (bound > rules.image_bytes_max + 2) {
    return limit_error(ErrorCode::TooLarge, "media-image-bytes-max",
                       "the image is larger than " + std::to_string(rules.image_bytes_max) +
                           " bytes (media-image-bytes-max)");
  }
  if (buffer.size() < bound) buffer.resize(bound);
  const std::size_t size = SL_TRY(media::decode_base64(image.payload, buffer));
  return ByteView(buffer.data(), size);
}

Result<Done> measure(ByteView bytes, const prompt::ModelProfile& profile, ResolvedMedia& item) {
  const image::Header header = image::read_header(bytes);
  if (const auto* error = std::get_if<Error>(&header)) return *error;
  const auto* known = std::get_if<image::Known>(&header);
  if (known == nullptr) {
    item.outcome = "unknown";
    return Done{};
  }
  item.outcome = image::name_of(known->format);
  item.width = known->width;
  item.height = known->height;
  const auto count =
      prompt::count_image_tokens(profile, {.width = item.width, .height = item.height});
  if (count.ok()) {
    item.tokens = count->tokens;
  } else if (count.error().code != ErrorCode::Unsupported) {
    return count.error();
  }
  return Done{};
}

Result<ResolvedMedia> resolve(const MediaPart& part, const std::shared_ptr<const Bytes>& download,
                              const MediaRules& rules) {
  ResolvedMedia item{.modality = part.modality, .outcome = "not_image", .fetched = download};
  if (!part.url || part.modality != Modality::Image) return item;
  ByteView bytes;
  if (download) {
    bytes = *download;
  } else {
    const auto source = SL_TRY(media::classify_url(part.url->string().value_or("")));
    bytes = SL_TRY(inline_bytes(std::get<media::InlineImage>(source), rules));
  }
  item.identifier = media::media_id_of(rules.key, bytes).hex();
  SL_TRY(measure(bytes, rules.profile, item));
  return item;
}

void append_base64(std::string& out, ByteView bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const std::uint32_t group = (std::uint32_t{bytes[i]} << 16U) |
                                (left > 1 ? std::uint32_t{bytes[i + 1]} << 8U : 0U) |
                                (left > 2 ? std::uint32_t{bytes[i + 2]} : 0U);
    out += kAlphabet[group >> 18U];
    out += kAlphabet[(group >> 12U) & 63U];
    out += left > 1 ? kAlphabet[(group >> 6U) & 63U] : '=';
    out += left > 2 ? kAlphabet[group & 63U] : '=';
  }
}

}  // namespace

Task<Result<Downloads>> download_media(const openai::Request& request, media::Fetcher& fetcher,
                                       const MediaRules& rules) {
  const openai::ChatBody* chat = request.chat();
  if (chat == nullptr) co_return Downloads{};
  const auto pending = std::make_shared<Pending>(chat->media.size());
  const auto executor = co_await asio::this_coro::executor;
  for (std::size_t i = 0; i < chat->media.size(); ++i) {
    const MediaPart& part = chat->media[i];
    if (!part.url || part.modality != Modality::Image) continue;
    const auto source = media::classify_url(part.url->string().value_or(""));
    if (!source.ok()) co_return at_item(source.error(), part);
    const auto* remote = std::get_if<media::RemoteImage>(&*source);
    if (remote == nullptr) continue;
    ++pending->missing;
    auto arrived = [pending, executor, i](Result<media::FetchedImage> image) {
      // The result is handed over on the I/O thread, which alone touches pending.
      auto hand_over = [pending, i, image = std::move(image)]() mutable {
        pending->results[i] = std::move(image);
        if (--pending->missing == 0) pending->done.open();
      };
      asio::post(executor, std::move(hand_over));
    };
    fetcher.fetch(std::string(remote->url), std::move(arrived));
  }
  if (pending->missing > 0) co_await pending->done.wait();
  co_return collect(*chat, *pending, rules);
}

Result<std::vector<ResolvedMedia>> resolve_media(const openai::Request& request,
                                                 const Downloads& downloads,
                                                 const MediaRules& rules) {
  std::vector<ResolvedMedia> items;
  const openai::ChatBody* chat = request.chat();
  if (chat == nullptr) return items;
  items.reserve(chat->media.size());
  for (std::size_t i = 0; i < chat->media.size(); ++i) {
    auto item = resolve(chat->media[i], downloads[i], rules);
    if (!item.ok()) return at_item(std::move(item).error(), chat->media[i]);
    items.push_back(std::move(item).value());
  }
  return items;
}

std::string data_url_of(const ResolvedMedia& item) {
  // The engine decides by the bytes; a type is written because the form has a place for it.
  std::string url = item.width > 0 ? "data:image/" + item.outcome : "data:application/octet-stream";
  url += ";base64,";
  url.reserve(url.size() + (item.fetched->size() + 2) / 3 * 4);
  append_base64(url, *item.fetched);
  return url;
}

}  // namespace sightline::prepare
