// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/jinja/parser.h"
#include "router/prompt/template/jinja/template.h"

namespace sightline::jinja {
namespace {

using EndTags = std::initializer_list<std::string_view>;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens)
      : stream_(std::move(tokens)), expressions_(stream_) {}

  Result<Syntax> run() {
    Syntax syntax;
    syntax.body = SL_TRY(block({}));
    return syntax;
  }

 private:
  // Parses statements up to one of the end tags. Its "{%" is then read, and its name is the current
  // token.
  Result<Block> block(EndTags ends) {
    if (++nesting_ > kNestingMax) {
      return error_at(stream_.current().line, ErrorCode::TooLarge, "blocks are nested too deeply");
    }
    Block statements;
    while (!stream_.is(TokenKind::End)) {
      if (stream_.is(TokenKind::StatementBegin)) {
        stream_.next();
        if (stream_.is_any_name(ends)) {
          --nesting_;
          return statements;
        }
        statements.push_back(SL_TRY(statement()));
        SL_TRY(stream_.expect_kind(TokenKind::StatementEnd));
      } else {
        statements.push_back(SL_TRY(text_or_print()));
      }
    }
    --nesting_;
    if (ends.size() == 0) return statements;
    return stream_.fail("Unexpected end of template, expected '" + std::string(*ends.begin()) +
                        "'");
  }

  // Parses the body after an opening tag: "%}", the statements, and the "{%" of the end tag. The
  // name of the end tag is the current token.
  Result<Block> body(EndTags ends) {
    // Jinja2 allows a colon at the end of an opening tag.
    stream_.skip_operator(":");
    SL_TRY(stream_.expect_kind(TokenKind::StatementEnd));
    return block(ends);
  }

  // Like body(), but also reads the name of the end tag.
  Result<Block> body_to(std::string_view end) {
    Block statements = SL_TRY(body({end}));
    stream_.next();
    return statements;
  }

  Statement make(StatementKind kind) const {
    Statement made;
    made.kind = kind;
    made.line = stream_.current().line;
    return made;
  }

  Result<Statement> text_or_print() {
    if (stream_.is(TokenKind::Text)) {
      Statement text = make(StatementKind::Text);
      text.text = stream_.next().text;
      return text;
    }
    Statement print = make(StatementKind::Print);
    SL_TRY(stream_.expect_kind(TokenKind::PrintBegin));
    print.expression = SL_TRY(expressions_.tuple());
    SL_TRY(stream_.expect_kind(TokenKind::PrintEnd));
    return print;
  }

  Result<Statement> statement() {
    using Parse = Result<Statement> (StatementParser::*)();
    struct Tag {
      std::string_view name;
      Parse parse;
    };
    static constexpr Tag kTags[] = {
        {"if", &StatementParser::if_statement},
        {"for", &StatementParser::for_statement},
        {"set", &StatementParser::set_statement},
        {"with", &StatementParser::with_statement},
        {"macro", &StatementParser::macro_statement},
        {"call", &StatementParser::call_statement},
        {"filter", &StatementParser::filter_statement},
        {"generation", &StatementParser::generation_statement},
        {"break", &StatementParser::loop_control},
        {"continue", &StatementParser::loop_control},
    };
    if (!stream_.is(TokenKind::Name)) return stream_.fail("tag name expected");
    for (const Tag& tag : kTags) {
      if (stream_.is_name(tag.name)) return (this->*tag.parse)();
    }
    return stream_.fail("Encountered unknown tag '" + stream_.current().text + "'");
  }

  Result<Statement> if_statement() {
    Statement made = SL_TRY(branch());
    while (stream_.is_name("elif")) made.branches.push_back(SL_TRY(branch()));
    if (stream_.next().text == "else") made.otherwise = SL_TRY(body_to("endif"));
    return made;
  }

  // Parses "if" or "elif" with its body.
  Result<Statement> branch() {
    Statement made = make(StatementKind::If);
    stream_.next();
    // The condition of this tag is no "a if b else c" itself.
    made.expression = SL_TRY(expressions_.tuple(false));
    made.body = SL_TRY(body({"elif", "else", "endif"}));
    return made;
  }

