// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/resolve_media.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include <asio/post.hpp>
#include <asio/this_coro.hpp>

#include "router/prompt/image/header.h"
#include "router/prompt/media/base64_bytes.h"
#include "router/prompt/media/image_source.h"
#include "router/prompt/media/media_id.h"
#include "router/prompt/model/image_tokens.h"

namespace sightline::prepare {
namespace {

using openai::MediaPart;
using openai::Modality;

Error at_item(Error error, const MediaPart& part) {
  // An error that names a more exact parameter keeps it.
  if (error.param.empty()) error.param = part.path;
  return with_context(std::move(error), part.path);
}

// The downloads that a request needs.
struct Wanted {
  media::FetchOrder order;
  // For each item the index of its download in the order. Absent for inline items.
  std::vector<std::optional<std::size_t>> places;
};

// Adds the URLs of the images, or those of the other media. All items are checked before the first
// download begins.
Result<Done> add_urls(std::span<const MediaPart> media, bool of_images, Wanted& wanted) {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < media.size(); ++i) {
    const MediaPart& part = media[i];
    if (!part.url || (part.modality == Modality::Image) != of_images) continue;
    const auto source = media::classify_url(part.url->string().value_or(""));
    if (!source.ok()) return at_item(source.error(), part);
    const auto* remote = std::get_if<media::RemoteImage>(&*source);
    if (remote == nullptr) continue;
    // A client may send one URL for many items. Only one download runs for it.
    const auto [place, is_new] = places.emplace(remote->url, wanted.order.urls.size());
    if (is_new) wanted.order.urls.emplace_back(remote->url);
    wanted.places[i] = place->second;
  }
  return Done{};
}

Result<Wanted> wanted_of(std::span<const MediaPart> media, std::uint64_t bytes_max) {
  Wanted wanted{.order = {.urls = {}, .bytes_max = bytes_max},
                .places = std::vector<std::optional<std::size_t>>(media.size())};
  // The images come first, because FetchOrder::images is a number of leading URLs.
  SL_TRY(add_urls(media, true, wanted));
  wanted.order.images = wanted.order.urls.size();
  SL_TRY(add_urls(media, false, wanted));
  return wanted;
}

// The result of a download order. The callback of the fetcher shares it, and may run after the end
// of the request.
struct Pending {
  Gate done;
  media::Fetched fetched;
};

Result<ByteView> inline_bytes(const media::InlineImage& image, const MediaRules& rules) {
  // One buffer per thread, because the bytes are needed for their hash and header only.
  static thread_local Bytes buffer;
  const std::size_t bound = media::base64_bytes_max(image.payload.size());
  // The bound of the decoded size is up to 2 bytes too high, because of the padding.
  if (bound > rules.image_bytes_max + 2) {
    return limit_error(ErrorCode::TooLarge, "media-image-bytes-max",
                       "the image is larger than " + std::to_string(rules.image_bytes_max) +
                           " bytes (media-image-bytes-max)");
  }
  if (buffer.size() < bound) buffer.resize(bound);
  const std::size_t size = SL_TRY(media::decode_base64(image.payload, buffer));
  return ByteView(buffer.data(), size);
}

Result<Done> measure(ByteView bytes, const model::ModelProfile& profile, ResolvedMedia& item) {
  const image::Header header = image::read_header(bytes);
  if (const auto* error = std::get_if<Error>(&header)) return *error;
  const auto* known = std::get_if<image::KnownImage>(&header);
  if (known == nullptr) {
    item.outcome = "unknown";
    return Done{};
  }
  item.outcome = image::name_of(known->format);
  item.width = known->width;
  item.height = known->height;
  const auto count =
      model::count_image_tokens(profile, {.width = item.width, .height = item.height});
  if (count.ok()) {
    item.tokens = count->tokens;
    // Unsupported means that the model's rule is unknown. The request is then routed without the
    // length of this image.
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
    // download_media() has fetched all remote images. Only an inline image is left.
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
  const std::size_t begin = out.size();
  out.resize(begin + (bytes.size() + 2) / 3 * 4, '=');
  char* at = out.data() + begin;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const std::uint32_t group = (std::uint32_t{bytes[i]} << 16U) |
                                (left > 1 ? std::uint32_t{bytes[i + 1]} << 8U : 0U) |
                                (left > 2 ? std::uint32_t{bytes[i + 2]} : 0U);
    at[0] = kAlphabet[group >> 18U];
    at[1] = kAlphabet[(group >> 12U) & 63U];
    if (left > 1) at[2] = kAlphabet[(group >> 6U) & 63U];
    if (left > 2) at[3] = kAlphabet[group & 63U];
    at += 4;
  }
}

const std::string kAnyType = "application/octet-stream";

std::string data_url(std::string url, ByteView bytes) {
  url += ";base64,";
  url.reserve(url.size() + (bytes.size() + 2) / 3 * 4);
  append_base64(url, bytes);
  return url;
}

}  // namespace

Task<Result<Downloads>> download_media(std::span<const MediaPart> media, media::Fetcher& fetcher,
                                       std::uint64_t bytes_max, std::stop_token left) {
  Wanted wanted = SL_CO_TRY(wanted_of(media, bytes_max));
  Downloads downloads(media.size());
  if (wanted.order.urls.empty()) co_return downloads;
  const auto pending = std::make_shared<Pending>();
  const auto executor = co_await asio::this_coro::executor;
  auto arrived = [pending, executor](media::Fetched fetched) {
    // Only the I/O thread uses `pending`, and so the result moves there first.
    auto hand_over = [pending, fetched = std::move(fetched)]() mutable {
      pending->fetched = std::move(fetched);
      pending->done.open();
    };
    asio::post(executor, std::move(hand_over));
  };
  const auto order = fetcher.fetch(std::move(wanted.order), std::move(arrived));
  const auto cancel = [&fetcher, order] { fetcher.cancel(order); };
  const std::stop_callback cancel_when_left(std::move(left), cancel);
  co_await pending->done.wait();
  media::Fetched& fetched = pending->fetched;
  if (fetched.error) {
    // Other errors concern all items of the request, for example a full budget.
    const bool is_of_one = fetched.error->blame == Blame::Client && fetched.error->param.empty();
    if (!is_of_one) co_return std::move(*fetched.error);
    const auto failed = std::find(wanted.places.begin(), wanted.places.end(), fetched.failed);
    co_return at_item(std::move(*fetched.error), media[failed - wanted.places.begin()]);
  }
  for (std::size_t i = 0; i < media.size(); ++i) {
    if (wanted.places[i]) downloads[i] = fetched.images[*wanted.places[i]].bytes;
  }
  co_return downloads;
}

Result<std::vector<ResolvedMedia>> resolve_media(const openai::ApiRequest& request,
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
  // The engine decides by the bytes. The URL has a type because its syntax has a place for it.
  return data_url("data:" + (item.width > 0 ? "image/" + item.outcome : kAnyType), *item.fetched);
}

std::string data_url_of(ByteView bytes) { return data_url("data:" + kAnyType, bytes); }

}  // namespace sightline::prepare
