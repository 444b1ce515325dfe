// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/worker_routes.h"

#include <utility>

#include "common/base/bytes.h"
#include "common/base/json.h"

namespace sightline::push {

using admin_port::AdminResponse;
using lists::InForce;
using lists::ListVerdict;

namespace {

std::string names(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& name : list) {
    if (out.size() > 1) out += ',';
    json::append_quoted(out, name);
  }
  return out + "]";
}

std::string shown(const lists::Difference& difference) {
  return R"({"added":)" + names(difference.added) + R"(,"removed":)" + names(difference.removed) +
         R"(,"changed":)" + names(difference.changed) + R"(,"kept":)" +
         std::to_string(difference.kept.size()) + "}";
}

std::string why_refused(ListVerdict verdict, const InForce& held) {
  const std::string generation = std::to_string(held.generation());
  switch (verdict) {
    case ListVerdict::OtherRevision:
      return "the list has another revision than this router (--revision)";
    case ListVerdict::Older:
      return "this router has a list of a later generation: " + generation;
    case ListVerdict::Forked:
      return "this router has another list of generation " + generation +
             ". Push with a higher generation: all routers then apply it";
    case ListVerdict::TooFar:
      return "the generation is too high: this router has generation " + generation +
             ". A push may exceed it by at most " + std::to_string(lists::kGenerationStepMax) +
             ". The first list may have at most " + std::to_string(lists::kFirstGenerationMax);
    case ListVerdict::TakeOver:
    case ListVerdict::Same:
      break;
  }
  return {};
}

}  // namespace

std::string members_of(const InForce& now) {
  std::string out = R"("source":)" + json::to_quoted(lists::name_of(now.source));
  out += R"(,"revision":)" + (now.pushed ? json::to_quoted(now.pushed->list.revision) : "null");
  out += R"(,"generation":)" + (now.pushed ? std::to_string(now.generation()) : "null");
  out += R"(,"digest":)" + (now.pushed ? json::to_quoted(to_hex(now.pushed->digest)) : "null");
  return out + R"(,"count":)" + std::to_string(now.workers.size());
}

AdminResponse put_workers(WorkerLists& lists, const admin_port::AdminRequest& request) {
  const auto offered = lists.offer(request.body, lists::ListSource::Push);
  if (!offered.ok()) {
    const bool is_large = offered.error().code == ErrorCode::TooLarge;
    return admin_port::admin_error(is_large ? 413 : 400, offered.error().message);
  }
  // A repeated push of the present list is no error.
  const std::string why = why_refused(offered->verdict, *offered->in_force);
  const std::string held = members_of(*offered->in_force);
  if (!why.empty()) {
    return {409, R"({"error":{"message":)" + json::to_quoted(why) + R"(,"code":409},"held":{)" +
                     held + "}}"};
  }
  return {200, R"({"verdict":)" + json::to_quoted(name_of(offered->verdict)) + "," + held +
                   R"(,"difference":)" + shown(offered->difference) + "}"};
}

AdminResponse get_worker_list(const WorkerLists& lists) {
  const auto now = lists.in_force();
  return {200, "{" + members_of(*now) + R"(,"pushed":)" +
                   (now->pushed ? now->pushed->body : "null") + "}"};
}

}  // namespace sightline::push
