#include "driver/certificate/cubin_code.h"

#include <algorithm>
#include <optional>
#include <string>

#include "compile/elf.h"

namespace kw::driver {
namespace {

// .debug_line, .nv_debug_line_sass, .rel.debug_line. A kernel may have such a word in its own name.
bool is_for_debuggers(std::string_view section) {
  for (const char* relocations : {".rela", ".rel"})
    if (section.rfind(std::string(relocations) + ".", 0) == 0)
      section.remove_prefix(std::string_view(relocations).size());
  return section.rfind(".debug_", 0) == 0 || section.rfind(".nv_debug_", 0) == 0;
}

// The image with zeros in the place of what debuggers read; nothing where it is no ELF image.
std::optional<std::string> without_line_tables(std::string_view image) {
  std::string why;
  const auto elf = runtime::read_elf(image, why);
  if (!elf) return std::nullopt;
  std::string out(image);
  for (const runtime::ElfSection& s : elf->sections)
    if (is_for_debuggers(s.name) && !s.bytes.empty())
      std::fill_n(out.begin() + (s.bytes.data() - image.data()), s.bytes.size(), '\0');
  return out;
}

}  // namespace

bool same_code(std::string_view a, std::string_view b) {
  const auto first = without_line_tables(a), second = without_line_tables(b);
  return first && second && *first == *second;
}

}  // namespace kw::driver
