// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection/local_selector.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/io_pool.h"

#include "router/cache/index/exact_index.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/run_task.h"
#include "tests/support/selector_apart.h"
#include "tests/support/told_fleet.h"

namespace sightline::selection {
namespace {

using keys::BlockKey;
using Kind = Ending::Kind;

constexpr std::uint32_t kBlockSize = test::ToldFleet::kBlockSize;

// Has a fleet that gets plain values, an index, and a list of the answers that went to the audit.
// The parameter says whether the test calls the selector itself or over the API of another process.
class LocalSelection : public testing::TestWithParam<bool> {
 protected:
  LocalSelection() { set_policy(contract::Policy::Kv); }

  void set_policy(contract::Policy policy) {
    contract::ServeSettings wanted;
    wanted.routing.policy = policy;
    wanted.routing.seed = 1;
    settings.publish(std::make_shared<const contract::ServeSettings>(wanted));
  }

  void add_worker(const std::string& name, const std::string& more = "",
                  std::vector<fleet::ServedModel> models = {}) {
    workers.add(name, more, std::move(models));
  }
  [[nodiscard]] CacheId cache(const std::string& worker) const { return workers.caches.at(worker); }
  void hold(const std::string& worker, std::size_t blocks) {
    index.store(cache(worker), operations::Tier::Gpu, std::span(*keys).first(blocks));
  }
  [[nodiscard]] Inquiry inquiry(std::uint64_t tokens = 160) const {
    Inquiry asked;
    asked.keys = keys;
    asked.job = {.prompt_tokens = tokens, .block_size = kBlockSize};
    asked.first_prompt_tokens = tokens;
    asked.is_exact = true;
    return asked;
  }

  Selector& selector() {
    if (apart) return *apart;
    return local;
  }
  Result<Selection> select(const Inquiry& asked) {
    Result<Selection> result = Error{};
    fakes::run_task(pool, [&]() -> Task<void> {
      auto selected = co_await selector().select(asked);
      result = std::move(selected);
    });
    return result;
  }
  Result<Explanation> explained(const Inquiry& asked) {
    Result<Explanation> result = Error{};
    fakes::run_task(pool, [&]() -> Task<void> {
      auto explanation = co_await selector().explain(asked);
      result = std::move(explanation);
    });
    return result;
  }
  // Selects for an inquiry that must succeed.
  Selection chosen(const Inquiry& asked) {
    auto result = select(asked);
    EXPECT_TRUE(result.ok());
    return result.ok() ? *result : Selection{};
  }
  [[nodiscard]] fleet::Load load(const std::string& worker) const { return workers.load(worker); }
  static Ending answered(std::uint64_t prompt_tokens, std::uint64_t cached_tokens) {
    return {.kind = Kind::Answered,
            .status = 200,
            .usage = openai::Usage{.prompt_tokens = prompt_tokens, .cached_tokens = cached_tokens},
            .request_id = "r"};
  }

  IoPool pool{{.io_threads = 1, .compute_threads = 0}};
  test::ManualClock clock;
  runtime::Metrics metrics;
  test::ToldFleet workers{metrics, clock};
  fleet::Fleet& fleet = workers.fleet;
  index::ExactIndex index;
  index::RemovalJournal removals;
  Published<contract::ServeSettings> settings{std::make_shared<const contract::ServeSettings>()};
  struct Compared {
    std::string worker;
    std::uint64_t predicted;
    std::optional<std::uint64_t> actual;
    bool same_prompt;
    std::size_t blocks;
    std::uint64_t best;
    std::uint64_t predicted_image;
    std::uint64_t prompt_tokens;
  };
  std::vector<Compared> compared;
  LocalSelector local{{.settings = settings,
                       .fleet = fleet,
                       .index = index,
                       .removals = removals,
                       .compare =
                           [this](const audit::Answered& a) {
                             compared.push_back({std::string(a.worker), a.predicted, a.actual,
                                                 a.same_prompt, a.blocks.size(), a.best,
                                                 a.predicted_image, a.prompt_tokens});
                           },
                       .metrics = metrics,
                       .clock = clock}};
  const std::unique_ptr<test::SelectorApart> apart =
      GetParam() ? std::make_unique<test::SelectorApart>(local) : nullptr;
  const std::shared_ptr<const std::vector<BlockKey>> keys =
      std::make_shared<const std::vector<BlockKey>>(
          std::vector<BlockKey>{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}});
};

INSTANTIATE_TEST_SUITE_P(Ways, LocalSelection, testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "Apart" : "Here");
});

