#include "compile/cubin.h"

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "compile/elf.h"

namespace kw::runtime {
namespace {

constexpr uint16_t machine_cuda = 190;         // EM_CUDA
constexpr uint8_t other_entry = 0x10;          // STO_CUDA_ENTRY in st_other
constexpr uint8_t attribute_registers = 0x2f;  // EIATTR_REGCOUNT: symbol index, count
constexpr uint8_t attribute_parameter = 0x17;  // EIATTR_KPARAM_INFO: one record a parameter
constexpr uint8_t format_sized = 4;            // EIFMT_SVAL: 16-bit size, then the value

bool is_entry(const ElfSymbol& symbol) {
  return symbol.type == STT_FUNC && symbol.section != SHN_UNDEF && (symbol.other & other_entry);
}

// ABI version 8 (CUDA 13) moved the number from the lowest byte of the flags to the next.
int architecture(const Elf& elf) {
  return elf.abi_version >= 8 ? elf.flags >> 8 & 0xff : elf.flags & 0xff;
}

const ElfSection* section_named(const Elf& elf, const std::string& name) {
  for (const ElfSection& section : elf.sections)
    if (section.name == name) return &section;
  return nullptr;
}

// Walks the records of a .nv.info section: one byte format, one byte attribute, two bytes value or
// size of the value that follows.
template <class Visit>
void visit_info(std::string_view bytes, Visit visit) {
  while (bytes.size() >= 4) {
    const uint8_t format = bytes[0], attribute = bytes[1];
    uint16_t inline_value;
    memcpy(&inline_value, bytes.data() + 2, 2);
    bytes.remove_prefix(4);
    const size_t size = format == format_sized ? std::min<size_t>(inline_value, bytes.size()) : 0;
    visit(attribute, inline_value, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
}

// A record is index (u32), ordinal and offset (u16 each), and a word whose upper 14 bits are the
// size in bytes. Offsets count from the bank's parameter area, where an aligned struct may begin
// later.
int parameter_bytes(const ElfSection& info) {
  int begin = 0, end = 0;
  visit_info(info.bytes, [&](uint8_t attribute, uint16_t, std::string_view value) {
    uint16_t offset;
    uint32_t word;
    if (attribute != attribute_parameter || value.size() < 12) return;
    memcpy(&offset, value.data() + 6, sizeof offset);
    memcpy(&word, value.data() + 8, sizeof word);
    begin = end == 0 ? offset : std::min<int>(begin, offset);
    end = std::max<int>(end, offset + static_cast<int>(word >> 18));
  });
  return end - begin;
}

CubinEntry describe(const Elf& elf, uint32_t symbol_index) {
  const ElfSymbol& symbol = elf.symbols[symbol_index];
  CubinEntry entry{.name = std::string(symbol.name), .code_bytes = static_cast<int>(symbol.size)};
  if (const ElfSection* shared = section_named(elf, ".nv.shared." + entry.name))
    entry.shared_bytes = static_cast<int>(shared->size);
  if (const ElfSection* info = section_named(elf, ".nv.info"))
    visit_info(info->bytes, [&](uint8_t attribute, uint16_t, std::string_view value) {
      uint32_t words[2];
      if (attribute != attribute_registers || value.size() < sizeof words) return;
      memcpy(words, value.data(), sizeof words);
      if (words[0] == symbol_index) entry.registers = static_cast<int>(words[1]);
    });
  if (const ElfSection* info = section_named(elf, ".nv.info." + entry.name))
    entry.parameter_bytes = parameter_bytes(*info);
  return entry;
}

void check_target(const Elf& elf, const std::string& target, Diagnostics& diagnostics) {
  const std::string built = fmt::format("sm_{}", architecture(elf));
  // sm_90a is recorded as 90.
  std::string wanted = target;
  while (!wanted.empty() && std::isalpha(static_cast<unsigned char>(wanted.back())))
    wanted.pop_back();
  if (built != wanted)
    diagnostics.error("cubin.target", {},
                      fmt::format("the cubin is built for {}, the module for {}", built, target));
}

void check_entries(const Cubin& cubin, std::vector<std::string> expected,
                   Diagnostics& diagnostics) {
  std::vector<std::string> found;
  for (const CubinEntry& entry : cubin.entries) found.push_back(entry.name);
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  if (found != expected)
    diagnostics.error(
        "cubin.entries", {},
        fmt::format("the cubin's entries are {}, the module's are {}", found, expected));
}

// Reports the variables in .nv.global (zeroed) and .nv.global.init, except dead constants.
void check_globals(const Elf& elf, const std::vector<std::string>& dead, Diagnostics& diagnostics) {
  for (size_t i = 0; i < elf.sections.size(); ++i) {
    if (elf.sections[i].name != ".nv.global" && elf.sections[i].name != ".nv.global.init") continue;
    uint64_t excepted = 0;
    bool named = false;
    for (const ElfSymbol& symbol : elf.symbols) {
      if (symbol.section != i || symbol.type != STT_OBJECT) continue;
      if (std::find(dead.begin(), dead.end(), symbol.name) != dead.end()) {
        excepted += symbol.size;
        continue;
      }
      named = true;
      diagnostics
          .error("cubin.global", {},
                 fmt::format("'{}' ({} bytes) lives in global memory across launches", symbol.name,
                             symbol.size))
          .hint = "keep state in a workspace argument, which the launcher zeroes";
    }
    // What no symbol covers has no name to be excepted by (alignment gaps are under 16 bytes each).
    if (!named && excepted == 0 && elf.sections[i].size > 0)
      diagnostics.error("cubin.global", {},
                        fmt::format("{} holds {} bytes without a name", elf.sections[i].name,
                                    elf.sections[i].size));
  }
}

// ptxas itself emits weak, undefined placeholders for shared memory that the driver reserves.
bool is_external(const ElfSymbol& symbol) {
  return symbol.section == SHN_UNDEF && !symbol.name.empty() &&
         symbol.name.rfind(".nv.reservedSmem", 0) != 0;
}

void check_externals(const Elf& elf, Diagnostics& diagnostics) {
  for (const ElfSymbol& symbol : elf.symbols)
    if (is_external(symbol))
      diagnostics
          .error("cubin.undefined", {},
                 fmt::format("'{}' is used and not defined in the cubin", symbol.name))
          .hint = "device code may not print, assert, allocate or launch";
  for (const ElfRelocation& relocation : elf.relocations) {
    if (relocation.symbol >= elf.symbols.size()) {
      diagnostics.error(
          "cubin.relocation", {},
          fmt::format("a relocation names symbol {} of {}", relocation.symbol, elf.symbols.size()));
      continue;
    }
    const ElfSymbol& symbol = elf.symbols[relocation.symbol];
    if (is_external(symbol) && relocation.section < elf.sections.size())
      diagnostics.error("cubin.relocation", {},
                        fmt::format("{} is patched with the address of '{}'",
                                    elf.sections[relocation.section].name, symbol.name));
  }
}

void check_parameters(const Cubin& cubin, int expected, Diagnostics& diagnostics) {
  for (const CubinEntry& entry : cubin.entries)
    if (entry.parameter_bytes != expected)
      diagnostics.error("cubin.parameters", {},
                        fmt::format("{} takes {} bytes of arguments, the launcher packs {}",
                                    entry.name, entry.parameter_bytes, expected));
}

std::optional<Elf> read_cuda_elf(std::string_view image, Diagnostics& diagnostics) {
  std::string why;
  const std::optional<Elf> elf = read_elf(image, why);
  if (elf && elf->machine != machine_cuda)
    why = fmt::format("the machine is number {}, CUDA's is {}", elf->machine, machine_cuda);
  if (why.empty()) return elf;
  diagnostics.error("cubin.not_elf", {}, fmt::format("not a cubin: {}", why));
  return std::nullopt;
}

Cubin describe(const Elf& elf) {
  Cubin cubin{.architecture = architecture(elf)};
  for (uint32_t i = 0; i < elf.symbols.size(); ++i)
    if (is_entry(elf.symbols[i])) cubin.entries.push_back(describe(elf, i));
  return cubin;
}

}  // namespace

std::optional<Cubin> read_cubin(std::string_view image, Diagnostics& diagnostics) {
  const std::optional<Elf> elf = read_cuda_elf(image, diagnostics);
  if (!elf) return std::nullopt;
  return describe(*elf);
}

std::optional<Cubin> audit_cubin(std::string_view image, const CubinExpectation& expected,
                                 Diagnostics& diagnostics) {
  const std::optional<Elf> elf = read_cuda_elf(image, diagnostics);
  if (!elf) return std::nullopt;
  const Cubin cubin = describe(*elf);
  check_target(*elf, expected.target, diagnostics);
  check_entries(cubin, expected.entries, diagnostics);
  check_globals(*elf, expected.dead_globals, diagnostics);
  check_externals(*elf, diagnostics);
  if (expected.parameter_bytes) check_parameters(cubin, *expected.parameter_bytes, diagnostics);
  return cubin;
}

}  // namespace kw::runtime
