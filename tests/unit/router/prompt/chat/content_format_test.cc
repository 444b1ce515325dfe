// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/content_format.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::chat {
namespace {

std::string_view detected(std::string_view source) {
  const auto parsed = jinja::Template::parse(source);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return name_of(detect_content_format(*parsed));
}

TEST(ContentFormat, LoopsOverContentsMakeItOpenAi) {
  for (const char* source :
       {"{% for m in messages %}{% for p in m.content %}{% endfor %}{% endfor %}",
        "{% for m in messages %}{% for p in m['content'] | list %}{% endfor %}{% endfor %}",
        "{% for m in messages[1:] %}{% for p in m.content[1:] %}{% endfor %}{% endfor %}",
        "{% set a = messages %}{% set b = a[1:] %}{% for m in b %}{% if true %}"
        "{% for p in m.content %}{% endfor %}{% endif %}{% endfor %}",
        "{% for p in content %}{% endfor %}",
        "{% macro f(x, y) %}{% for p in y %}{% endfor %}{% endmacro %}"
        "{% for m in messages %}{{ f(1, m.content) }}{% endfor %}",
        "{% macro f(x) %}{% for p in x %}{% endfor %}{% endmacro %}"
        "{% for m in messages %}{% set z = f(x=m['content']) %}{% endfor %}"}) {
    EXPECT_EQ(detected(source), "openai") << source;
  }
}

TEST(ContentFormat, EverythingElseIsString) {
  for (const char* source :
       {"", "{% for m in messages %}{{ m.content }}{% endfor %}",
        "{% for m in others %}{% for p in m.content %}{% endfor %}{% endfor %}",
        "{% for m in messages %}{% for p in m.tool_calls %}{% endfor %}{% endfor %}",
        "{% macro f(content) %}{% for p in content %}{% endfor %}{% endmacro %}",
        "{% macro f(x, y) %}{% for p in x %}{% endfor %}{% endmacro %}"
        "{% for m in messages %}{{ f(1, m.content) }}{% endfor %}"}) {
    EXPECT_EQ(detected(source), "string") << source;
  }
}

}  // namespace
}  // namespace sightline::chat
