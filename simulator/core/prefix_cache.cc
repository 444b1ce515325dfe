// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/check.h"

#include "simulator/core/sha256.h"

namespace sightline::core {
namespace {

// The share of all blocks for which the second group has room.
constexpr std::uint32_t kWindowShare = 16;

void append_le64(Bytes& out, std::uint64_t value) {
  const std::size_t at = out.size();
  out.resize(at + 8);
  store_le64(out.data() + at, value);
}

void append_text(Bytes& out, std::string_view text) {
  append_le64(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

// Every variable part has its length or count. Otherwise two different blocks could have the same
// input.
BlockHash hash_block(const BlockHash* parent, std::span<const TokenId> tokens,
                     const ExtraKeys& keys) {
  Bytes input;
  input.reserve(64 + tokens.size() * 8);
  if (parent != nullptr) input.insert(input.end(), parent->begin(), parent->end());
  append_le64(input, tokens.size());
  for (const TokenId token : tokens) append_le64(input, token);
  append_le64(input, keys.lora_name ? 1 : 0);
  if (keys.lora_name) append_text(input, *keys.lora_name);
  append_le64(input, keys.media.size());
  for (const MediaKey& media : keys.media) {
    append_text(input, media.identifier);
    append_le64(input, static_cast<std::uint64_t>(media.offset));
  }
  if (keys.cache_salt) append_text(input, *keys.cache_salt);
  return sha256(input);
}

}  // namespace

std::uint64_t event_integer(const BlockHash& hash) { return load_be64(hash.data() + 24); }

ExtraKeys extra_keys_of(const SequenceKeys& keys, std::size_t begin, std::uint32_t block_size) {
  ExtraKeys extra;
  if (keys.lora) extra.lora_name = keys.lora->name;
  for (const MediaRange& media : keys.media) {
    if (media.offset >= begin + block_size) break;
    if (media.offset + media.length <= begin) continue;
    const auto offset = static_cast<std::int64_t>(media.offset) - static_cast<std::int64_t>(begin);
    extra.media.push_back({media.identifier, offset});
  }
  if (begin == 0) extra.cache_salt = keys.cache_salt;
  return extra;
}

PrefixCache::PrefixCache(const Options& options)
    : options_(options),
      window_(options.window_blocks, options.blocks / kWindowShare),
      pool_(options.blocks) {
  SL_CHECK(options.block_size > 0 && options.blocks >= 2);
  for (std::uint32_t block = 1; block < pool_.size(); ++block) link_before(block, 0);
}

void PrefixCache::link_before(std::uint32_t block, std::uint32_t position) {
  const std::uint32_t previous = pool_[position].previous;
  pool_[block].previous = previous;
  pool_[block].next = position;
  pool_[previous].next = block;
  pool_[position].previous = block;
  ++free_count_;
}

void PrefixCache::unlink(std::uint32_t block) {
  pool_[pool_[block].previous].next = pool_[block].next;
  pool_[pool_[block].next].previous = pool_[block].previous;
  --free_count_;
}

void PrefixCache::extend_hashes(Sequence& sequence, std::size_t blocks) const {
  const std::size_t size = options_.block_size;
  while (sequence.hashes_.size() < blocks) {
    const std::size_t begin = sequence.hashes_.size() * size;
    SL_CHECK(begin + size <= sequence.tokens_.size());
    const BlockHash* parent = begin == 0 ? nullptr : &sequence.hashes_.back();
    const auto keys = extra_keys_of(sequence.keys_, begin, options_.block_size);
    const auto hash = hash_block(parent, std::span(sequence.tokens_).subspan(begin, size), keys);
    sequence.hashes_.push_back(hash);
  }
}

std::vector<std::uint32_t> PrefixCache::find_hits(Sequence& sequence) const {
  std::vector<std::uint32_t> hits;
  // One token is left to compute even if all are cached. Its computation gives the first output
  // token.
  const std::size_t hits_max = (sequence.tokens_.size() - 1) / options_.block_size;
  while (hits.size() < hits_max) {
    extend_hashes(sequence, hits.size() + 1);
    const auto found = table_.find(sequence.hashes_[hits.size()]);
    if (found == table_.end()) break;
    hits.push_back(found->second.blocks.front());
  }
  hits.resize(window_.longest_hit(std::span(sequence.hashes_).first(hits.size())));
  if (options_.drop_last_hit && !hits.empty()) hits.pop_back();
  return hits;
}

std::size_t PrefixCache::match(Sequence& sequence) const {
  return find_hits(sequence).size() * options_.block_size;
}

bool PrefixCache::grow(Sequence& sequence, std::size_t tokens_total, bool report_reused) {
  const bool first = !sequence.holds_blocks();
  const auto hits = first ? find_hits(sequence) : std::vector<std::uint32_t>{};
  const std::size_t held = first ? hits.size() : sequence.blocks_.size();
  const std::size_t wanted = (tokens_total + options_.block_size - 1) / options_.block_size;
  const std::size_t missing = wanted > held ? wanted - held : 0;
  // A block of a hit without holders is in the free list, and leaves it.
  const auto idle_hits = static_cast<std::size_t>(std::count_if(
      hits.begin(), hits.end(), [this](auto block) { return pool_[block].holders == 0; }));
  if (missing + idle_hits > free_count_) return false;

  take_hits(sequence, hits);
  // The reused blocks come first, because the new blocks name the last of them as their parent.
  if (report_reused && !hits.empty()) announce(sequence, 0, hits.size());
  for (std::size_t i = 0; i < missing; ++i) sequence.blocks_.push_back(pop_free());
  cache_whole_blocks(sequence, tokens_total);
  return true;
}

void PrefixCache::take_hits(Sequence& sequence, const std::vector<std::uint32_t>& hits) {
  for (const std::uint32_t block : hits) {
    if (pool_[block].holders++ == 0) unlink(block);
    sequence.blocks_.push_back(block);
  }
  if (!hits.empty()) sequence.cached_blocks_ = hits.size();
}

std::uint32_t PrefixCache::pop_free() {
  const std::uint32_t block = pool_[0].next;
  SL_CHECK(block != 0);
  unlink(block);
  pool_[block].holders = 1;
  if (!pool_[block].hash) return block;

  const BlockHash hash = *pool_[block].hash;
  pool_[block].hash.reset();
  const auto entry = table_.find(hash);
  SL_CHECK(entry != table_.end());
  // Other copies of the block continue to serve hits. Each copy has its own event.
  std::erase(entry->second.blocks, block);
  if (entry->second.blocks.empty()) table_.erase(entry);
  events_.emplace_back(BlockRemoved{hash});
  return block;
}

void PrefixCache::enter(const Sequence& sequence, std::size_t position) {
  const std::uint32_t block = sequence.blocks_[position];
  const BlockHash& hash = sequence.hashes_[position];
  pool_[block].hash = hash;
  const auto [entry, is_new] = table_.try_emplace(hash);
  entry->second.blocks.push_back(block);
  if (!is_new) return;
  const std::size_t begin = position * options_.block_size;
  const auto token = sequence.tokens_.begin() + static_cast<std::ptrdiff_t>(begin);
  Content& content = entry->second.content;
  if (position > 0) content.parent = sequence.hashes_[position - 1];
  content.tokens.assign(token, token + options_.block_size);
  content.extra_keys = extra_keys_of(sequence.keys_, begin, options_.block_size);
}

void PrefixCache::cache_whole_blocks(Sequence& sequence, std::size_t tokens_total) {
  const std::size_t tokens = std::min(tokens_total, sequence.tokens_.size());
  const std::size_t whole = tokens / options_.block_size;
  const std::size_t first = sequence.cached_blocks_;
  if (whole <= first) return;
  extend_hashes(sequence, whole);
  for (std::size_t i = first; i < whole; ++i) enter(sequence, i);
  sequence.cached_blocks_ = whole;
  announce(sequence, first, whole);
  keep_window(sequence, first, whole);
}

void PrefixCache::keep_window(const Sequence& sequence, std::size_t first, std::size_t last) {
  if (options_.window_blocks == 0) return;
  // The event of the other group, which was added just before.
  auto stored = std::get<BlockStored>(events_.back());
  stored.group = CacheGroup::SlidingWindow;
  events_.emplace_back(std::move(stored));
  const auto blocks = std::span(sequence.hashes_).subspan(first, last - first);
  for (const BlockHash& gone : window_.keep(blocks)) {
    events_.emplace_back(BlockRemoved{gone, CacheGroup::SlidingWindow});
  }
}

void PrefixCache::announce(const Sequence& sequence, std::size_t first, std::size_t last) {
  const std::size_t size = options_.block_size;
  BlockStored stored;
  stored.block_size = options_.block_size;
  stored.lora = sequence.keys_.lora;
  stored.session_id = sequence.keys_.session_id;
  // Without a parent the first block is at the root, which is the start of the prompt.
  if (first > 0) stored.parent = sequence.hashes_[first - 1];
  const auto hash = sequence.hashes_.begin();
  stored.hashes.assign(hash + static_cast<std::ptrdiff_t>(first),
                       hash + static_cast<std::ptrdiff_t>(last));
  const auto token = sequence.tokens_.begin();
  stored.tokens.assign(token + static_cast<std::ptrdiff_t>(first * size),
                       token + static_cast<std::ptrdiff_t>(last * size));
  for (std::size_t i = first; i < last; ++i) {
    stored.extra_keys.push_back(extra_keys_of(sequence.keys_, i * size, options_.block_size));
  }
  events_.emplace_back(std::move(stored));
}

void PrefixCache::release(Sequence& sequence) {
  // The last block comes first, because other prompts most probably share the beginning. Blocks
  // without content go to the front. They are used before content is lost.
  for (auto held = sequence.blocks_.rbegin(); held != sequence.blocks_.rend(); ++held) {
    Block& block = pool_[*held];
    SL_CHECK(block.holders > 0);
    if (--block.holders == 0) link_before(*held, block.hash ? 0 : pool_[0].next);
  }
  sequence.blocks_.clear();
  sequence.cached_blocks_ = 0;
}

bool PrefixCache::forget() {
  // A sequence that holds blocks also relies on their entries in table_.
  if (free_count_ != blocks_usable()) return false;
  table_.clear();
  window_.clear();
  for (Block& block : pool_) block.hash.reset();
  return true;
}

bool PrefixCache::reset() {
  if (!forget()) return false;
  events_.emplace_back(AllBlocksCleared{});
  return true;
}

std::vector<KvEvent> PrefixCache::take_events() { return std::exchange(events_, {}); }

std::vector<PrefixCache::Cached> PrefixCache::cached() const {
  std::vector<Cached> all;
  all.reserve(table_.size());
  for (const auto& [hash, entry] : table_) {
    all.push_back({hash, static_cast<std::uint32_t>(entry.blocks.size()), &entry.content});
  }
  return all;
}

}  // namespace sightline::core
