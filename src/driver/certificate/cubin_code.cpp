#include "driver/certificate/cubin_code.h"

#include <utility>
#include <vector>

#include "compile/elf.h"

namespace kw::driver {
namespace {

std::vector<std::pair<std::string_view, std::string_view>> working_sections(
    const runtime::Elf& elf) {
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (const runtime::ElfSection& s : elf.sections)
    if (s.name.find("debug") == std::string_view::npos) out.emplace_back(s.name, s.bytes);
  return out;
}

}  // namespace

bool same_code(std::string_view a, std::string_view b) {
  std::string why;
  const auto first = runtime::read_elf(a, why), second = runtime::read_elf(b, why);
  return first && second && working_sections(*first) == working_sections(*second);
}

}  // namespace kw::driver
