"""Enough of GBNF to test a grammar: sentences drawn from it, and whether it gives a text.

Read are strings, character classes, rule names, groups, alternatives, and the repetitions ? * + {n} {m,n}.
A rule becomes nested tuples: ("text", t), ("class", members), ("rule", name), ("all", parts),
("any", ways), ("repeat", part, least, most).
"""

import functools
import re
import string

TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[A-Za-z][\w-]*|[()|?*+]|\{\d+(?:,\d+)?\})')
PRINTABLE = {c for c in string.printable if c >= " "} | {"é", "∑"}
MOST = 3  # repetitions in a drawn sentence, above the least


def unescape(text):
    text = re.sub(r"\\x([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), text)
    return re.sub(r'\\(["\\\]\[n])', lambda m: "\n" if m[1] == "n" else m[1], text)


def members(text):
    """The characters of `[...]`, of those that tests use."""
    inner, out, k = text[1:-1], set(), 0
    negated = inner.startswith("^")
    parts = re.findall(r"\\x[0-9A-Fa-f]{2}|\\.|[^\\]", inner[negated:])
    while k < len(parts):
        first = unescape(parts[k])
        if k + 2 < len(parts) and parts[k + 1] == "-":
            out |= {chr(c) for c in range(ord(first), ord(unescape(parts[k + 2])) + 1)}
            k += 3
        else:
            out.add(first)
            k += 1
    return PRINTABLE - out if negated else out


class Grammar:
    def __init__(self, text):
        self.rules, self.known = {}, {}
        for line in text.splitlines():
            name, right = line.split(" ::= ", 1)
            assert name not in self.rules, f"two rules {name}"
            self.tokens = TOKEN.findall(right)
            assert "".join(self.tokens) == re.sub(r'("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\])|\s', r"\1", right), line
            self.rules[name] = self.alternatives()
            assert not self.tokens, f"{name}: {self.tokens} is left over"

    # --- reading

    def alternatives(self):
        ways = [self.sequence()]
        while self.tokens and self.tokens[0] == "|":
            self.tokens.pop(0)
            ways.append(self.sequence())
        return ways[0] if len(ways) == 1 else ("any", tuple(ways))

    def sequence(self):
        parts = []
        while self.tokens and self.tokens[0] not in ")|":
            token = self.tokens.pop(0)
            if token == "(":
                part = self.alternatives()
                assert self.tokens.pop(0) == ")"
            elif token[0] == '"':
                part = ("text", unescape(token[1:-1]))
            elif token[0] == "[":
                part = ("class", "".join(sorted(members(token))))
            else:
                part = ("rule", token)
            if self.tokens and self.tokens[0][0] in "?*+{":
                how = self.tokens.pop(0)
                least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(how) or \
                    tuple(map(int, (how[1:-1].split(",") * 2)[:2]))
                part = ("repeat", part, least, most)
            parts.append(part)
        return ("all", tuple(parts))

    # --- drawing

    @functools.cached_property
    def depths(self):
        """How deep the shallowest sentence of each rule is."""
        depths = dict.fromkeys(self.rules, 10**6)
        changed = True
        while changed:
            changed = False
            for name, is_ in self.rules.items():
                if (new := self.depth(is_, depths)) < depths[name]:
                    depths[name], changed = new, True
        assert max(depths.values()) < 10**6, "a rule has no sentence"
        return depths

    def least(self, node):
        """The depth of the node's shallowest sentence, once the rules' are known."""
        if id(node) not in self.known:
            self.known[id(node)] = self.depth(node, self.depths)
        return self.known[id(node)]

    def depth(self, node, depths):
        kind = node[0]
        if kind == "rule":
            return depths[node[1]] + 1
        if kind in ("all", "any"):
            return (max if kind == "all" else min)([self.depth(n, depths) for n in node[1]], default=0)
        return self.depth(node[1], depths) if kind == "repeat" and node[2] else 0

    def draw(self, random, name, budget=14):
        return self.draw_node(random, self.rules[name], budget)

    def draw_node(self, random, node, budget):
        kind = node[0]
        if kind == "text":
            return node[1]
        if kind == "class":
            return random.choice(node[1])
        if kind == "rule":
            return self.draw(random, node[1], budget - 1)
        if kind == "all":
            return "".join(self.draw_node(random, n, budget) for n in node[1])
        if kind == "any":
            most = max(budget, self.least(node))
            ways = [n for n in node[1] if self.least(n) <= most]
            return self.draw_node(random, random.choice(ways), budget)
        _, part, least, most = node
        extra = 0
        while extra < MOST and self.least(part) <= budget and random.random() < 0.4:
            extra += 1
        times = least + extra if most is None else min(least + extra, most)
        return "".join(self.draw_node(random, part, budget) for _ in range(times))

    # --- recognising

    def gives(self, text, name):
        """Whether the rule gives the whole text. Rules here are never left-recursive."""
        known = {}

        def rule_ends(rule, at):
            if (rule, at) not in known:
                known[rule, at] = frozenset(ends(self.rules[rule], at))
            return known[rule, at]

        def ends(node, at):
            kind = node[0]
            if kind == "text":
                return {at + len(node[1])} if text.startswith(node[1], at) else set()
            if kind == "class":
                return {at + 1} if at < len(text) and text[at] in node[1] else set()
            if kind == "rule":
                return rule_ends(node[1], at)
            if kind == "any":
                return set().union(*(ends(n, at) for n in node[1]))
            if kind == "all":
                here = {at}
                for n in node[1]:
                    here = set().union(*(ends(n, p) for p in here))
                return here
            _, part, least, most = node
            here, out, count = {at}, {at} if least == 0 else set(), 0
            while here and (most is None or count < most):
                here = set().union(*(ends(part, p) for p in here)) - (out if count >= least else set())
                count += 1
                if count >= least:
                    out |= here
            return out

        return len(text) in rule_ends(name, 0)
