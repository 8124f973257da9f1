// Reads statements of TL, one a line of standard input, and answers of a proposer with --answers:
// "ok", or why not, a line for each. tests/python/models/test_propose_grammar.py asks it about
// sentences that the emitted grammar gives.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "propose/answer.h"
#include "propose/manual.h"
#include "propose/patch.h"
#include "propose/words.h"

namespace {

// Some statement of the kind that a row's block holds.
std::string inside(kw::tl::Block holds) {
  switch (holds) {
    case kw::tl::Block::args:
      return "    n: size\n";
    case kw::tl::Block::shared:
      return "    tile x: bf16[8, 32]\n";
    default:
      return "    count t\n";
  }
}

// A line that ends in a colon is read with each kind of block under it: its own says which is due.
std::string read_statement(const std::string& line) {
  std::string said;
  for (const kw::tl::Block holds :
       {kw::tl::Block::body, kw::tl::Block::args, kw::tl::Block::shared}) {
    kw::Diagnostics d;
    const bool block = line.ends_with(":");
    if (kw::tl::parse_statement(line + "\n" + (block ? inside(holds) : ""), d)) return "ok";
    said = kw::propose::one_line(kw::render(d));
    if (!block) break;
  }
  return said;
}

std::string read_answer(const std::string& line) {
  kw::propose::Refusal refusal;
  const auto edits = kw::propose::read_answer({line, "a grammar"}, refusal);
  if (!edits) return refusal.code + ": " + refusal.sentence;
  for (const auto& edit : edits->edits)
    for (const std::string& text : edit.text)
      if (const std::string said = read_statement(text.substr(text.find_first_not_of(' ')));
          said != "ok")
        return said;
  return "ok";
}

}  // namespace

int main(int argc, char** argv) {
  const bool answers = argc > 1 && std::string(argv[1]) == "--answers";
  for (std::string line; std::getline(std::cin, line);)
    std::cout << (answers ? read_answer(line) : read_statement(line)) << "\n";
}