TEST_P(LocalSelection, ChoosesTheWorkerThatHoldsMostBlocks) {
  add_worker("a");
  add_worker("b");
  hold("b", 6);
  const Selection selection = chosen(inquiry());
  EXPECT_EQ(selection.worker, "b");
  EXPECT_EQ(selection.host, "b");
  EXPECT_EQ(selection.port, 8000);
  EXPECT_EQ(selection.overlap_blocks, 6U);
  EXPECT_EQ(selection.prompt_blocks, 10U);
  EXPECT_EQ(selection.block_size, kBlockSize);
  EXPECT_EQ(selection.rank, std::nullopt);
  EXPECT_GT(selection.score.cost.overlap_credit_blocks, 0);
}

TEST_P(LocalSelection, DoesNotCountTheBlockOfTheLastToken) {
  add_worker("a");
  hold("a", 10);
  EXPECT_EQ(chosen(inquiry(160)).overlap_blocks, 9U);
  EXPECT_EQ(chosen(inquiry(161)).overlap_blocks, 10U);
}

TEST_P(LocalSelection, BooksSelectionUntilItEnds) {
  add_worker("a");
  hold("a", 4);
  const Selection selection = chosen(inquiry());
  EXPECT_EQ(load("a").in_flight, 1U);
  EXPECT_EQ(load("a").prefill_tokens, 160U - 64U);
  selector().first_token(selection.reservation);
  EXPECT_EQ(load("a").prefill_tokens, 0U);
  EXPECT_EQ(load("a").blocks, 6U);
  selector().end(selection.reservation, {});
  EXPECT_EQ(load("a").in_flight, 0U);
  EXPECT_EQ(load("a").blocks, 0U);
}

TEST_P(LocalSelection, EndsEachReservationOnce) {
  add_worker("a");
  const auto first = chosen(inquiry()).reservation;
  const auto second = chosen(inquiry()).reservation;
  EXPECT_NE(first, second);
  selector().end(first, {});
  selector().end(first, {});
  selector().first_token(first);
  selector().end(12345, {});
  EXPECT_EQ(load("a").in_flight, 1U);
  EXPECT_EQ(local.open_reservations(), 1U);
  selector().end(second, {});
  EXPECT_EQ(load("a").in_flight, 0U);
  EXPECT_EQ(local.open_reservations(), 0U);
}

TEST_P(LocalSelection, DroppedReservationEndsAsUnused) {
  add_worker("a");
  {
    Reservation moved = [&] {
      Reservation made(selector(), chosen(inquiry()).reservation);
      return Reservation(std::move(made));
    }();
    EXPECT_EQ(load("a").in_flight, 1U);
    moved.end({});
    EXPECT_EQ(load("a").in_flight, 0U);
    moved.first_token();
  }
  EXPECT_EQ(load("a").in_flight, 0U);
  { const Reservation dropped(selector(), chosen(inquiry()).reservation); }
  EXPECT_EQ(load("a").in_flight, 0U);
  EXPECT_EQ(fleet.snapshot()->find("a")->state, fleet::WorkerState::Ready);
}

TEST_P(LocalSelection, OtherBlockSizeHasNoOverlap) {
  add_worker("a");
  hold("a", 10);
  Inquiry asked = inquiry(320);
  asked.job.block_size = 32;
  const Selection selection = chosen(asked);
  EXPECT_EQ(selection.overlap_blocks, 0U);
  selector().end(selection.reservation, answered(160, 96));
  EXPECT_TRUE(compared.empty());
}

TEST_P(LocalSelection, UnverifiedWorkerHasNoOverlap) {
  add_worker("a");
  hold("a", 10);
  fleet.take_facts(cache("a"), {.health = operations::FeedHealth::Replaying});
  EXPECT_EQ(chosen(inquiry()).overlap_blocks, 0U);
}

