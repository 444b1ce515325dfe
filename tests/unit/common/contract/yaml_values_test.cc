// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/yaml_values.h"

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

std::string error_of(const std::string& text) {
  const auto tree = parse_yaml(text, "f.yaml");
  return tree.ok() ? "" : tree.error().message;
}

TEST(YamlValues, ScalarsKeepTheirTextAndLine) {
  const auto tree = parse_yaml("a: 010\n\nb:\n  - yes\n  - 'no'\n  - \"1\"\nc:\n", "f.yaml");
  ASSERT_TRUE(tree.ok());
  ASSERT_EQ(tree->children.size(), 3u);
  EXPECT_EQ(tree->children[0].key, "a");
  EXPECT_EQ(tree->children[0].text, "010");
  EXPECT_EQ(tree->children[0].line, 1u);
  const YamlNode& list = tree->children[1];
  EXPECT_EQ(list.line, 3u);
  ASSERT_EQ(list.children.size(), 3u);
  EXPECT_EQ(list.children[0].text, "yes");
  EXPECT_FALSE(list.children[0].is_quoted);
  EXPECT_TRUE(list.children[1].is_quoted);
  EXPECT_TRUE(list.children[2].is_quoted);
  EXPECT_EQ(list.children[2].line, 6u);
  EXPECT_EQ(tree->children[2].kind, YamlKind::Null);
}

TEST(YamlValues, EmptyTextsAreNull) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n"}) {
    const auto tree = parse_yaml(text, "f.yaml");
    ASSERT_TRUE(tree.ok()) << text;
    EXPECT_EQ(tree->kind, YamlKind::Null) << text;
  }
}

TEST(YamlValues, RepeatedKeysAreRefusedWithBothLines) {
  EXPECT_EQ(error_of("a: 1\nb: 2\na: 3\n"),
            "f.yaml:3: 'a' is given twice, first in line 1: remove one");
  EXPECT_EQ(error_of("s:\n  a: 1\n  \"a\": 3\n"),
            "f.yaml:3: 'a' is given twice, first in line 2: remove one");
}

TEST(YamlValues, SyntaxErrorsNameTheLine) {
  EXPECT_TRUE(error_of("a: 1\nb: [1, 2\n").starts_with("f.yaml:3: "));
  EXPECT_TRUE(error_of("a: 1\n\tb: 2\n").starts_with("f.yaml:2: "));
  EXPECT_TRUE(error_of("a: *nowhere\n").starts_with("f.yaml:1: "));
}

TEST(YamlValues, OnlyOneDocumentIsRead) {
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "f.yaml:3: a second YAML document starts here");
}

TEST(YamlValues, DeepNestingIsAnError) {
  EXPECT_NE(error_of(std::string(3000, '[')), "");
  std::string nested;
  for (int i = 0; i < 40; ++i) nested += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(
      error_of(nested + std::string(40, ' ') + "a: 1\n").find("nested more than 32 levels deep"),
      std::string::npos);
}

TEST(YamlValues, AliasesThatMultiplyAreBounded) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    const std::string name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + last;
    for (int j = 0; j < 9; ++j) bomb += ", " + last;
    bomb += "]\n";
  }
  EXPECT_NE(error_of(bomb).find("more than 10000 YAML nodes"), std::string::npos);
}

TEST(YamlValues, KeysThatAreNotWordsAreRefused) {
  EXPECT_EQ(error_of("[a, b]: 1\n"), "f.yaml:1: a key must be a plain word");
}

}  // namespace
}  // namespace sightline::contract
