// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/client/failure.h"

#include <gtest/gtest.h>

namespace sightline::client {
namespace {

TEST(Failure, SaysWhatAStatusObjectSays) {
  const Failure failure = failure_of(
      409, R"({"kind":"Status","status":"Failure","message":"Apply failed","reason":"Conflict",)"
           R"("code":409,"details":{"retryAfterSeconds":3,"causes":[)"
           R"({"reason":"FieldManagerConflict","message":"with x","field":".spec"}]}})");
  EXPECT_EQ(failure.reason, Reason::Conflict);
  EXPECT_EQ(failure.status, 409);
  EXPECT_EQ(failure.message, "Apply failed");
  EXPECT_TRUE(has_cause(failure, kFieldManagerConflict));
  EXPECT_FALSE(has_cause(failure, kNamespaceTerminating));
  EXPECT_EQ(failure.retry_after, std::chrono::seconds(3));
  const Error error = to_error(failure);
  EXPECT_TRUE(error.retryable);
  EXPECT_EQ(error.param, ".spec");
  EXPECT_EQ(error.message, "API server: Conflict: Apply failed");
}

TEST(Failure, ReasonsDistinguishEqualCodes) {
  struct Case {
    int code;
    std::string reason;
    Reason want;
  };
  for (const Case& row : std::vector<Case>{{409, "AlreadyExists", Reason::AlreadyExists},
                                           {409, "Conflict", Reason::Conflict},
                                           {410, "Gone", Reason::Expired},
                                           {410, "Expired", Reason::Expired},
                                           {500, "ServerTimeout", Reason::ServerTimeout},
                                           {504, "Timeout", Reason::Timeout},
                                           {422, "Invalid", Reason::Invalid},
                                           {404, "", Reason::NotFound},
                                           {401, "", Reason::Unauthorized},
                                           {503, "Unknown", Reason::ServiceUnavailable},
                                           {418, "Teapot", Reason::Unknown},
                                           {500, "Deadline", Reason::InternalError}}) {
    const auto status = object::Value::object(
        {{"kind", "Status"}, {"code", row.code}, {"reason", std::string(row.reason)}});
    EXPECT_EQ(failure_of(row.code, status.to_text()).reason, row.want) << row.reason;
  }
}

TEST(Failure, AnAnswerOfAnotherServerIsJudgedByItsCode) {
  const Failure failure = failure_of(503, "<html>\nbusy" + std::string(5000, 'x'));
  EXPECT_EQ(failure.reason, Reason::ServiceUnavailable);
  EXPECT_TRUE(failure.message.starts_with("status 503: <html> busyx"));
  EXPECT_LT(failure.message.size(), 300U);
}

TEST(Failure, ServersCannotMakeUsWaitForHours) {
  const auto failure =
      failure_of(429, R"({"kind":"Status","details":{"retryAfterSeconds":1000000}})");
  EXPECT_EQ(failure.reason, Reason::TooManyRequests);
  EXPECT_EQ(failure.retry_after, std::chrono::minutes(10));
}

TEST(Failure, EveryReasonHasAName) {
  for (int i = 0; i <= static_cast<int>(Reason::Misconfigured); ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_FALSE(name_of(reason).empty());
    Failure failure;
    failure.reason = reason;
    EXPECT_NE(to_error(failure).message.find(name_of(reason)), std::string::npos);
  }
}

}  // namespace
}  // namespace sightline::client
