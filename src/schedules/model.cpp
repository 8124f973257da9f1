#include "schedules/model.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::exec::schedule {

int Tables::region(int array, const Region& r) {
  for (size_t n = 0; n < regions.size(); ++n)
    if (regions[n].array == array && regions[n].region == r) return int(n);
  regions.push_back({array, r});
  return int(regions.size()) - 1;
}

int Tables::work(const Work& w) {
  const size_t at = size_t(std::find(works.begin(), works.end(), w) - works.begin());
  if (at == works.size()) works.push_back(w);
  return int(at);
}

bool Tables::divide() {
  // Places that the same regions contain are one cell.
  std::vector<std::vector<int>> cell_at(arrays.size());
  std::vector<int> count(arrays.size(), 0);
  for (size_t a = 0; a < arrays.size(); ++a) {
    std::map<std::vector<bool>, int> classes;
    for (int place = 0; place < arrays[a].groups * arrays[a].panels; ++place) {
      std::vector<bool> in;
      for (const Use& u : regions) in.push_back(u.array == int(a) && u.region[place]);
      const auto [at, fresh] = classes.try_emplace(in, int(classes.size()));
      cell_at[a].push_back(at->second);
    }
    count[a] = int(classes.size());
    if (count[a] > kMostCells) return false;
  }
  cells.assign(regions.size(), 0);
  for (size_t n = 0; n < regions.size(); ++n) {
    const std::vector<int>& at = cell_at[regions[n].array];
    for (size_t place = 0; place < at.size(); ++place)
      if (regions[n].region[place]) cells[n] |= Cells(1) << at[place];
  }
  total_cells = 0;
  for (Strand& s : strands) {
    s.cells = count[s.array];
    s.first = total_cells;
    total_cells += s.cells * s.length;
  }
  return true;
}

std::string name(const Tables& tables, int actor) { return tables.actors[actor].name; }

std::string name(const Tables& tables, const Strand& strand, int64_t use) {
  std::string text = strand.name;
  if (strand.tagged) text += fmt::format("[{}]", use);
  return tables.ctas > 1 ? text + fmt::format(" of CTA {}", strand.cta) : text;
}

}  // namespace kw::exec::schedule