TEST_P(LocalSelection, UnpredictableFamilyHasNoOverlap) {
  add_worker("a");
  hold("a", 10);
  Inquiry asked = inquiry();
  asked.unpredictable[static_cast<std::size_t>(contract::EngineFamily::Sglang)] = true;
  EXPECT_EQ(chosen(asked).overlap_blocks, 9U);
  asked.unpredictable[static_cast<std::size_t>(contract::EngineFamily::Vllm)] = true;
  const Selection selection = chosen(asked);
  EXPECT_EQ(selection.overlap_blocks, 0U);
  selector().end(selection.reservation, answered(160, 96));
  EXPECT_TRUE(compared.empty());
}

TEST_P(LocalSelection, SelectionNamesTheEngineFamily) {
  add_worker("s", ",family=sglang");
  EXPECT_EQ(chosen(inquiry()).family, contract::EngineFamily::Sglang);
}

TEST_P(LocalSelection, DoesNotChooseWorkersThatFailed) {
  add_worker("a");
  add_worker("b");
  hold("a", 10);
  Inquiry asked = inquiry();
  asked.tried.failed = {"a"};
  EXPECT_EQ(chosen(asked).worker, "b");
  asked.tried.failed = {"a", "b"};
  const auto none = select(asked);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(load("a").in_flight, 0U);
}

TEST_P(LocalSelection, ChoosesWorkersWhoseContextFitsThePrompt) {
  add_worker("small", "", {{"n", "", 100}});
  add_worker("large", "", {{"n", "", 160}});
  hold("small", 10);
  EXPECT_EQ(chosen(inquiry(160)).worker, "large");
  Inquiry short_one = inquiry(100);
  short_one.keys = std::make_shared<const std::vector<BlockKey>>(keys->begin(), keys->begin() + 6);
  EXPECT_EQ(chosen(short_one).worker, "small");
  Inquiry tried = inquiry(160);
  tried.tried.failed = {"large"};
  EXPECT_EQ(select(tried).error().code, ErrorCode::Unavailable) << "it fits one, which has failed";
  const auto none = select(inquiry(161));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(none.error().blame, Blame::Client);
  EXPECT_NE(none.error().message.find("160 tokens"), std::string::npos) << none.error().message;
  add_worker("unknown");
  EXPECT_EQ(chosen(inquiry(161)).worker, "unknown");
}

TEST_P(LocalSelection, ChoosesTheWorkerToRetry) {
  add_worker("a");
  add_worker("b");
  hold("a", 10);
  Inquiry asked = inquiry();
  asked.tried.again = "b";
  EXPECT_EQ(chosen(asked).worker, "b");
  asked.tried.again = "gone";
  EXPECT_EQ(chosen(asked).worker, "a");
}

TEST_P(LocalSelection, ChoosesWorkerThatHasLoadedTheAdapter) {
  add_worker("a");
  add_worker("b", "", {{.id = "ad", .parent = "m"}});
  hold("a", 10);
  Inquiry asked = inquiry();
  asked.adapter = "ad";
  EXPECT_EQ(chosen(asked).worker, "b");
}

TEST_P(LocalSelection, OverloadFailureMakesTheWorkerSuspect) {
  add_worker("a");
  const auto reservation = chosen(inquiry()).reservation;
  selector().end(reservation, {.kind = Kind::Failed,
                               .failure = worker_error(ErrorCode::Overloaded, "503", true)});
  EXPECT_EQ(fleet.snapshot()->find("a")->state, fleet::WorkerState::Suspect);
}

TEST_P(LocalSelection, ServerErrorDoesNotClearAFailure) {
  add_worker("a");
  for (const int status : {500, 200}) {
    const auto lost = worker_error(ErrorCode::Unavailable, "broken off", true);
    selector().end(chosen(inquiry()).reservation, {.kind = Kind::Failed, .failure = lost});
    selector().end(chosen(inquiry()).reservation, {.kind = Kind::Answered, .status = status});
    selector().end(chosen(inquiry()).reservation, {.kind = Kind::Failed, .failure = lost});
    // One failure alone changes no state. A second one before a success makes the worker suspect.
    const bool is_suspect = fleet.snapshot()->find("a")->state == fleet::WorkerState::Suspect;
    EXPECT_EQ(is_suspect, status == 500);
    fleet.set_workers({});
    fleet.set_workers(workers.specs);
    workers.specs.clear();
    add_worker("a");
  }
}

TEST_P(LocalSelection, ComparesAnswerWithThePrediction) {
  add_worker("a");
  hold("a", 6);
  selector().end(chosen(inquiry()).reservation, answered(160, 80));
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_EQ(compared[0].worker, "a");
  EXPECT_EQ(compared[0].predicted, 96U);
  EXPECT_EQ(compared[0].actual, 80U);
  EXPECT_TRUE(compared[0].same_prompt);
  EXPECT_EQ(compared[0].blocks, 6U);
}

