// libFuzzer's entry (llvm.org/docs/LibFuzzer.html), for the parser that KW_PARSER names.
#include <cstdint>

#include "parsers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const kw::fuzz::Parser* parser = kw::fuzz::find_parser(KW_PARSER);
  parser->parse(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
