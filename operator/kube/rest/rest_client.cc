// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/rest/rest_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/contract/controller_metrics.h"

#include "operator/kube/object/metadata.h"
#include "operator/kube/rest/rest_watch.h"

namespace sightline::rest {

using client::Answer;
using client::Failure;
using client::List;
using client::Reason;
using object::Key;
using object::percent_encoded;
using object::Resource;
using object::Value;

namespace {

constexpr std::string_view kAccept = "Accept";
constexpr std::string_view kJson = "application/json";
// Accepts only metadata: without the right to read the rest, or to keep it out of memory.
constexpr std::string_view kMetadata =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
constexpr std::string_view kMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
// The wait after a broken connection, for which the server gave no time.
constexpr std::chrono::seconds kBrokenWait{1};

Failure failure(Reason reason, std::string message) {
  Failure made;
  made.reason = reason;
  made.message = std::move(message);
  return made;
}

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

bool is_read(const std::string& method) { return method == "GET"; }

// A query, built step by step: "?a=b&c=d". Leaves out empty values.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += percent_encoded(value);
    return *this;
  }
  Query& add(const client::Selection& of) {
    return add("labelSelector", of.labels).add("fieldSelector", of.fields);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

HttpRequest request_of(std::string method, std::string target) {
  return {.method = std::move(method),
          .target = std::move(target),
          .headers = {},
          .content_type = {},
          .body = {}};
}

HttpRequest with_body(HttpRequest request, const Value& body, std::string_view type = kJson) {
  request.body = body.to_text();
  request.content_type = type;
  return request;
}

// The meaning of an answer without success. Unknown: the server may have carried the request
// out.
Failure refusal_of(const HttpAnswer& answer, bool is_write) {
  Failure refused = client::failure_of(answer.status, answer.body);
  if (answer.retry_after) refused.retry_after = answer.retry_after;
  // A server or proxy may have failed after the write was done.
  const bool is_doubtful = answer.status == 500 || answer.status == 502 || answer.status == 504;
  refused.is_outcome_unknown = is_write && is_doubtful;
  return refused;
}

std::string_view name_of(client::Propagation propagation) {
  if (propagation == client::Propagation::Foreground) return "Foreground";
  return propagation == client::Propagation::Orphan ? "Orphan" : "Background";
}

Failure malformed(bool is_write, std::string message) {
  // The write may have been done, although its answer is unusable.
  Failure made = failure(Reason::Malformed, std::move(message));
  made.is_outcome_unknown = is_write;
  return made;
}

}  // namespace

std::function<bool(Duration)> stoppable_pause(std::stop_token stop) {
  return [stop = std::move(stop)](Duration wait) {
    Mutex mutex;
    StopCondVar never;
    const MutexLock lock(mutex);
    never.wait_until(mutex, stop, system_clock().now() + wait, []() { return false; });
    return !stop.stop_requested();
  };
}

std::optional<Duration> retry_wait(const std::string& method, const Answer<HttpAnswer>& answer) {
  if (!answer.ok()) {
    // A broken GET has no effect on the server, so it may be repeated. A write may have been done
    // already.
    if (failed(answer, Reason::Unreachable) && is_read(method)) return kBrokenWait;
    return std::nullopt;
  }
  // Without Retry-After the server does not ask for a retry.
  const bool is_asked_for = answer->status == 429 || answer->status >= 500;
  return is_asked_for ? answer->retry_after : std::nullopt;
}

RestClient::RestClient(RestOptions options, Transport& transport, const Clock& clock,
                       runtime::Metrics& metrics)
    : options_(std::move(options)), transport_(transport), clock_(clock), metrics_(metrics) {
  if (!options_.requests_per_second) return;
  const MutexLock lock(mutex_);
  bucket_.emplace(*options_.requests_per_second, options_.requests_burst);
}

Answer<Done> RestClient::admit(const std::string& method) {
  Duration wait{};
  {
    const MutexLock lock(mutex_);
    if (bucket_) wait = bucket_->take(clock_.now());
  }
  metrics_.histogram(contract::kRestLimiterSeconds, {method, options_.host})
      .observe(seconds_of(wait));
  if (wait > Duration::zero() && options_.pause && !options_.pause(wait)) {
    return failure(Reason::Cancelled, "the process stops");
  }
  // After all waiting, because the leadership may have ended meanwhile.
  if (!is_read(method) && options_.may_write && !options_.may_write()) {
    return failure(Reason::NotLeading, "this process is not the leader: nothing was written");
  }
  return Done{};
}

void RestClient::add_headers(HttpRequest& request) const {
  const bool is_named = std::any_of(request.headers.begin(), request.headers.end(),
                                    [](const auto& header) { return header.first == kAccept; });
  if (!is_named) request.headers.emplace_back(kAccept, kJson);
  request.headers.emplace_back("User-Agent", options_.user_agent);
}

void RestClient::count(const HttpRequest& request, const Answer<HttpAnswer>& answer,
                       Duration took) {
  const std::string& method = request.method;
  const std::string& host = options_.host;
  const std::string code = answer.ok() ? std::to_string(answer->status) : "<error>";
  metrics_.counter(contract::kRestRequestsTotal, {code, method, host}).add();
  metrics_.histogram(contract::kRestRequestSeconds, {method, host}).observe(seconds_of(took));
  metrics_.histogram(contract::kRestRequestBytes, {method, host})
      .observe(static_cast<double>(request.body.size()));
  if (!answer.ok()) return;
  metrics_.histogram(contract::kRestResponseBytes, {method, host})
      .observe(static_cast<double>(answer->body.size()));
}

Answer<HttpAnswer> RestClient::send(HttpRequest request) {
  add_headers(request);
  const bool is_write = !is_read(request.method);
  for (int retries = 0;; ++retries) {
    // For each attempt, because each one costs the server.
    SL_TRY(admit(request.method));
    const Instant start = clock_.now();
    auto answer = transport_.exchange(request, options_.call_timeout);
    count(request, answer, clock_.now() - start);
    const auto wait = retry_wait(request.method, answer);
    // A longer wait would block the thread. The caller has other work meanwhile.
    if (wait && *wait <= options_.retry_wait_max && retries < options_.retries_max) {
      const std::string code = answer.ok() ? std::to_string(answer->status) : "<error>";
      metrics_.counter(contract::kRestRetriesTotal, {code, request.method, options_.host}).add();
      if (options_.pause && !options_.pause(*wait)) {
        return failure(Reason::Cancelled, "the process stops");
      }
      continue;
    }
    if (!answer.ok()) {
      Failure failed = std::move(answer).error();
      failed.is_outcome_unknown = failed.is_outcome_unknown && is_write;
      return failed;
    }
    const bool is_success = answer->status >= 200 && answer->status < 300;
    if (!is_success) return refusal_of(*answer, is_write);
    return answer;
  }
}

Answer<Value> RestClient::send_for_object(HttpRequest request) {
  const bool is_write = !is_read(request.method);
  HttpAnswer answer = SL_TRY(send(std::move(request)));
  auto object = Value::parse(std::move(answer.body));
  if (!object.ok() && object.error().code == ErrorCode::TooLarge) {
    return failure(Reason::LimitExceeded, "the answer has too many values");
  }
  if (!object.ok() || !object->is_object()) {
    return malformed(is_write, "the answer is not a JSON object");
  }
  return std::move(*object);
}

Answer<Value> RestClient::get(const Resource& resource, const Key& key) {
  return send_for_object(request_of("GET", path_of(resource, key)));
}

Answer<List> RestClient::list(const Resource& resource, const client::ListOptions& options) {
  Query query;
  query.add(options.of)
      .add("resourceVersion", options.resource_version)
      .add("limit", options.limit == 0 ? "" : std::to_string(options.limit))
      .add("continue", options.continue_from);
  HttpRequest request =
      request_of("GET", object::collection_path_of(resource, options.of.name_space) + query.text());
  if (options.of.is_metadata_alone) request.headers.emplace_back(kAccept, kMetadataList);
  Value answer = SL_TRY(send_for_object(std::move(request)));
  if (!answer["items"].is_array() && !answer["items"].is_null()) {
    return malformed(false, "the answer is not a list");
  }
  List list;
  list.resource_version = object::resource_version_of(answer);
  list.continue_from = answer.at({"metadata", "continue"}).text();
  list.items = std::move(answer).take_items("items");
  // Items of a list lack kind and apiVersion, which readers of the cache need.
  for (Value& item : list.items) object::name_kind(item, resource);
  return list;
}

Answer<std::unique_ptr<client::Watch>> RestClient::watch(const Resource& resource,
                                                         const client::WatchOptions& options) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count();
  Query query;
  query.add("watch", "true")
      .add("allowWatchBookmarks", "true")
      .add(options.of)
      .add("resourceVersion", options.resource_version)
      .add("timeoutSeconds", std::to_string(seconds));
  HttpRequest request =
      request_of("GET", object::collection_path_of(resource, options.of.name_space) + query.text());
  if (options.of.is_metadata_alone) request.headers.emplace_back(kAccept, kMetadata);
  add_headers(request);
  SL_TRY(admit(request.method));
  const Instant start = clock_.now();
  auto opened = transport_.open(request, options_.call_timeout);
  count(request,
        opened.ok() ? Answer<HttpAnswer>(opened->answer) : Answer<HttpAnswer>(opened.error()),
        clock_.now() - start);
  if (!opened.ok()) {
    Failure failed = std::move(opened).error();
    // A read changes nothing on the server.
    failed.is_outcome_unknown = false;
    return failed;
  }
  if (opened->stream == nullptr) return refusal_of(opened->answer, false);
  return std::unique_ptr<client::Watch>(
      std::make_unique<RestWatch>(std::move(opened->stream), options_.line_bytes_max));
}

