// Every offset and count comes from the image and is checked before use: a truncated or hostile
// file is refused, never followed.
#include "compile/elf.h"

#include <elf.h>

#include <cstring>

namespace kw::runtime {
namespace {

// A struct at `offset`; false when it does not lie inside the image.
template <class T>
bool read_at(std::string_view image, uint64_t offset, T& out) {
  if (offset > image.size() || image.size() - offset < sizeof(T)) return false;
  memcpy(&out, image.data() + offset, sizeof(T));
  return true;
}

// The zero-terminated string at `offset` of a string table.
bool name_at(std::string_view table, uint64_t offset, std::string_view& name) {
  if (offset >= table.size()) return false;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return false;
  name = table.substr(offset, end - offset);
  return true;
}

bool read_sections(std::string_view image, const Elf64_Ehdr& header, Elf& elf) {
  std::vector<uint32_t> names;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr h;
    if (!read_at(image, header.e_shoff + uint64_t{i} * sizeof h, h)) return false;
    ElfSection section{.type = h.sh_type,
                       .flags = h.sh_flags,
                       .size = h.sh_size,
                       .link = h.sh_link,
                       .info = h.sh_info};
    if (h.sh_type != SHT_NOBITS && h.sh_type != SHT_NULL) {
      if (h.sh_offset > image.size() || image.size() - h.sh_offset < h.sh_size) return false;
      section.bytes = image.substr(h.sh_offset, h.sh_size);
    }
    elf.sections.push_back(section);
    names.push_back(h.sh_name);
  }
  if (header.e_shstrndx >= elf.sections.size()) return false;
  for (size_t i = 0; i < names.size(); ++i)
    if (!name_at(elf.sections[header.e_shstrndx].bytes, names[i], elf.sections[i].name))
      return false;
  return true;
}

bool read_symbols(const ElfSection& table, Elf& elf) {
  if (table.link >= elf.sections.size()) return false;
  for (uint64_t at = 0; at < table.bytes.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym s;
    ElfSymbol symbol;
    if (!read_at(table.bytes, at, s) ||
        !name_at(elf.sections[table.link].bytes, s.st_name, symbol.name))
      return false;
    symbol.type = ELF64_ST_TYPE(s.st_info);
    symbol.binding = ELF64_ST_BIND(s.st_info);
    symbol.other = s.st_other;
    symbol.section = s.st_shndx;
    symbol.value = s.st_value;
    symbol.size = s.st_size;
    elf.symbols.push_back(symbol);
  }
  return true;
}

// Both kinds begin with offset and info; the addend of RELA is of no interest here.
bool read_relocations(const ElfSection& table, Elf& elf) {
  const size_t stride = table.type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
  for (uint64_t at = 0; at < table.bytes.size(); at += stride) {
    Elf64_Rel r;
    if (!read_at(table.bytes, at, r)) return false;
    elf.relocations.push_back({static_cast<uint32_t>(ELF64_R_SYM(r.r_info)), table.info});
  }
  return true;
}

}  // namespace

std::optional<Elf> read_elf(std::string_view image, std::string& why) {
  Elf64_Ehdr header;
  if (!read_at(image, 0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    why = "no 64-bit little-endian ELF header";
    return std::nullopt;
  }
  Elf elf{.machine = header.e_machine,
          .abi_version = header.e_ident[EI_ABIVERSION],
          .flags = header.e_flags};
  if (!read_sections(image, header, elf)) {
    why = "a section lies outside the file";
    return std::nullopt;
  }
  for (const ElfSection& section : elf.sections) {
    if (section.type == SHT_SYMTAB && !read_symbols(section, elf)) {
      why = "the symbol table does not fit its section";
      return std::nullopt;
    }
    if ((section.type == SHT_REL || section.type == SHT_RELA) && !read_relocations(section, elf)) {
      why = "a relocation table does not fit its section";
      return std::nullopt;
    }
  }
  return elf;
}

}  // namespace kw::runtime
