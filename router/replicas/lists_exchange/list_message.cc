// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/lists_exchange/list_message.h"

#include "router/replicas/frames/fields.h"

namespace sightline::lists_exchange {
namespace {

using frames::FieldReader;
using frames::FieldWriter;

void write(FieldWriter& out, const ListAsk& ask) {
  out.integer(ask.asker);
  out.integer(ask.nonce);
  out.integer(ask.of);
  out.integer(ask.generation);
  out.integer(ask.offset);
  out.integer(ask.number);
}

void write(FieldWriter& out, const ListReply& held) {
  out.integer(held.instance);
  out.integer(held.nonce);
  out.integer(held.generation);
  out.integer(held.digest);
  out.integer(held.bytes);
}

void write(FieldWriter& out, const ListChunk& part) {
  out.integer(part.instance);
  out.integer(part.nonce);
  out.integer(part.generation);
  out.integer(part.offset);
}

ListAsk read_ask(FieldReader& in) {
  ListAsk ask;
  ask.asker = in.integer<std::uint64_t>();
  ask.nonce = in.integer<std::uint64_t>();
  ask.of = in.integer<std::uint64_t>();
  ask.generation = in.integer<std::uint64_t>();
  ask.offset = in.integer<std::uint32_t>();
  ask.number = in.integer<std::uint64_t>();
  return ask;
}

ListReply read_held(FieldReader& in) {
  ListReply held;
  held.instance = in.integer<std::uint64_t>();
  held.nonce = in.integer<std::uint64_t>();
  held.generation = in.integer<std::uint64_t>();
  held.digest = in.integer<std::uint64_t>();
  held.bytes = in.integer<std::uint32_t>();
  return held;
}

// The bytes of a part are the rest of the message.
ListChunk read_part(FieldReader& in, std::string_view bytes) {
  ListChunk part;
  part.instance = in.integer<std::uint64_t>();
  part.nonce = in.integer<std::uint64_t>();
  part.generation = in.integer<std::uint64_t>();
  part.offset = in.integer<std::uint32_t>();
  part.bytes = bytes;
  // An empty part would make the reader ask for the same part forever.
  if (bytes.empty() || bytes.size() > kPartBytesMax) in.fail();
  return part;
}

}  // namespace

std::string encode(const Message& message) {
  FieldWriter out;
  out.integer(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& body) { write(out, body); }, message);
  std::string bytes = out.take();
  // The bytes of a part come last, without a length.
  if (const auto* part = std::get_if<ListChunk>(&message)) bytes += part->bytes;
  return bytes;
}

Result<Message> decode(std::string_view bytes) {
  // A part's bytes are not fields, so the reader must see its head alone.
  const bool is_part = !bytes.empty() && bytes[0] == 2;
  const std::string_view head = is_part ? bytes.substr(0, kPartHeadBytes) : bytes;
  FieldReader in(head);
  Message message;
  switch (in.one_of(2)) {
    case 0:
      message = read_ask(in);
      break;
    case 1:
      message = read_held(in);
      break;
    default:
      message = read_part(in, bytes.substr(head.size()));
  }
  if (!in.is_whole()) {
    return worker_error(ErrorCode::Corrupt, "a worker list message is malformed", false);
  }
  return message;
}

}  // namespace sightline::lists_exchange
