// A mask's tiles as SVG, queries downwards, keys to the right; one unit is one entry. Tiles that
// are alike and side by side are one stroke; within partial tiles the kept entries are drawn.
#include "report/mask_view.h"

namespace kw::report {
namespace {

using transfer::Kept;

constexpr size_t kMostStrokes = 6000;  // more are only noise, and a large file

// A path of horizontal strokes, for each row of tiles those of one kind.
std::string strokes_of(const MaskPicture& p, Kept what) {
  std::string d;
  for (int64_t m = 0; m < p.tile_rows(); ++m)
    for (int64_t n = 0; n < p.tile_columns();) {
      int64_t end = n;
      while (end < p.tile_columns() && p.tiles[m * p.tile_columns() + end] == what) ++end;
      if (end > n)
        d += fmt::format("M{} {}h{}", n * p.tile.columns, m * p.tile.rows + p.tile.rows / 2,
                         std::min(end * p.tile.columns, p.keys) - n * p.tile.columns);
      n = std::max(end, n + 1);
    }
  return d;
}

std::string kept_entries(const MaskPicture& p) {
  std::string d;
  size_t strokes = 0;
  for (size_t r = 0; r < p.kept_rows.size(); ++r)
    for (const Run& run : p.kept_rows[r]) {
      d += fmt::format("M{} {:g}h{}", run.first, double(r) * p.step + p.step / 2.0,
                       run.last - run.first);
      if (++strokes > kMostStrokes) return "";
    }
  return d;
}

std::string grid(const MaskPicture& p) {
  std::string d;
  for (int64_t m = 0; m <= p.tile_rows(); ++m)
    d += fmt::format("M0 {}h{}", std::min(m * p.tile.rows, p.queries), p.keys);
  for (int64_t n = 0; n <= p.tile_columns(); ++n)
    d += fmt::format("M{} 0v{}", std::min(n * p.tile.columns, p.keys), p.queries);
  return d;
}

Markup path(const char* name, const std::string& d, double width) {
  if (d.empty()) return {};
  return html("<path class=\"{}\" stroke-width=\"{:g}\" d=\"{}\"/>\n", name, width, d);
}

}  // namespace

Markup draw_mask(const MaskPicture& p) {
  return html(
      "<svg class=\"mask\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"The mask, in "
      "tiles: {} skipped, {} kept whole, {} kept in part\">\n<rect class=\"skipped\" "
      "width=\"{}\" height=\"{}\"/>\n{}{}{}{}</svg>\n",
      p.keys, p.queries, p.count(Kept::none), p.count(Kept::all), p.count(Kept::partial), p.keys,
      p.queries, path("full", strokes_of(p, Kept::all), double(p.tile.rows)),
      path("partial", strokes_of(p, Kept::partial), double(p.tile.rows)),
      path("kept", kept_entries(p), double(p.step)),
      path("lines", grid(p), double(std::max(p.queries, p.keys)) / 700));
}

Markup mask_legend(const MaskPicture& p) {
  const auto entry = [&](const char* name, const char* words, Kept what) {
    const double share = 100 * double(p.count(what)) / double(p.tiles.size());
    return html("<li><span class=\"swatch {}\"></span><b>{}</b> {} ({:.0f} %)</li>\n", name,
                p.count(what), words, share);
  };
  return html("<ul class=\"legend\">{}{}{}</ul>\n",
              entry("skipped", "tiles skipped: nothing kept", Kept::none),
              entry("full", "kept whole: no mask needed", Kept::all),
              entry("partial", "kept in part: masked", Kept::partial));
}

Markup mask_caption(const Masks& masks, const MaskPicture& p) {
  std::string where =
      fmt::format("{} queries (down) by {} keys (right), in the kernel's tiles of {} by {}",
                  with_commas(p.queries), with_commas(p.keys), p.tile.rows, p.tile.columns);
  if (p.b || p.h || masks.pictures.size() > 1)
    where += fmt::format("; batch entry {}, head {}", p.b, p.h);
  std::string data;
  for (const std::string& one : masks.data) data += (data.empty() ? "" : "; ") + one;
  const std::string inputs =
      masks.stretched > 1 ? fmt::format("Your example_inputs(), stretched to {} times their length",
                                        masks.stretched)
                          : "Your example_inputs()";
  return html("<p class=\"note\">{}. {}{}{}.</p>\n", where, inputs,
              masks.cropped ? ", their first part" : "", data.empty() ? "" : ": " + data);
}

}  // namespace kw::report