  Result<Statement> for_statement() {
    Statement made = make(StatementKind::For);
    stream_.next();
    made.target = SL_TRY(expressions_.target(false, "in"));
    if (!stream_.skip_name("in")) return stream_.unexpected("in");
    // The name "recursive" ends the expression.
    made.expression = SL_TRY(expressions_.tuple(false, "recursive"));
    if (stream_.skip_name("if")) made.condition = SL_TRY(expressions_.expression());
    // Reports the reason. Otherwise the error would be an unexpected token.
    if (stream_.is_name("recursive")) {
      return error_at(made.line, ErrorCode::Unsupported, "recursive loops are not supported");
    }
    // "break" and "continue" are errors outside of a loop, already when the template is parsed.
    ++loops_;
    made.body = SL_TRY(body({"endfor", "else"}));
    --loops_;
    if (stream_.next().text == "else") made.otherwise = SL_TRY(body_to("endfor"));
    return made;
  }

  Result<Statement> set_statement() {
    Statement made = make(StatementKind::Set);
    stream_.next();
    made.target = SL_TRY(expressions_.target(true));
    if (stream_.skip_operator("=")) {
      made.expression = SL_TRY(expressions_.tuple());
      return made;
    }
    made.kind = StatementKind::SetBlock;
    if (stream_.skip_operator("|")) made.expression = SL_TRY(expressions_.filter_chain());
    made.body = SL_TRY(body_to("endset"));
    return made;
  }

  Result<Statement> with_statement() {
    Statement made = make(StatementKind::With);
    stream_.next();
    while (!stream_.is(TokenKind::StatementEnd)) {
      if (!made.parameters.empty()) SL_TRY(stream_.expect_operator(","));
      Parameter parameter;
      parameter.target.name = SL_TRY(stream_.expect_name());
      SL_TRY(stream_.expect_operator("="));
      parameter.value = SL_TRY(expressions_.expression());
      made.parameters.push_back(std::move(parameter));
    }
    made.body = SL_TRY(body_to("endwith"));
    return made;
  }

  Result<std::vector<Parameter>> signature() {
    std::vector<Parameter> parameters;
    SL_TRY(stream_.expect_operator("("));
    while (!stream_.is_operator(")")) {
      if (!parameters.empty()) SL_TRY(stream_.expect_operator(","));
      Parameter parameter;
      parameter.target.name = SL_TRY(stream_.expect_name());
      if (stream_.skip_operator("=")) {
        parameter.value = SL_TRY(expressions_.expression());
      } else if (!parameters.empty() && parameters.back().value != nullptr) {
        return stream_.fail("non-default argument follows default argument");
      }
      parameters.push_back(std::move(parameter));
    }
    SL_TRY(stream_.expect_operator(")"));
    return parameters;
  }

  // The body of a macro does not belong to the loops around its definition.
  Result<Block> macro_body(std::string_view end) {
    const std::size_t loops = std::exchange(loops_, 0);
    auto result = body_to(end);
    loops_ = loops;
    return result;
  }

  Result<Statement> macro_statement() {
    Statement made = make(StatementKind::Macro);
    stream_.next();
    made.text = SL_TRY(stream_.expect_name());
    made.parameters = SL_TRY(signature());
    made.body = SL_TRY(macro_body("endmacro"));
    return made;
  }

  Result<Statement> call_statement() {
    Statement made = make(StatementKind::CallBlock);
    stream_.next();
    if (stream_.is_operator("(")) made.parameters = SL_TRY(signature());
    made.expression = SL_TRY(expressions_.expression());
    // The tag needs a call, because the macro gets the body as caller().
    if (made.expression->kind != ExpressionKind::Call) return stream_.fail("expected call");
    made.body = SL_TRY(macro_body("endcall"));
    return made;
  }

  Result<Statement> filter_statement() {
    Statement made = make(StatementKind::FilterBlock);
    stream_.next();
    made.expression = SL_TRY(expressions_.filter_chain());
    made.body = SL_TRY(body_to("endfilter"));
    return made;
  }

  Result<Statement> generation_statement() {
    // transformers runs the body as a call block. The loops around it therefore do not reach into
    // it.
    Statement made = make(StatementKind::Scope);
    stream_.next();
    made.body = SL_TRY(macro_body("endgeneration"));
    return made;
  }

  Result<Statement> loop_control() {
    Statement made =
        make(stream_.is_name("break") ? StatementKind::Break : StatementKind::Continue);
    if (loops_ == 0) return stream_.fail("'" + stream_.current().text + "' outside loop");
    stream_.next();
    return made;
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  std::size_t nesting_ = 0;
  std::size_t loops_ = 0;
};

}  // namespace

Result<Syntax> parse_syntax(std::vector<Token> tokens) {
  return StatementParser(std::move(tokens)).run();
}

}  // namespace sightline::jinja