TEST_P(LocalSelection, ReportsBestOverlapAndImageTokens) {
  add_worker("a");
  add_worker("b");
  hold("a", 8);
  hold("b", 6);
  Inquiry asked = inquiry();
  asked.tried.failed = {"a"};
  asked.images = {{0, 10}, {90, 30}, {120, 5}};
  selector().end(chosen(asked).reservation, answered(160, 96));
  // A worker that failed is no candidate, so the best overlap leaves out what it holds.
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_EQ(compared[0].best, 96U);
  EXPECT_EQ(compared[0].predicted_image, 16U);
  EXPECT_EQ(compared[0].prompt_tokens, 160U);
  set_policy(contract::Policy::RoundRobin);
  asked.tried.failed.clear();
  for (int i = 0; i < 2; ++i) selector().end(chosen(asked).reservation, answered(160, 96));
  ASSERT_EQ(compared.size(), 3U);
  EXPECT_EQ(compared[1].best, 128U);
  EXPECT_EQ(compared[2].best, 128U);
}

TEST_P(LocalSelection, CountsChoicesByReason) {
  add_worker("a");
  const std::string name = "sightline_decisions_total{reason=\"";
  const std::string only = name + "only_candidate\"} ";
  chosen(inquiry());
  chosen(inquiry());
  Inquiry unread;
  unread.is_read = false;
  chosen(unread);
  EXPECT_NE(metrics.scrape().find(only + "2"), std::string::npos) << metrics.scrape();
  EXPECT_NE(metrics.scrape().find(name + "least_loaded\"} 1"), std::string::npos);
}

