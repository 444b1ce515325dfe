// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/jinja/template.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::rendered;

RenderOptions limits(std::uint64_t steps_max, std::size_t output_bytes_max) {
  RenderOptions options;
  options.steps_max = steps_max;
  options.output_bytes_max = output_bytes_max;
  return options;
}

constexpr std::size_t kOutputMax = 1U << 20U;

// Templates that would run for hours, fill the memory or overflow the stack.
TEST(Template, HostileTemplatesEndWithinTheirSteps) {
  const std::string loop = "{% for i in range(100000) %}";
  for (const std::string& source : std::vector<std::string>{
           loop + loop + loop + "x{% endfor %}{% endfor %}{% endfor %}",
           loop + loop + "{% endfor %}{% endfor %}",
           "{% set ns = namespace(s='xx') %}" + loop + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{% set ns = namespace(s='xx') %}" + loop + "{% set ns.s = ns.s * 1000 %}{% endfor %}",
           "{% set ns = namespace(s='xx') %}" + loop +
               "{% set ns.s = ns.s.replace('x', ns.s) %}{% endfor %}",
           "{% set ns = namespace(s='xx') %}" + loop +
               "{% set ns.s = ns.s.join(ns.s) %}{% endfor %}",
           "{% set ns = namespace(s=[1]) %}" + loop + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(s=[1]) %}" + loop + "{% set ns.s = ns.s * 1000 %}{% endfor %}",
           "{% set s = range(100000)|list %}" + loop + "{{ s|string|length }}{% endfor %}",
           "{% set s = range(100000)|list %}" + loop + "{{ s|sort|tojson|length }}{% endfor %}",
           "{% set s = range(100000)|list %}{{ s|unique|list|length }}",
           "{% set s = 'a b ' * 100000 %}" + loop + "{{ s.split()|length }}{% endfor %}"}) {
    const std::string text = rendered(source, "{}", limits(2'000'000, kOutputMax));
    EXPECT_NE(text.find("the chat template needs more than 2000000 steps"), std::string::npos)
        << source << "\n"
        << text.substr(0, 200);
  }
}

TEST(Template, RecursionIsBounded) {
  for (const std::string source :
       {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(n) %}{% if true %}{% for x in [1] %}{{ [f(n ~ 'x')]|string }}{% endfor %}"
        "{% endif %}{% endmacro %}{{ f('') }}",
        "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}"}) {
    EXPECT_EQ(rendered(source), "error: line 1: maximum recursion depth exceeded") << source;
  }
  std::string nested = "{% macro f() %}";
  for (int i = 0; i < 50; ++i) nested += "{% if true %}";
  nested += "{{ f() }}";
  for (int i = 0; i < 50; ++i) nested += "{% endif %}";
  EXPECT_EQ(rendered(nested + "{% endmacro %}{{ f() }}"),
            "error: line 1: maximum recursion depth exceeded");
}

TEST(Template, OutputIsBounded) {
  EXPECT_EQ(
      rendered("{% for i in range(1000) %}0123456789{% endfor %}", "{}", limits(1'000'000, 5000)),
      "error: the prompt is longer than 5000 bytes");
  EXPECT_EQ(rendered("{{ 'x' * 5001 }}", "{}", limits(1'000'000, 5000)),
            "error: the prompt is longer than 5000 bytes");
  EXPECT_EQ(rendered("{{ 'x' * 5000 }}", "{}", limits(1'000'000, 5000)).size(), 5000U);
}

TEST(Template, LimitsAreTooLargeAndTheClientsFault) {
  const auto parsed = Template::parse("{% for i in range(1000) %}{% endfor %}");
  ASSERT_TRUE(parsed.ok());
  const auto text = parsed->render(Value::dict(Dict()), limits(100, kOutputMax));
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::TooLarge);
  EXPECT_EQ(text.error().blame, Blame::Client);
}

TEST(Template, VariablesShadowFunctionsAndTextsStayUnchanged) {
  EXPECT_EQ(rendered("{{ range }}{{ s }}", R"({"range": 1, "s": "{{ 1 }}{% x %}<b>&"})"),
            "1{{ 1 }}{% x %}<b>&");
}

// Random bytes and random changes of a template either parse or fail. They never crash.
TEST(Template, ArbitrarySourcesNeverCrash) {
  const std::string seed =
      "{%- macro f(a, b=1) -%}{{ a|tojson }}{%- endmacro %}{% set ns = namespace(x=[1, {'k': 2}]) "
      "%}"
      "{% for m in messages if m.role != 'x' recursive %}{{ loop.index0 ~ m['content'][::-1] }}"
      "{% elif not x is defined and 1 < 2 %}{{ f(1, b='\\n') if x else (1, 2)[0] }}{% endfor %}"
      "{% raw %}{{{% endraw %}{# c #}{% call f() %}{% endcall %}";
  std::uint64_t state = 7;
  const auto random = [&state](std::size_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state >> 33U) % below;
  };
  std::size_t parsed_count = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string source = seed;
    for (std::size_t edit = 0; edit < 1 + random(6); ++edit) {
      const std::size_t at = random(source.size());
      switch (random(4)) {
        case 0:
          source.erase(at, 1 + random(20));
          break;
        case 1:
          source[at] = static_cast<char>(random(256));
          break;
        case 2:
          source.insert(at, source.substr(random(source.size()), random(30)));
          break;
        default:
          source.insert(at, 1, "{}%#()[]'\"|.,:-+~"[random(17)]);
      }
      if (source.empty()) source = "x";
    }
    const auto parsed = Template::parse(source);
    if (!parsed.ok()) continue;
    ++parsed_count;
    const auto text = parsed->render(Value::dict(Dict()), limits(10'000, 10'000));
    EXPECT_TRUE(!text.ok() || text->size() <= 10'000U);
  }
  EXPECT_GT(parsed_count, 0U);
}

}  // namespace
}  // namespace sightline::jinja
