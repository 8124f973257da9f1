// Every file of FOLDER/<parser>/ through its parser: a crash is the failure.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "parsers.h"

int main(int count, char** argument) {
  if (count != 2) return std::fputs("parser_replay FOLDER\n", stderr), 2;
  int read = 0;
  for (const kw::fuzz::Parser& parser : kw::fuzz::parsers()) {
    const auto folder = std::filesystem::path(argument[1]) / parser.name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      parser.parse(std::string(std::istreambuf_iterator<char>(file), {}));
      ++read;
    }
  }
  std::printf("%d inputs\n", read);
  return read > 0 ? 0 : 1;
}
