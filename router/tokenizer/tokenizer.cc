// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "common/base/bytes.h"

#include "router/tokenizer/merges.h"
#include "router/tokenizer/model_file.h"
#include "router/tokenizer/scanner.h"
#include "router/tokenizer/unicode.h"
#include "router/tokenizer/word_table.h"

namespace sightline::tokenizer {

namespace {

constexpr std::size_t kTextBytesMax = std::size_t{1} << 30U;
// Text is normalised and cut in pieces of about this size, so that one character that NFC changes
// costs a second pass over its piece only.
constexpr std::size_t kPieceBytes = 8 << 10U;
// Words between a prefetch and its use.
constexpr std::size_t kBatchWords = 128;

struct ThreadCache {
  std::uint64_t owner = 0;
  WordCache words;
};

// The calling thread's cache, empty if another tokenizer used it last. Owners count from 1.
WordCache& thread_cache(std::uint64_t owner) {
  thread_local std::unique_ptr<ThreadCache> cache;
  if (!cache || cache->owner != owner) {
    cache = std::make_unique<ThreadCache>();
    cache->owner = owner;
  }
  return cache->words;
}

std::uint64_t next_owner() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

struct Tokenizer::State {
  Vocabulary vocabulary;
  AddedTokens added_tokens;
  MergeTable merges;
  WordTable words;
  bool nfc;
  std::uint64_t owner;  // of thread caches

  // True if the piece may differ from its NFC form.
  bool encode_words(std::string_view piece, std::vector<TokenId>& out) const;
  // Text without added tokens.
  void encode_stretch(std::string_view text, std::vector<TokenId>& out) const;
};

namespace {

// Encodes batches of neighbouring words into out.
class BatchEncoder {
 public:
  BatchEncoder(const MergeTable& merges, const WordTable& table, WordCache& cache,
               std::vector<TokenId>& out)
      : merges_(merges), table_(table), cache_(cache), out_(out) {}

  // The words end at `ends`, the first begins at `begin`.
  void encode(std::string_view text, std::size_t begin, std::span<const std::uint32_t> ends) {
    std::size_t word_begin = begin;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::string_view word(text.data() + word_begin, ends[i] - word_begin);
      word_begin = ends[i];
      small_[i] = {};
      if (word.size() > SmallWord::kSizeMax) continue;
      small_[i] = SmallWord::of(word, text.data() + text.size());
      hashes_[i] = small_[i].hash();
      table_.prefetch(hashes_[i]);
    }
    word_begin = begin;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::string_view word(text.data() + word_begin, ends[i] - word_begin);
      word_begin = ends[i];
      const TokenId id =
          small_[i].high == 0 ? WordTable::kNone : table_.find(small_[i], hashes_[i]);
      if (id != WordTable::kNone) {
        ids_[size_++] = id;
      } else if (small_[i].high != 0) {
        add_small(word, small_[i], hashes_[i]);
      } else {
        add_large(word);
      }
    }
    flush();
  }

 private:
  void flush() {
    out_.insert(out_.end(), ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ = 0;
  }

  void add_small(std::string_view word, const SmallWord& small, std::uint64_t hash) {
    const std::size_t known = cache_.find_small(small, hash, ids_.data() + size_);
    size_ += known;
    if (known != 0) return;
    std::array<TokenId, MergeTable::kShortBytes> solved;
    const std::size_t count = merges_.encode_short(word, solved);
    cache_.insert_small(small, hash, {solved.data(), count});
    std::copy_n(solved.begin(), count, ids_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += count;
  }

  void add_large(std::string_view word) {
    const std::uint64_t hash = hash_of_word(word);
    const std::size_t known = cache_.find(word, hash, ids_.data() + size_);
    size_ += known;
    if (known != 0) return;
    flush();
    const std::size_t begin = out_.size();
    merges_.encode(word, out_);
    cache_.insert(word, hash, std::span(out_).subspan(begin));
  }

  const MergeTable& merges_;
  const WordTable& table_;
  WordCache& cache_;
  std::vector<TokenId>& out_;
  std::array<SmallWord, kBatchWords> small_;
  std::array<std::uint64_t, kBatchWords> hashes_;
  std::array<TokenId, kBatchWords * WordCache::kIdsMax> ids_;  // kIdsMax for each word of a batch
  std::size_t size_ = 0;
  static_assert(SmallWord::kSizeMax <= WordCache::kIdsMax);
};

}  // namespace

bool Tokenizer::State::encode_words(std::string_view piece, std::vector<TokenId>& out) const {
  Scanner scanner(piece);
  BatchEncoder encoder(merges, words, thread_cache(owner), out);
  std::array<std::uint32_t, kBatchWords> ends;
  std::size_t begin = 0;
  while (const std::size_t count = scanner.next(ends)) {
    encoder.encode(piece, begin, std::span(ends).first(count));
    begin = ends[count - 1];
  }
  return scanner.nfc_suspect();
}

void Tokenizer::State::encode_stretch(std::string_view text, std::vector<TokenId>& out) const {
  std::string normalized;
  while (!text.empty()) {
    const std::size_t size =
        text.size() <= kPieceBytes ? text.size() : next_safe_cut(text, kPieceBytes);
    const std::string_view piece = text.substr(0, size);
    const std::size_t out_size = out.size();
    if (encode_words(piece, out) && nfc && normalize_nfc(piece, normalized)) {
      out.resize(out_size);
      encode_words(normalized, out);
    }
    text.remove_prefix(size);
  }
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<const Tokenizer>> Tokenizer::create(std::string_view tokenizer_json) {
  ModelFile file = SL_TRY(parse_model_file(tokenizer_json));
  auto merges = MergeTable::create(file.vocabulary, file.merges);
  if (!merges) {
    return client_error(ErrorCode::InvalidArgument,
                        "tokenizer.json: /model/merges: a pair occurs twice");
  }
  char_table();
  WordTable words(file.vocabulary, *merges);
  auto state = std::make_unique<const State>(
      State{std::move(file.vocabulary), AddedTokens(std::move(file.added_tokens)),
            std::move(*merges), std::move(words), file.nfc, next_owner()});
  return std::unique_ptr<const Tokenizer>(std::make_unique<const Tokenizer>(std::move(state)));
}

Result<Done> Tokenizer::encode(std::string_view text, std::vector<TokenId>& out) const {
  if (text.size() > kTextBytesMax) {
    return client_error(ErrorCode::TooLarge, "the text to tokenize is larger than 1 GiB");
  }
  if (!is_utf8(text)) {
    return client_error(ErrorCode::InvalidArgument, "the text to tokenize is not valid UTF-8");
  }
  std::size_t at = 0;
  while (const auto match = state_->added_tokens.find(text, at)) {
    state_->encode_stretch(text.substr(at, match->begin - at), out);
    out.push_back(match->token->id);
    at = match->begin + match->token->content.size();
  }
  state_->encode_stretch(text.substr(at), out);
  return Done{};
}

std::optional<TokenId> Tokenizer::token_id(std::string_view content) const {
  return state_->vocabulary.find(content);
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += state_->vocabulary.content_of(id);
  return text;
}

std::size_t Tokenizer::vocabulary_size() const { return state_->vocabulary.ids_end(); }

}  // namespace sightline::tokenizer
