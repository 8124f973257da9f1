// A 64-bit little-endian ELF image as sections, symbols and relocations; nothing about CUDA.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kw::runtime {

struct ElfSection {
  std::string_view name;
  uint32_t type = 0;
  uint64_t flags = 0, size = 0;
  uint32_t link = 0, info = 0;
  std::string_view bytes;  // empty for sections that occupy no file space
};

struct ElfSymbol {
  std::string_view name;
  uint8_t type = 0, binding = 0, other = 0;
  uint16_t section = 0;  // 0: undefined
  uint64_t value = 0, size = 0;
};

struct ElfRelocation {
  uint32_t symbol = 0;   // index into symbols
  uint32_t section = 0;  // the section that is patched
};

// Views into the image, which must outlive it.
struct Elf {
  uint16_t machine = 0;
  uint8_t abi_version = 0;
  uint32_t flags = 0;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;
  std::vector<ElfRelocation> relocations;
};

// Nothing when any header, table or name lies outside the image; `why` says which.
std::optional<Elf> read_elf(std::string_view image, std::string& why);

}  // namespace kw::runtime
