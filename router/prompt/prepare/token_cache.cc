// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/token_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/contract/metrics_requests.h"

namespace sightline::prepare {
namespace {

// Smaller pieces are tokenized faster than they are looked up and kept.
constexpr std::size_t kPieceBytesMin = 128;
// Larger pieces have no place to cut over a long distance. No text of people or programs looks like
// that.
constexpr std::size_t kPieceBytesMax = 64U << 10U;
// Memory of an entry besides its ids: the nodes of list and map, the control block, the allocator's
// overhead.
constexpr std::uint64_t kEntryBytes = 256;
// One text may add at most this part of the memory. So a single long text cannot evict everything
// else.
constexpr std::uint64_t kTextShare = 32;
// English text has one token per four to five bytes.
constexpr std::size_t kBytesPerTokenGuess = 4;

}  // namespace

TokenCache::TokenCache(const tokenizer::Tokenizer& tokenizer, const TokenCacheOptions& options,
                       runtime::Metrics& metrics)
    : tokenizer_(tokenizer),
      options_(options),
      hit_bytes_(metrics.counter(contract::kTokenCacheTextBytesTotal, {"hit"})),
      miss_bytes_(metrics.counter(contract::kTokenCacheTextBytesTotal, {"miss"})),
      evictions_(metrics.counter(contract::kTokenCacheEvictionsTotal)),
      bytes_(metrics.gauge(contract::kTokenCacheBytes)) {}

TokenCache::~TokenCache() { give_back(std::numeric_limits<std::size_t>::max()); }

std::uint64_t TokenCache::bytes_of(std::size_t ids) { return kEntryBytes + ids * sizeof(TokenId); }

TokenCache::PieceKey TokenCache::key_of(std::string_view piece) const {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(
      piece.data(), piece.size(), options_.secret.data(), options_.secret.size());
  return {hash.low64, hash.high64, piece.size()};
}

std::optional<TokenCache::Ids> TokenCache::Shard::find(const PieceKey& key,
                                                       std::uint64_t used_bytes_max) {
  const MutexLock lock(mutex);
  const auto found = entries.find(key);
  if (found == entries.end()) return std::nullopt;
  const Entries::iterator entry = found->second;
  // A hit moves the entry to the front of the list of used entries.
  used.splice(used.begin(), entry->was_used ? used : fresh, entry);
  used_bytes += std::exchange(entry->was_used, true) ? 0 : bytes_of(entry->ids.count);
  // The used entries have a limit. Without it, new pieces would have no room.
  while (used_bytes > used_bytes_max) {
    const auto last = std::prev(used.end());
    last->was_used = false;
    used_bytes -= bytes_of(last->ids.count);
    fresh.splice(fresh.begin(), used, last);
  }
  return entry->ids;
}

void TokenCache::Shard::evict(std::uint64_t bytes_max, Entries& evicted) {
  while (bytes > bytes_max) {
    // Entries that came once are evicted first.
    Entries& from = fresh.empty() ? used : fresh;
    const auto last = std::prev(from.end());
    entries.erase(last->key);
    bytes -= bytes_of(last->ids.count);
    used_bytes -= last->was_used ? bytes_of(last->ids.count) : 0;
    evicted.splice(evicted.end(), from, last);
  }
}

TokenCache::Entries TokenCache::Shard::insert(Entries& entry, std::uint64_t bytes_max) {
  Entries evicted;
  const MutexLock lock(mutex);
  // Another thread may have inserted the same key meanwhile.
  if (!entries.emplace(entry.front().key, entry.begin()).second) return evicted;
  bytes += bytes_of(entry.front().ids.count);
  fresh.splice(fresh.begin(), entry);
  evict(bytes_max, evicted);
  return evicted;
}

TokenCache::Entries TokenCache::Shard::take_out(std::uint64_t bytes_to_free) {
  Entries evicted;
  const MutexLock lock(mutex);
  evict(bytes - std::min(bytes, bytes_to_free), evicted);
  return evicted;
}

std::size_t TokenCache::forget(const Entries& evicted) {
  std::size_t bytes = 0;
  for (const Entry& entry : evicted) bytes += bytes_of(entry.ids.count);
  bytes_.add(-static_cast<double>(bytes));
  if (!evicted.empty()) evictions_.add(static_cast<double>(evicted.size()));
  if (options_.memory != nullptr) options_.memory->give(bytes);
  return bytes;
}

void TokenCache::add(const PieceKey& key, std::span<const TokenId> ids) {
  const std::uint64_t bytes = bytes_of(ids.size());
  Shard& shard = shards_[key.high % kShards];
  // The budget is shared with other users of memory. The cache replaces its own entries before it
  // takes more.
  if (options_.memory != nullptr && !options_.memory->take(bytes)) {
    if (forget(shard.take_out(bytes)) < bytes || !options_.memory->take(bytes)) return;
  }
  auto copy = std::make_shared_for_overwrite<TokenId[]>(ids.size());
  std::copy(ids.begin(), ids.end(), copy.get());
  Entries entry;
  entry.push_back({key, {std::move(copy), ids.size()}});
  bytes_.add(static_cast<double>(bytes));
  // The evicted entries are freed here, without the lock.
  const Entries evicted = shard.insert(entry, options_.bytes_max / kShards);
  forget(evicted);
  if (entry.empty()) return;
  // Another thread has inserted this key first.
  bytes_.add(-static_cast<double>(bytes));
  if (options_.memory != nullptr) options_.memory->give(bytes);
}

bool TokenCache::give_back(std::size_t bytes) {
  std::size_t given = 0;
  // Starts with another shard each time. Otherwise the same shard would always lose its entries.
  for (std::size_t i = 0; i < kShards && given < bytes; ++i) {
    Shard& shard = shards_[next_given_.fetch_add(1) % kShards];
    given += forget(shard.take_out(std::numeric_limits<std::uint64_t>::max()));
  }
  return given > 0;
}

bool TokenCache::encode_piece(const tokenizer::Piece& piece, std::uint64_t& room_bytes,
                              std::vector<TokenId>& out) {
  const std::size_t size = piece.text.size();
  if (options_.bytes_max == 0 || size < kPieceBytesMin || size > kPieceBytesMax) {
    tokenizer_.encode_piece(piece, out);
    return false;
  }
  const PieceKey key = key_of(piece.text);
  const std::uint64_t used_bytes_max = options_.bytes_max / kShards / 4 * 3;
  if (const auto known = shards_[key.high % kShards].find(key, used_bytes_max)) {
    out.insert(out.end(), known->view().begin(), known->view().end());
    return true;
  }
  const std::size_t begin = out.size();
  tokenizer_.encode_piece(piece, out);
  const std::uint64_t bytes = bytes_of(out.size() - begin);
  // The share of this text has no room for the piece.
  if (bytes > room_bytes) return false;
  room_bytes -= bytes;
  add(key, std::span(out).subspan(begin));
  return false;
}

Result<bool> TokenCache::encode(std::string_view text, const EncodeUntil& until,
                                std::vector<TokenId>& out) {
  tokenizer::Pieces pieces = SL_TRY(tokenizer_.cut(text));
  out.reserve(std::min(text.size() / kBytesPerTokenGuess, until.tokens_max));
  std::uint64_t room_bytes = options_.bytes_max / kTextShare;
  std::size_t hit_bytes = 0;
  std::size_t miss_bytes = 0;
  bool fits = true;
  while (const auto piece = pieces.next()) {
    if (until.left.stop_requested()) return client_error(ErrorCode::Cancelled, "the client left");
    const std::size_t size = piece->text.size();
    // A long piece takes long to tokenize. It is skipped if even its least number of ids does not
    // fit.
    fits = size <= kPieceBytesMax || out.size() + tokenizer_.ids_min(*piece) <= until.tokens_max;
    if (!fits) break;
    (encode_piece(*piece, room_bytes, out) ? hit_bytes : miss_bytes) += size;
    fits = out.size() <= until.tokens_max;
    if (!fits) break;
  }
  hit_bytes_.add(static_cast<double>(hit_bytes));
  miss_bytes_.add(static_cast<double>(miss_bytes));
  return fits;
}

}  // namespace sightline::prepare
