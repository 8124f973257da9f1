// A cubin with one entry and no code, as bytes: enough for whatever reads the ELF image, on
// machines that have no compiler for one.
#pragma once
#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace kw {

inline std::string tiny_cubin(const std::string& entry, uint16_t parameter_bytes) {
  const std::string names[] = {"",        ".shstrtab",      ".strtab",
                               ".symtab", ".text." + entry, ".nv.info." + entry};
  std::string shstrtab, strtab = std::string(1, '\0') + entry + '\0';
  std::vector<uint32_t> name_at;
  for (const std::string& name : names) {
    name_at.push_back(shstrtab.size());
    shstrtab += name + '\0';
  }
  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = 1;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbols[1].st_other = 0x10;
  symbols[1].st_shndx = 4;
  symbols[1].st_size = 16;
  // EIFMT_SVAL, EIATTR_KPARAM_INFO, 12 bytes: index, ordinal, offset, size in the upper bits.
  const uint32_t size = uint32_t{parameter_bytes} << 18;
  std::string info{4, 0x17, 12, 0};
  info += std::string(8, '\0') + std::string(reinterpret_cast<const char*>(&size), sizeof size);
  const std::string contents[] = {"",
                                  shstrtab,
                                  strtab,
                                  std::string(reinterpret_cast<char*>(symbols), sizeof symbols),
                                  std::string(16, '\0'),
                                  info};
  const uint32_t types[] = {SHT_NULL, SHT_STRTAB, SHT_STRTAB, SHT_SYMTAB, SHT_PROGBITS, 0x70000000};

  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_machine = 190;
  header.e_flags = 90 << 8;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 6;
  header.e_shstrndx = 1;
  std::string body;
  Elf64_Shdr sections[6] = {};
  for (int i = 0; i < 6; ++i) {
    sections[i].sh_name = name_at[i];
    sections[i].sh_type = types[i];
    sections[i].sh_offset = sizeof header + body.size();
    sections[i].sh_size = contents[i].size();
    body += contents[i];
  }
  sections[3].sh_link = 2;
  header.e_shoff = sizeof header + body.size();
  return std::string(reinterpret_cast<char*>(&header), sizeof header) + body +
         std::string(reinterpret_cast<char*>(sections), sizeof sections);
}

}  // namespace kw