TEST_P(LocalSelection, CountsSavedPrefillByThePaceOfTheWorker) {
  add_worker("a");
  const std::string saved = "sightline_saved_prefill_seconds_total{worker=\"a\"} ";
  Ending slow = answered(1'000, 0);
  slow.first_token = std::chrono::seconds(2);
  selector().end(chosen(inquiry(1'000)).reservation, slow);
  // A whole answer has no time of its first token, so no pace comes from it.
  selector().end(chosen(inquiry(1'000)).reservation, answered(1'000, 250));
  EXPECT_NE(metrics.scrape().find(saved + "0.5\n"), std::string::npos) << metrics.scrape();
}

TEST_P(LocalSelection, LearnsNoPaceFromAnswerThatWaited) {
  add_worker("a");
  const Selection first = chosen(inquiry(1'000));
  const Selection second = chosen(inquiry(1'000));
  Ending ending = answered(1'000, 0);
  ending.first_token = std::chrono::seconds(2);
  selector().end(first.reservation, ending);
  ending = answered(1'000, 500);
  ending.first_token = std::chrono::seconds(4);
  selector().end(second.reservation, ending);
  EXPECT_NE(metrics.scrape().find("sightline_saved_prefill_seconds_total{worker=\"a\"} 1\n"),
            std::string::npos)
      << metrics.scrape();
}

TEST_P(LocalSelection, CountsPromptTokenMismatch) {
  add_worker("a");
  selector().end(chosen(inquiry()).reservation, answered(161, 0));
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_FALSE(compared[0].same_prompt);
  EXPECT_NE(metrics.scrape().find("sightline_prompt_token_mismatch_total{worker=\"a\"} 1"),
            std::string::npos);
}

TEST_P(LocalSelection, LimitsReportedReuseToThePrompt) {
  add_worker("a");
  Ending ending = answered(1'000, 0);
  ending.first_token = std::chrono::seconds(1);
  selector().end(chosen(inquiry(1'000)).reservation, ending);
  constexpr std::uint64_t kAnyNumber = std::uint64_t{1} << 62U;
  ending = answered(kAnyNumber, kAnyNumber);
  ending.first_token = std::chrono::seconds(1);
  selector().end(chosen(inquiry(1'000)).reservation, ending);
  ASSERT_EQ(compared.size(), 2U);
  EXPECT_FALSE(compared[1].same_prompt);
  EXPECT_EQ(compared[1].prompt_tokens, 1'000U);
  EXPECT_EQ(compared[1].actual, 1'000U);
  EXPECT_NE(metrics.scrape().find("sightline_saved_prefill_seconds_total{worker=\"a\"} 1\n"),
            std::string::npos)
      << metrics.scrape();
}

TEST_P(LocalSelection, CountsReuseBeyondThePromptAsMismatch) {
  add_worker("a");
  selector().end(chosen(inquiry()).reservation, answered(160, 161));
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_FALSE(compared[0].same_prompt);
  EXPECT_EQ(compared[0].actual, 160U);
  EXPECT_NE(metrics.scrape().find("sightline_prompt_token_mismatch_total{worker=\"a\"} 1"),
            std::string::npos);
}

TEST_P(LocalSelection, DoesNotCompareInexactOrFailedAnswers) {
  add_worker("a");
  Inquiry asked = inquiry();
  asked.is_exact = false;
  selector().end(chosen(asked).reservation, answered(160, 0));
  Ending refused = answered(160, 0);
  refused.status = 400;
  selector().end(chosen(inquiry()).reservation, refused);
  Ending silent = answered(160, 0);
  silent.usage.reset();
  selector().end(chosen(inquiry()).reservation, silent);
  EXPECT_TRUE(compared.empty());
}

TEST_P(LocalSelection, UnreadRequestGoesToTheLeastLoaded) {
  add_worker("a");
  add_worker("b");
  Inquiry unread;
  unread.is_read = false;
  const Selection first = chosen(unread);
  EXPECT_EQ(first.worker, "a");
  EXPECT_EQ(first.block_size, 0U);
  EXPECT_EQ(first.reason, "least_loaded");
  EXPECT_EQ(chosen(unread).worker, "b");
  selector().end(first.reservation, {});
  EXPECT_EQ(chosen(unread).worker, "a");
}

TEST_P(LocalSelection, ExplanationNamesTheNextChoiceWithoutBooking) {
  add_worker("a");
  add_worker("b");
  add_worker("c");
  hold("b", 6);
  const auto explanation = explained(inquiry());
  ASSERT_TRUE(explanation.ok());
  EXPECT_EQ(load("b").in_flight, 0U);
  ASSERT_EQ(explanation->entries.size(), 3U);
  const auto& entry = explanation->entries[explanation->chosen];
  const Selection selection = chosen(inquiry());
  EXPECT_EQ(entry.worker, selection.worker);
  EXPECT_EQ(entry.score.cost.total_blocks, selection.score.cost.total_blocks);
  EXPECT_EQ(explanation->reason, selection.reason);
}

TEST_P(LocalSelection, ExplanationListsIneligibleWorkers) {
  add_worker("a", ",drain=true");
  add_worker("b");
  const auto explanation = explained(inquiry());
  ASSERT_TRUE(explanation.ok());
  ASSERT_EQ(explanation->entries.size(), 2U);
  EXPECT_FALSE(explanation->entries[0].is_eligible);
  EXPECT_EQ(explanation->entries[0].state, "draining");
  EXPECT_TRUE(explanation->entries[1].is_eligible);
  EXPECT_EQ(explanation->chosen, 1U);
}

TEST_P(LocalSelection, EachReplicaRepeatsItsOwnDraws) {
  for (const char* name : {"a", "b", "c", "d"}) add_worker(name);
  // All candidates are equal.
  set_policy(contract::Policy::Random);
  const auto draws = [this](const std::string& replica) {
    LocalSelector one({.settings = settings,
                       .fleet = fleet,
                       .index = index,
                       .removals = removals,
                       .compare = nullptr,
                       .metrics = metrics,
                       .clock = clock,
                       .replica = replica});
    std::string drawn;
    for (int i = 0; i < 24; ++i) {
      fakes::run_task(pool, [&]() -> Task<void> {
        const auto selection = co_await one.select(inquiry());
        drawn += selection->worker;
        one.end(selection->reservation, {});
      });
    }
    return drawn;
  };
  EXPECT_EQ(draws("r0"), draws("r0"));
  EXPECT_NE(draws("r0"), draws("r1"));
  EXPECT_NE(draws("r0"), draws(""));
}

TEST_P(LocalSelection, FailsWithoutAnyWorker) {
  EXPECT_FALSE(explained(inquiry()).ok());
  EXPECT_FALSE(select(inquiry()).ok());
}

}  // namespace
}  // namespace sightline::selection