Answer<Value> RestClient::create(const Resource& resource, const Value& object) {
  const Key key = object::key_of(object);
  return send_for_object(
      with_body(request_of("POST", object::collection_path_of(resource, key.name_space)), object));
}

Answer<Value> RestClient::update(const Resource& resource, const Value& object) {
  return send_for_object(
      with_body(request_of("PUT", path_of(resource, object::key_of(object))), object));
}

Answer<Value> RestClient::apply(const Resource& resource, const Value& object,
                                const client::ApplyOptions& options) {
  Query query;
  query.add("fieldManager", options.manager).add("force", options.is_forced ? "true" : "");
  std::string target = path_of(resource, object::key_of(object), options.subresource);
  return send_for_object(
      with_body(request_of("PATCH", std::move(target) + query.text()), object, kApplyPatch));
}

Answer<Value> RestClient::merge_patch(const Resource& resource, const Key& key, const Value& patch,
                                      const std::string& subresource) {
  return send_for_object(
      with_body(request_of("PATCH", path_of(resource, key, subresource)), patch, kMergePatch));
}

Answer<Done> RestClient::remove(const Resource& resource, const Key& key,
                                const client::DeleteOptions& options) {
  auto body = Value::object({{"apiVersion", "v1"},
                             {"kind", "DeleteOptions"},
                             {"propagationPolicy", name_of(options.propagation)}});
  // Without preconditions a new object of the same name would be deleted.
  if (!options.uid.empty()) body.set({"preconditions", "uid"}, options.uid);
  if (!options.resource_version.empty()) {
    body.set({"preconditions", "resourceVersion"}, options.resource_version);
  }
  SL_TRY(send(with_body(request_of("DELETE", path_of(resource, key)), body)));
  return Done{};
}

}  // namespace sightline::rest
