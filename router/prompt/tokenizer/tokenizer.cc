// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "common/base/bytes.h"

#include "router/prompt/tokenizer/merges.h"
#include "router/prompt/tokenizer/model_file.h"
#include "router/prompt/tokenizer/scanner.h"
#include "router/prompt/tokenizer/unicode.h"
#include "router/prompt/tokenizer/word_table.h"

namespace sightline::tokenizer {

namespace {

constexpr std::size_t kTextBytesMax = std::size_t{1} << 30U;
// The number of words between the prefetch of a table bucket and its use.
constexpr std::size_t kBatchWords = 128;

struct ThreadCache {
  std::uint64_t owner = 0;
  WordCache words;
};

// Returns the cache of the calling thread. It is empty if the thread used another tokenizer last.
// Owners count from 1.
WordCache& thread_cache(std::uint64_t owner) {
  thread_local std::unique_ptr<ThreadCache> cache;
  if (!cache || cache->owner != owner) {
    cache = std::make_unique<ThreadCache>();
    cache->owner = owner;
  }
  return cache->words;
}

// A number, and not an address, names the owner. A new tokenizer may have the address of an old
// one.
std::uint64_t next_owner() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// The least number of ids that one byte adds: 1 divided by the size of the longest token that
// contains it. A token of n bytes is one id, and its bytes add at most n times 1/n.
using IdShares = std::array<double, 256>;

IdShares id_shares(const Vocabulary& vocabulary) {
  IdShares shares;
  shares.fill(1);
  for (TokenId id = 0; id < vocabulary.ids_end(); ++id) {
    const std::string_view token = vocabulary.content_of(id);
    for (const char c : token) {
      double& share = shares[static_cast<std::uint8_t>(c)];
      share = std::min(share, 1.0 / static_cast<double>(token.size()));
    }
  }
  return shares;
}

// The tables that turn words into ids, all made from one model file.
struct WordModel {
  MergeTable merges;
  WordTable table;
  WordCuts cuts;
  // The owner number of the threads' caches.
  std::uint64_t owner;
};

// Encodes consecutive words of one text, and appends their ids to `out`.
class WordEncoder {
 public:
  WordEncoder(const WordModel& model, std::string_view text, std::vector<TokenId>& out)
      : model_(model), cache_(thread_cache(model.owner)), text_(text), out_(out) {}

  // Adds the word at `begin`. It has at least one byte.
  void add(std::size_t begin, std::size_t size) {
    Word& next = words_[size_];
    next.begin = static_cast<std::uint32_t>(begin);
    next.size = static_cast<std::uint32_t>(size);
    if (size <= SmallWord::kSizeMax) {
      next.small = SmallWord::of(text_.substr(begin, size), text_.data() + text_.size());
      next.hash = next.small.hash();
      model_.table.prefetch(next.hash);
    }
    if (++size_ == kBatchWords) solve();
  }

  // Appends the ids of all added words.
  void solve() {
    for (std::size_t i = 0; i < size_; ++i) {
      const Word& word = words_[i];
      if (word.size > SmallWord::kSizeMax) {
        add_large(text_.substr(word.begin, word.size));
        continue;
      }
      const TokenId id = model_.table.find(word.small, word.hash);
      if (id == WordTable::kNone) {
        add_small(word);
      } else {
        ids_[ids_size_++] = id;
      }
    }
    size_ = 0;
    flush();
  }

 private:
  struct Word {
    // Valid only for small words, as the hash is.
    SmallWord small;
    std::uint64_t hash;
    std::uint32_t begin;
    std::uint32_t size;
  };

  // Ids are collected first. One insertion per batch is cheaper than one per word.
  void flush() {
    out_.insert(out_.end(), ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(ids_size_));
    ids_size_ = 0;
  }

  void add_small(const Word& word) {
    const std::size_t known = cache_.find_small(word.small, word.hash, ids_.data() + ids_size_);
    ids_size_ += known;
    if (known != 0) return;
    std::array<TokenId, MergeTable::kShortBytes> solved;
    const std::size_t count =
        model_.merges.encode_short(text_.substr(word.begin, word.size), solved);
    cache_.insert_small(word.small, word.hash, {solved.data(), count});
    std::copy_n(solved.begin(), count, ids_.begin() + static_cast<std::ptrdiff_t>(ids_size_));
    ids_size_ += count;
  }

  void add_large(std::string_view word) {
    const std::uint64_t hash = hash_of_word(word);
    const std::size_t known = cache_.find(word, hash, ids_.data() + ids_size_);
    ids_size_ += known;
    if (known != 0) return;
    // MergeTable appends to out_, and so the collected ids must go there first.
    flush();
    const std::size_t begin = out_.size();
    model_.merges.encode(word, out_);
    cache_.insert(word, hash, std::span(out_).subspan(begin));
  }

