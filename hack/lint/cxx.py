# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A small parser of C++ that can measure functions and match words outside of comments.

It parses comments, literals, braces and the heads in front of braces. It does not parse macros or
templates. Use it only for code that clang-format has formatted.
"""

import re
from dataclasses import dataclass

_LITERALS = re.compile(
    r"""//[^\n]*(?:\\\n[^\n]*)*"""
    r"""|/\*.*?\*/"""
    r"""|(?:\bu8|\b[uUL])?R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)\""""
    r"""|"(?:[^"\\\n]|\\.)*\""""
    r"""|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'""",
    re.DOTALL,
)


def _blanked(match):
    text = match.group(0)
    if text.startswith(("//", "/*")):
        return re.sub(r"[^\n]", " ", text)
    first, last = text.index(text[-1]), len(text) - 1
    inner = re.sub(r"[^\n]", " ", text[first + 1:last])
    return " " * first + text[last] + inner + text[last]


def blank(text):
    return _LITERALS.sub(_blanked, text)


def comments(text):
    """Yields (line, text) of each comment."""
    for match in _LITERALS.finditer(text):
        if match.group(0).startswith(("//", "/*")):
            yield text.count("\n", 0, match.start()) + 1, match.group(0)


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


@dataclass(frozen=True)
class Include:
    line: int
    name: str
    quoted: bool


def includes(text):
    return [
        Include(text.count("\n", 0, m.start()) + 1, m.group(1) or m.group(2), bool(m.group(1)))
        for m in _INCLUDE.finditer(text)
    ]


@dataclass(frozen=True)
class Function:
    name: str
    line: int
    lines: int
    parameters: int
    nesting: int


_SCOPE = re.compile(
    r'^(?:inline\s+)?(?:namespace\b|extern\s*"|(?:typedef\s+)?(?:struct|class|union|enum)\b)')
_TEMPLATE = re.compile(r"^template\s*<")
_CONTROL = re.compile(r"^(?:else\s+)?(?:if|for|while|switch|catch)\b|^(?:else|do|try)\b")
_NAME = re.compile(r"(operator\s*[^\s\w(]+|operator\s*\(\s*\)|operator\s+\w+|~?[\w:]+)\s*\($")


def functions(code):
    """Returns the function definitions of blanked code. Lambdas count with their function."""
    return _Scanner(_without_directives(code)).run()


def _without_directives(code):
    return re.sub(
        r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code,
        flags=re.MULTILINE)


class _Scanner:
    def __init__(self, code):
        self.code = code
        self.found = []

    def run(self):
        self.scope(0)
        return self.found

    def line(self, position):
        return self.code.count("\n", 0, position) + 1

    def skip(self, position, opening, closing):
        """Returns the position after the group that opens at `position`."""
        depth = 0
        while position < len(self.code):
            if self.code[position] == opening:
                depth += 1
            elif self.code[position] == closing:
                depth -= 1
                if depth == 0:
                    return position + 1
            position += 1
        return position

    def scope(self, position):
        """Reads declarations up to the brace that ends the scope. Returns the position after it."""
        start = position
        while position < len(self.code):
            char = self.code[position]
            if char == "}":
                return position + 1
            if char == ";":
                start = position + 1
            elif char == ":" and self.is_label(start, position):
                start = position + 1
            elif char == "(":
                position = self.skip(position, "(", ")")
                continue
            elif char == "{":
                position, ends = self.brace(start, position)
                start = position if ends else start
                continue
            position += 1
        return position

    def is_label(self, start, position):
        return self.code[start:position].strip() in ("public", "private", "protected")

    def brace(self, start, position):
        """Handles the brace at `position`. Returns (position after it, whether the declaration
        has ended)."""
        head = self.code[start:position].strip()
        plain = _without_template(head)
        if not plain:
            return self.scope(position + 1), True
        if _SCOPE.match(plain) and not plain.endswith(")") and not _is_call(plain):
            if plain.startswith("enum"):
                return self.skip(position, "{", "}"), False
            return self.scope(position + 1), True
        if not _is_function(plain) or _is_member_initialiser(plain):
            return self.skip(position, "{", "}"), False
        end = self.skip(position, "{", "}")
        self.add(start, head, plain, (position, end))
        return end, True

    def add(self, start, head, plain, body):
        begin = start + len(self.code[start:]) - len(self.code[start:].lstrip())
        call = re.search(r"operator\s*\(\s*\)\s*\(", plain)
        opening = call.end() - 1 if call else plain.index("(")
        name = _NAME.search(plain[:opening + 1])
        self.found.append(Function(
            name=name.group(1).strip() if name else plain[:40],
            line=self.line(begin),
            lines=self.line(body[1] - 1) - self.line(begin) + 1,
            parameters=_parameters(plain),
            nesting=self.nesting(*body),
        ))

    def nesting(self, begin, end):
        """Returns how deep control statements with braces nest in a body."""
        stack, deepest, start = [], 0, begin + 1
        position = begin + 1
        while position < end - 1:
            char = self.code[position]
            if char == "(":
                # A lambda among the arguments nests in the statement that contains it.
                inner_end = self.skip(position, "(", ")")
                deepest = max(deepest, sum(stack) + self.nesting(position, inner_end))
                position = inner_end
                continue
            if char == "{":
                stack.append(1 if _CONTROL.match(self.code[start:position].strip()) else 0)
                deepest = max(deepest, sum(stack))
                start = position + 1
            elif char == "}":
                if stack:
                    stack.pop()
                start = position + 1
            elif char in ";:":
                start = position + 1
            position += 1
        return deepest


def _without_template(head):
    head = re.sub(r"^(?:\[\[[^\]]*\]\]\s*)+", "", head.strip())
    while _TEMPLATE.match(head):
        depth = 0
        for index, char in enumerate(head):
            depth += {"<": 1, ">": -1}.get(char, 0)
            if char == ">" and depth == 0:
                head = re.sub(r"^(?:\[\[[^\]]*\]\]\s*)+", "", head[index + 1:].strip())
                break
        else:
            return head
    return head


def _top_level(text):
    """Returns the text without everything in parentheses, square brackets or braces."""
    out, depth = [], 0
    for char in text:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0:
            out.append(char)
    return "".join(out)


def _is_call(plain):
    return bool(re.search(r"\)\s*(?:const|noexcept|override|final|->.*)?\s*$", plain))


def _is_function(plain):
    if "(" not in plain:
        return False
    flat = re.sub(r"operator\s*[^\s\w(]+", "operator", _top_level(plain))
    if re.search(r"(?<![=!<>])=(?!=)", flat):
        return bool(re.search(r"=\s*\[", plain))
    return True


def _is_member_initialiser(plain):
    """`Type::Type(int a) : a_` in front of a brace: the brace initialises a_."""
    flat = _top_level(plain)
    colon = re.search(r"(?<!:):(?!:)", flat)
    return bool(colon) and bool(re.search(r"[\w>]$", plain)) and not re.search(
        r"\)\s*(?:const|noexcept|override|final)$", plain)


def _parameters(plain):
    # Removes other parentheses before the parameters: those of operator() and of `requires …`.
    text = re.sub(r"operator\s*\(\s*\)", "operator", plain)
    text = re.sub(r"^requires\s+[\w:<>, ]*(?=\s\w)", "", text)
    opening = text.find("(")
    depth, angle, count, seen = 0, 0, 1, False
    for char in text[opening:]:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                break
        elif char == "<":
            angle += 1
        elif char == ">":
            angle = max(0, angle - 1)
        elif char == "," and depth == 1 and angle == 0:
            count += 1
        elif not char.isspace():
            seen = True
    return count if seen else 0
