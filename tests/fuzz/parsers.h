// Everything that reads a file which somebody else may have written: no bytes may make it crash,
// hang or read what is not its own.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kw::fuzz {

struct Parser {
  std::string_view name;
  void (*parse)(const std::string& bytes);
};

// tl: TL text, and the laws on what could be read; what is printed must read back the same.
// graph: capture's graph.json (that its operators' operands fit is PyTorch's doing, and taken for
// granted) · cubin: an ELF image · npy · launch: launch.json
// tiles: tiles.json, which must print and read back the same · certificate: certificate.json by
// its schema, likewise
// stream: what an endpoint of a model sends · transcript: one record, which must print and read
// back the same
const std::vector<Parser>& parsers();
const Parser* find_parser(std::string_view name);

}  // namespace kw::fuzz
