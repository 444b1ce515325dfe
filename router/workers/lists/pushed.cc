// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/lists/pushed.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/json.h"

namespace sightline::lists {
namespace {

using contract::NamedField;
using contract::WorkerSpec;

// A worker has a dozen fields. A body with more values than these is no list.
constexpr std::size_t kValuesMax = kPushedWorkersMax * 32;
constexpr std::size_t kDepthMax = 8;

Error refused(std::string message, std::string param) {
  return client_error(ErrorCode::InvalidArgument, std::move(message), std::move(param));
}

// Unknown names are refused. Otherwise a misspelt field would look like an absent one.
Result<Done> check_members(const json::Value& object, const std::set<std::string_view>& known) {
  std::set<std::string_view> seen;
  for (const json::Value& member : object) {
    const std::string name(member.name());
    if (!known.contains(name)) return refused("unknown member " + json::to_quoted(name), name);
    // With two values for one name, it is not clear which one counts.
    if (!seen.insert(member.name()).second) {
      return refused("member " + json::to_quoted(name) + " occurs twice", name);
    }
  }
  return Done{};
}

// `--worker` takes texts, so numbers and flags become texts.
Result<std::string> field_text(const json::Value& value) {
  if (const auto text = value.string()) return std::string(*text);
  if (const auto number = value.integer()) return std::to_string(*number);
  if (const auto flag = value.boolean()) return std::string(*flag ? "true" : "false");
  return refused("must be a string, a whole number, true or false", {});
}

Result<WorkerSpec> read_worker(const json::Value& value) {
  if (!value.is(json::Kind::Object)) return refused("must be an object of a worker's fields", {});
  std::vector<NamedField> fields;
  for (const json::Value& member : value) {
    // A named refusal instead of "unknown member": the reader learns where the key belongs.
    if (member.name() == "api_key_file") {
      return refused(
          "api_key_file: a push must not name a file of this machine. Set it in the router's own "
          "configuration, at a worker with the same host and port",
          {});
    }
    auto text = field_text(member);
    if (!text.ok()) return with_context(text.error(), member.name());
    fields.push_back({std::string(member.name()), std::move(*text)});
  }
  return contract::worker_from_fields(fields);
}

Result<std::vector<WorkerSpec>> read_workers(const json::Value& list) {
  if (list.size() > kPushedWorkersMax) {
    return client_error(ErrorCode::TooLarge,
                        "workers: more than " + std::to_string(kPushedWorkersMax), "workers");
  }
  std::vector<WorkerSpec> workers;
  std::set<std::string> names;
  for (const json::Value& value : list) {
    const std::string place = "workers[" + std::to_string(workers.size()) + "]";
    auto worker = read_worker(value);
    if (!worker.ok()) {
      Error error = with_context(worker.error(), place);
      error.param = place;
      return error;
    }
    // Names identify workers everywhere. Two workers with one name would share state.
    if (!names.insert(worker->name).second) {
      return refused(place + ": another worker has the name " + worker->name, place);
    }
    workers.push_back(std::move(*worker));
  }
  return workers;
}

}  // namespace

Result<PushedWorkers> parse_pushed_workers(std::string body) {
  if (body.size() > kPushBytesMax) {
    return client_error(ErrorCode::TooLarge,
                        "the body has more than " + std::to_string(kPushBytesMax) + " bytes");
  }
  const auto document = SL_TRY(json::Document::parse(std::move(body), {kDepthMax, kValuesMax}));
  const json::Value root = document.root();
  if (!root.is(json::Kind::Object)) {
    return refused("the body must be a JSON object with revision, generation and workers", {});
  }
  SL_TRY(check_members(root, {"revision", "generation", "workers"}));
  const auto revision = root.find("revision");
  if (!revision || !revision->string() || revision->string()->empty() ||
      revision->string()->size() > kRevisionBytesMax) {
    return refused("revision: must be a string of 1 to 63 bytes", "revision");
  }
  const auto generation = root.find("generation");
  if (!generation || !generation->integer() || *generation->integer() < 1) {
    return refused("generation: must be a whole number of at least 1", "generation");
  }
  const auto workers = root.find("workers");
  if (!workers || !workers->is(json::Kind::Array)) {
    return refused("workers: must be an array, which may be empty", "workers");
  }
  auto read = SL_TRY(read_workers(*workers));
  return PushedWorkers{std::string(*revision->string()),
                       static_cast<std::uint64_t>(*generation->integer()), std::move(read)};
}

Difference difference(const std::vector<WorkerSpec>& before, const std::vector<WorkerSpec>& after) {
  std::map<std::string_view, const WorkerSpec*> left;
  for (const WorkerSpec& worker : before) left[worker.name] = &worker;
  Difference result;
  for (const WorkerSpec& worker : after) {
    const auto known = left.find(worker.name);
    if (known == left.end()) {
      result.added.push_back(worker.name);
      continue;
    }
    (*known->second == worker ? result.kept : result.changed).push_back(worker.name);
    left.erase(known);
  }
  for (const WorkerSpec& worker : before) {
    if (left.contains(worker.name)) result.removed.push_back(worker.name);
  }
  return result;
}

ListVerdict judge(std::string_view own_revision, const PushedWorkers* held,
                  const PushedWorkers& next) {
  // The revision is checked first: a generation of another revision means nothing here.
  if (next.revision != own_revision) return ListVerdict::OtherRevision;
  const std::uint64_t latest =
      held == nullptr ? kFirstGenerationMax : held->generation + kGenerationStepMax;
  if (next.generation > latest) return ListVerdict::TooFar;
  if (held == nullptr || next.generation > held->generation) return ListVerdict::TakeOver;
  if (next.generation < held->generation) return ListVerdict::Older;
  // Two lists with one generation are a mistake of the pusher. The router keeps the present one.
  return next.workers == held->workers ? ListVerdict::Same : ListVerdict::Forked;
}

}  // namespace sightline::lists
