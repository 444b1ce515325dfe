# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Tests the parser of C++ that lint uses to measure functions."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hack/lint"))
import cxx  # noqa: E402


def measured(text):
    return [(f.name, f.lines, f.parameters, f.nesting) for f in cxx.functions(cxx.blank(text))]


CASES = {
    "plain": ("int f(int a) {\n  return a;\n}\n", [("f", 3, 1, 0)]),
    "no parameters": ("void f() {}\n", [("f", 1, 0, 0)]),
    "in a namespace and a class": (
        "namespace a::b {\nclass C final : public D {\n public:\n  C() : x_{1}, y_(2) {}\n"
        "  int g(int a, int b) const override { return a; }\n\n private:\n  int x_{0};\n};\n}\n",
        [("C", 1, 0, 0), ("g", 1, 2, 0)]),
    "constructor with braces in its initialisers": (
        "C::C(int a)\n    : a_{a},\n      b_{std::move(a)} {\n  start();\n}\n",
        [("C::C", 5, 1, 0)]),
    "template with commas": (
        "template <class A, class B>\nstd::map<A, B> f(const std::map<A, B>& m, int n) {\n"
        "  return m;\n}\n", [("f", 4, 2, 0)]),
    "default argument with braces": (
        "int f(const Options& options = {}, int b = 2) { return b; }\n", [("f", 1, 2, 0)]),
    "operators": (
        "bool operator==(const A& a, const A& b) { return true; }\nint A::operator()(int x) { "
        "return x; }\n", [("operator==", 1, 2, 0), ("operator()", 1, 1, 0)]),
    "trailing return type": ("auto f(int a) -> std::vector<int> { return {a}; }\n",
                             [("f", 1, 1, 0)]),
    "tables are no functions": (
        "constexpr int kTable[] = {1, 2};\nconst std::array<int, 2> kOther{f(1), 2};\n"
        "struct P {\n  int a = 1;\n};\nenum class E { A, B };\n", []),
    "struct returned": ("struct A f(int a) { return {}; }\nstruct B {};\n", [("f", 1, 1, 0)]),
    "braces in text and comments": (
        'int f() {\n  // }\n  const char* a = "}{";\n  char b = \'{\';\n  auto c = R"x(})x";\n'
        "  return 1\'000;\n}\nint g() { return 1; }\n", [("f", 7, 0, 0), ("g", 1, 0, 0)]),
    "nesting": (
        "void f() {\n  for (int i : a) {\n    if (i) {\n      do {\n      } while (b);\n    } "
        "else {\n      x();\n    }\n  }\n}\n", [("f", 10, 0, 3)]),
    "nesting through lambdas": (
        "void f() {\n  if (a) {\n    run([&] {\n      while (b) {\n        c();\n      }\n    });\n"
        "  }\n}\n", [("f", 9, 0, 2)]),
    "initialiser lists do not nest": (
        "void f() {\n  if (a) {\n    g({1, {2, {3}}});\n    auto h = H{.a = {1}};\n  }\n}\n",
        [("f", 6, 0, 1)]),
    "macros around": (
        "#define A(x) \\\n  do {     \\\n  } while (x)\nint f(int a) {\n#ifdef B\n  return 1;\n"
        "#endif\n}\n", [("f", 5, 1, 0)]),
    "concept in front": (
        "template <class I>\nrequires std::is_integral_v<I> F(std::string k, I v)\n"
        "    : key(k), value(v) {}\n", [("F", 3, 2, 0)]),
    "attribute in front": ("[[nodiscard]] int f(int a) const { return a; }\n", [("f", 1, 1, 0)]),
    "test": ("TEST(A, B) {\n  EXPECT_EQ(1, 1);\n}\n", [("TEST", 3, 2, 0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_cxx_measures_functions(name):
    text, want = CASES[name]
    assert measured(text) == want


def test_blanking_keeps_every_line_and_column():
    text = 'a("b\\"c"); // d "e"\n/* f\n g */ h = \'"\'; i(R"(j"k)");\n'
    blanked = cxx.blank(text)
    assert len(blanked) == len(text) and blanked.count("\n") == text.count("\n")
    assert blanked.split() == ['a("', '");', 'h', '=', "'", "';", 'i(', '"', '");']


def test_comments_have_their_line_numbers():
    assert list(cxx.comments('int a;  // one\nconst char* b = "// no";\n/* two */\n')) == [
        (1, "// one"), (3, "/* two */")]
