// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/yaml_tree.h"

#include <cstddef>
#include <utility>

#include <yaml-cpp/yaml.h>

namespace sightline::contract {
namespace {

constexpr std::size_t kNodesMax = 10'000;
constexpr std::size_t kDepthMax = 32;
// Twenty times what a thousand workers need.
constexpr std::size_t kTextBytesMax = 4 << 20;

std::uint32_t line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 1 : static_cast<std::uint32_t>(mark.line) + 1;
}

class TreeReader {
 public:
  explicit TreeReader(std::string_view file_name) : file_name_(file_name) {}

  Error error(std::uint32_t line, const std::string& message) const {
    return client_error(ErrorCode::InvalidArgument,
                        std::string(file_name_) + ":" + std::to_string(line) + ": " + message);
  }

  // Aliases are shared nodes: the count of visited ones bounds what they can expand to.
  Result<YamlNode> read(const YAML::Node& source, std::size_t depth) {
    YamlNode node;
    node.line = line_of(source.Mark());
    if (++nodes_ > kNodesMax) return error(node.line, "too many YAML nodes");
    if (depth > kDepthMax) return error(node.line, "nested too deeply");
    if (source.IsScalar()) {
      node.kind = YamlKind::Scalar;
      node.text = source.Scalar();
      node.is_quoted = source.Tag() == "!";
    } else if (source.IsSequence()) {
      node.kind = YamlKind::Sequence;
      for (const auto& item : source) node.children.push_back(SL_TRY(read(item, depth + 1)));
    } else if (source.IsMap()) {
      node.kind = YamlKind::Map;
      SL_TRY(read_members(source, depth, node));
    }
    return node;
  }

 private:
  Result<Done> read_members(const YAML::Node& source, std::size_t depth, YamlNode& node) {
    for (const auto& entry : source) {
      const std::uint32_t line = line_of(entry.first.Mark());
      if (!entry.first.IsScalar()) return error(line, "a key must be a plain word");
      for (const YamlNode& other : node.children) {
        if (other.key == entry.first.Scalar()) {
          return error(line, "'" + other.key + "' is there twice, first in line " +
                                 std::to_string(other.line) + ": remove one");
        }
      }
      YamlNode member = SL_TRY(read(entry.second, depth + 1));
      member.key = entry.first.Scalar();
      member.line = line;
      node.children.push_back(std::move(member));
    }
    return Done{};
  }

  std::string_view file_name_;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<YamlNode> parse_yaml(const std::string& text, std::string_view file_name) {
  TreeReader reader(file_name);
  if (text.size() > kTextBytesMax) return reader.error(1, "the file is larger than 4 MiB");
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty()) return YamlNode{};
    if (documents.size() > 1) {
      return reader.error(line_of(documents[1].Mark()), "a second YAML document starts here");
    }
    return reader.read(documents[0], 0);
  } catch (const YAML::Exception& failure) {
    return reader.error(line_of(failure.mark), failure.msg);
  }
}

}  // namespace sightline::contract
