#include "timeline/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace kw::timeline {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double kLeft = 150, kTop = 64, kRow = 34, kBarHeight = 24, kPixels = 0.12;  // a cycle
constexpr double kShown = 14000;  // cycles of a picture
constexpr double kLegendColumn = 430;
constexpr size_t kMostLegend = 18;

std::string text_of(const Bar& bar) {
  if (!bar.stmt) return "?";
  std::string text = tl::print_head(*bar.stmt);
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

const char* name_of(BarKind kind) {
  switch (kind) {
    case BarKind::compute:
      return "compute";
    case BarKind::product:
      return "product";
    case BarKind::copy:
      return "copy";
    case BarKind::wait:
      return "wait";
  }
  return "";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

// Statements get colours in the order in which they appear; waits are grey.
class Colours {
 public:
  std::string of(const Bar& bar) {
    return bar.kind == BarKind::wait ? "#eceff1" : of(text_of(bar));
  }
  std::string of(const std::string& text) {
    const auto at = std::find(texts_.begin(), texts_.end(), text);
    const size_t n = size_t(at - texts_.begin());
    if (at == texts_.end()) texts_.push_back(text);
    static const char* const kColours[] = {"#7fb3e6", "#f4b183", "#a9d18e", "#d5a6bd",
                                           "#ffd966", "#9fc5c9", "#c9b3e6", "#e6a5a1",
                                           "#b7d7a8", "#a4c2f4", "#e0c097", "#b4a7d6"};
    return kColours[n % std::size(kColours)];
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

std::string text_at(double x, double y, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, escaped(text));
}

// The cycles that a picture shows.
struct Window {
  double from, to;
  double x(double cycles) const { return kLeft + (cycles - from) * kPixels; }
};

// The end of a block and the beginning of the next, where there are two.
Window window_of(const Timeline& timeline) {
  const double middle = timeline.marks.size() > 2 ? timeline.marks[1] : timeline.end / 2;
  const double from = std::max(0.0, std::min(middle + kShown / 2, timeline.end) - kShown);
  return {from, std::min(from + kShown, timeline.end)};
}

std::string draw_bar(const Bar& bar, double y, const Window& window, Colours& colours) {
  const double x = window.x(std::max(bar.begin, window.from));
  const double width = window.x(std::min(bar.end, window.to)) - x;
  const std::string text = text_of(bar);
  std::string out = fmt::format(
      "<g><title>{}: {:.0f} to {:.0f}</title><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" "
      "height=\"{}\" fill=\"{}\"/>",
      escaped(text), bar.begin, bar.end, x, y, std::max(width, 0.4), kBarHeight, colours.of(bar));
  const size_t fits = size_t(std::max(0.0, width - 4) / 5.6);  // of the 9 px font
  if (fits >= 4)
    out += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" class=\"s\">{}</text>", x + 2, y + 16,
                       escaped(text.size() <= fits ? text : text.substr(0, fits - 1) + "…"));
  return out + "</g>\n";
}

// A line and a number every thousand cycles.
std::string draw_axis(const Window& window, double bottom) {
  std::string out;
  for (double t = std::ceil(window.from / 1000) * 1000; t <= window.to; t += 1000) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#e3e6e8\"/>\n",
        window.x(t), kTop - 8, bottom);
    out += text_at(window.x(t) + 3, kTop - 12, fmt::format("{:.0f}", t), " class=\"a\"");
  }
  return out;
}

std::string draw_legend(Colours& colours, double top) {
  const std::vector<std::string> texts = colours.texts();
  std::string out;
  const size_t most = std::min(kMostLegend, texts.size());
  for (size_t n = 0; n <= most; ++n) {
    const double x = 8 + double(n % 3) * kLegendColumn, y = top + double(n / 3) * 18;
    std::string text = n < most ? texts[n] : "waits, each at its statement";
    out += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", x,
                       y - 10, n < most ? colours.of(text) : "#eceff1");
    if (text.size() > 76) text = text.substr(0, 75) + "…";
    out += text_at(x + 18, y, text, " class=\"s\"");
  }
  return out;
}

}  // namespace

std::string to_trace(const Timeline& timeline, double mhz) {
  OrderedJson events = OrderedJson::array();
  const auto name = [&](const char* what, int pid, int tid, const std::string& text) {
    events.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", text}}}});
  };
  for (size_t n = 0; n < timeline.tracks.size(); ++n) {
    const Track& track = timeline.tracks[n];
    name("process_name", track.cta, int(n), fmt::format("CTA {}", track.cta));
    name("thread_name", track.cta, int(n), track.name);
  }
  for (const Bar& bar : timeline.bars)
    events.push_back({{"ph", "X"},
                      {"name", text_of(bar)},
                      {"cat", name_of(bar.kind)},
                      {"pid", timeline.tracks[bar.track].cta},
                      {"tid", bar.track},
                      {"ts", bar.begin / mhz},
                      {"dur", (bar.end - bar.begin) / mhz}});
  return OrderedJson{{"displayTimeUnit", "ns"}, {"traceEvents", events}}.dump(1) + "\n";
}

std::string to_svg(const Timeline& timeline, const std::string& title) {
  const Window window = window_of(timeline);
  std::vector<double> y(timeline.tracks.size(), -1);
  double bottom = kTop;
  std::string labels, bars;
  for (size_t n = 0; n < timeline.tracks.size(); ++n) {
    if (timeline.tracks[n].cta != 0) continue;
    y[n] = bottom;
    labels += text_at(8, bottom + 16, timeline.tracks[n].name);
    bottom += kRow;
  }
  Colours colours;
  for (const Bar& bar : timeline.bars)
    if (y[bar.track] >= 0 && bar.end > window.from && bar.begin < window.to)
      bars += draw_bar(bar, y[bar.track], window, colours);
  const std::string legend = draw_legend(colours, bottom + 30);
  const double width = std::max(window.x(window.to) + 24, 3 * kLegendColumn);
  const double height = bottom + 40 + double((kMostLegend + 2) / 3 + 1) * 18;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" "
             "font-size=\"12\">\n"
             "<style>.s{{font-size:9px}}.a{{font-size:9px;fill:#78909c}}</style>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             width, height) +
         text_at(8, 22, title, " font-weight=\"bold\"") + draw_axis(window, bottom) + labels +
         bars + legend + "</svg>\n";
}

}  // namespace kw::timeline
