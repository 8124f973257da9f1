// The grammar of answers, for servers that hold a model to one while it writes.
//
// GBNF is what llama.cpp reads, and vLLM's and SGLang's xgrammar: rules of strings, character
// classes and repetitions. The answer's JSON has one spelling here (this order of properties, these
// spaces), and each line in it is a statement of TL, made of the rows of ops.def and the order of
// the operators. A grammar cannot know names and types: what it lets pass may break a law, but can
// be read.
#pragma once
#include <string>

namespace kw::propose {

// Rules from `root`, one a line; `line` is a line of a program, `statement` one without its
// indentation.
std::string gbnf();

}  // namespace kw::propose
