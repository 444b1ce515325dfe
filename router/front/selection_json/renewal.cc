// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_json/renewal.h"

#include <limits>
#include <utility>

#include "common/base/json.h"

#include "router/front/leases/lease_book.h"
#include "router/front/selection_json/endings.h"
#include "router/front/selection_json/json_fields.h"

namespace sightline::selection_json {
namespace {

constexpr std::uint64_t kNumber32Max = std::numeric_limits<std::uint32_t>::max();

std::string name_members(std::uint64_t number, std::uint32_t attempt) {
  return R"("number":)" + std::to_string(number) + R"(,"attempt":)" + std::to_string(attempt);
}

std::string held_json(const OpenReservation& held) {
  std::string out = "{" + name_members(held.number, held.attempt);
  if (!held.is_booked) return out + "}";
  const selection::Adoption& work = held.work;
  out += R"(,"worker":)" + json::to_quoted(work.worker);
  if (work.rank) out += R"(,"rank":)" + std::to_string(*work.rank);
  return out + R"(,"prefill_tokens":)" + std::to_string(work.booking.prefill_tokens) +
         R"(,"blocks":)" + std::to_string(work.booking.blocks) + R"(,"block_size":)" +
         std::to_string(work.booking.block_size) + R"(,"decoding":)" +
         (work.is_decoding ? "true" : "false") + "}";
}

std::string needed_instance(Fields& fields) {
  std::string instance = fields.needed_text("instance", leases::kInstanceBytesMax);
  if (!leases::is_instance(instance)) {
    fields.refuse("instance", "must consist of letters, digits and the characters ._:-");
  }
  return instance;
}

Result<OpenReservation> read_held(json::Value value) {
  Fields fields(value, "open");
  OpenReservation held;
  held.number = fields.number("number", kNumberMax);
  held.attempt = static_cast<std::uint32_t>(fields.number("attempt", kNumber32Max));
  // An open question has no worker yet.
  held.is_booked = fields.find("worker").has_value();
  if (held.is_booked) {
    selection::Adoption& work = held.work;
    work.worker = fields.needed_text("worker", kNameBytesMax);
    if (fields.find("rank")) {
      work.rank = static_cast<std::uint32_t>(fields.number("rank", kNumber32Max));
    }
    work.booking.prefill_tokens = fields.number("prefill_tokens", kBookedMax, 0);
    work.booking.blocks = fields.number("blocks", kBookedMax, 0);
    work.booking.block_size =
        static_cast<std::uint32_t>(fields.number("block_size", kBlockSizeMax, 1));
    if (work.booking.block_size == 0) fields.refuse("block_size", "must not be 0");
    work.is_decoding = fields.flag("decoding", false);
  }
  SL_TRY(fields.check());
  return held;
}

Result<Note> read_note(json::Value value) {
  Fields fields(value, "notes");
  Note note;
  note.number = fields.number("number", kNumberMax);
  note.attempt = static_cast<std::uint32_t>(fields.number("attempt", kNumber32Max));
  SL_TRY(fields.check());
  if (const auto ending = fields.find("ending")) note.ending = SL_TRY(ending_in(*ending));
  return note;
}

}  // namespace

std::string write_renewal(const Renewal& renewal) {
  std::string out = R"({"instance":)" + json::to_quoted(renewal.instance) + R"(,"from":)" +
                    std::to_string(renewal.from) + R"(,"up_to":)" + std::to_string(renewal.up_to) +
                    R"(,"open":[)";
  for (const OpenReservation& held : renewal.open)
    out += (out.back() == '[' ? "" : ",") + held_json(held);
  return out + "]}";
}

Result<Renewal> read_renewal(std::string body, HeldBytes* memory) {
  const json::Document document = SL_TRY(parse_object(std::move(body), memory));
  Fields fields(document.root());
  Renewal renewal;
  renewal.instance = needed_instance(fields);
  renewal.from = fields.number("from", kNumberMax, 0);
  renewal.up_to = fields.number("up_to", kNumberMax);
  const auto open = fields.list("open", kHeldMax);
  if (!open) fields.refuse("open", "is missing");
  SL_TRY(fields.check());
  for (const json::Value value : *open) {
    OpenReservation held = SL_TRY(read_held(value));
    // The order makes sure that each number occurs once.
    const bool is_next = renewal.open.empty() || held.number > renewal.open.back().number;
    if (!is_next || held.number < renewal.from || held.number > renewal.up_to) {
      fields.refuse("open", "must have ascending numbers from `from` to `up_to`");
      SL_TRY(fields.check());
    }
    renewal.open.push_back(std::move(held));
  }
  return renewal;
}

std::string write_notes(const Notes& notes) {
  std::string out = R"({"instance":)" + json::to_quoted(notes.instance) + R"(,"notes":[)";
  for (const Note& note : notes.notes) {
    out += (out.back() == '[' ? "{" : ",{") + name_members(note.number, note.attempt);
    if (note.ending) out += R"(,"ending":)" + write_ending(*note.ending);
    out += "}";
  }
  out += R"(],"alive":[)";
  for (const std::string& worker : notes.alive) {
    out += (out.back() == '[' ? "" : ",") + json::to_quoted(worker);
  }
  return out + "]}";
}

Result<Notes> read_notes(std::string body, HeldBytes* memory) {
  const json::Document document = SL_TRY(parse_object(std::move(body), memory));
  Fields fields(document.root());
  Notes notes;
  notes.instance = needed_instance(fields);
  const auto list = fields.list("notes", kNotesMax);
  const auto alive = fields.list("alive", kAliveMax);
  SL_TRY(fields.check());
  if (list) {
    for (const json::Value value : *list) notes.notes.push_back(SL_TRY(read_note(value)));
  }
  if (alive) {
    for (const json::Value value : *alive) {
      const auto worker = value.string();
      if (!worker || worker->size() > kNameBytesMax) {
        fields.refuse("alive", "must be names");
        SL_TRY(fields.check());
      }
      notes.alive.emplace_back(*worker);
    }
  }
  return notes;
}

}  // namespace sightline::selection_json