  const WordModel& model_;
  WordCache& cache_;
  std::string_view text_;
  std::vector<TokenId>& out_;
  std::array<Word, kBatchWords> words_;
  std::size_t size_ = 0;
  // kIdsMax ids for each word.
  std::array<TokenId, kBatchWords * WordCache::kIdsMax> ids_;
  std::size_t ids_size_ = 0;
  static_assert(SmallWord::kSizeMax <= WordCache::kIdsMax);
};

// Returns whether a word may have a place to cut: it has several characters, and the last one has
// three bytes.
bool may_be_cut(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kThreeBytes = 3;
  return static_cast<std::int8_t>(text[end - 1]) < 0 && end - begin > 2 * kThreeBytes &&
         (static_cast<std::uint8_t>(text[end - kThreeBytes]) & 0xF0U) == 0xE0U;
}

// Appends the ids of a piece. Returns true if the piece may differ from its NFC form.
bool encode_words(const WordModel& model, std::string_view piece, std::vector<TokenId>& out) {
  Scanner scanner(piece);
  WordEncoder encoder(model, piece, out);
  std::array<std::uint32_t, kBatchWords> ends;
  std::size_t begin = 0;
  while (const std::size_t count = scanner.next(ends)) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t end = ends[i];
      // The parts of a long word without blanks occur again in other texts. The word cache then
      // finds them.
      while (may_be_cut(piece, begin, end)) {
        const std::size_t size = model.cuts.next(piece.substr(begin, end - begin));
        if (begin + size == end) break;
        encoder.add(begin, size);
        begin += size;
      }
      encoder.add(begin, end - begin);
      begin = end;
    }
  }
  encoder.solve();
  return scanner.nfc_suspect();
}

}  // namespace

struct Tokenizer::State {
  Vocabulary vocabulary;
  AddedTokens added_tokens;
  WordModel words;
  IdShares id_shares;
  bool nfc;
};

Pieces::Pieces(const AddedTokens& added_tokens, std::string_view text)
    : added_tokens_(&added_tokens), text_(text) {
  find_added();
}

void Pieces::find_added() {
  const auto match = added_tokens_->find(text_, at_);
  added_begin_ = match ? match->begin : text_.size();
  added_size_ = match ? match->token->content.size() : 0;
  added_id_ = match ? match->token->id : 0;
}

std::optional<Piece> Pieces::next() {
  if (at_ == text_.size()) return std::nullopt;
  // An added token is a piece of its own.
  if (at_ == added_begin_) {
    at_ += added_size_;
    const Piece added{text_.substr(added_begin_, added_size_), added_id_};
    find_added();
    return added;
  }
  const std::string_view stretch = text_.substr(at_, added_begin_ - at_);
  const std::size_t size =
      stretch.size() <= kBytes ? stretch.size() : next_safe_cut(stretch, kBytes);
  at_ += size;
  return Piece{stretch.substr(0, size), std::nullopt};
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
  // Builds the shared table, because the first request should not wait for it.
  char_table();
  WordTable table(file.vocabulary, *merges);
  WordCuts cuts(file.vocabulary, file.merges);
  const IdShares shares = id_shares(file.vocabulary);
  auto state = std::make_unique<const State>(
      State{std::move(file.vocabulary), AddedTokens(std::move(file.added_tokens)),
            WordModel{std::move(*merges), std::move(table), std::move(cuts), next_owner()}, shares,
            file.nfc});
  return std::unique_ptr<const Tokenizer>(std::make_unique<const Tokenizer>(std::move(state)));
}

Result<Pieces> Tokenizer::cut(std::string_view text) const {
  if (text.size() > kTextBytesMax) {
    return client_error(ErrorCode::TooLarge, "the text to tokenize is larger than 1 GiB");
  }
  if (!is_utf8(text)) {
    return client_error(ErrorCode::InvalidArgument, "the text to tokenize is not valid UTF-8");
  }
  return Pieces(state_->added_tokens, text);
}

void Tokenizer::encode_piece(const Piece& piece, std::vector<TokenId>& out) const {
  if (piece.added) {
    out.push_back(*piece.added);
    return;
  }
  const std::size_t size_before = out.size();
  std::string normalized;
  // Most texts are in NFC. The scanner notices it while it cuts, and so they need no separate pass.
  const bool is_suspect = encode_words(state_->words, piece.text, out);
  if (!is_suspect || !state_->nfc || !normalize_nfc(piece.text, normalized)) return;
  // Only this piece is encoded a second time.
  out.resize(size_before);
  encode_words(state_->words, normalized, out);
}

std::size_t Tokenizer::ids_min(const Piece& piece) const {
  if (piece.added) return 1;
  std::string normalized;
  // NFC may make the text shorter. The bound holds for the normalized text.
  const bool is_changed = state_->nfc && normalize_nfc(piece.text, normalized);
  std::array<std::size_t, 256> counts{};
  for (const char c : is_changed ? std::string_view(normalized) : piece.text) {
    ++counts[static_cast<std::uint8_t>(c)];
  }
  double ids = 0;
  for (std::size_t byte = 0; byte < counts.size(); ++byte) {
    ids += static_cast<double>(counts[byte]) * state_->id_shares[byte];
  }
  // The sum may be slightly too large because of rounding.
  constexpr double kRounding = 1 - 1e-9;
  return static_cast<std::size_t>(ids * kRounding);
}

Result<Done> Tokenizer::encode(std::string_view text, std::vector<TokenId>& out) const {
  Pieces pieces = SL_TRY(cut(text));
  while (const auto piece = pieces.next()) encode_piece(*piece, out);
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
