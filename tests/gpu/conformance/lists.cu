// The pre-pass: ranges of elements by a warp, and lists of key blocks by a CTA. What a
// group of rows keeps of a key block is drawn beforehand; the list is made again here, in plain
// loops. CTAs have few warps and many, key blocks fill no chunk, one and several.
#include <algorithm>

#include "conformance.h"

namespace conformance {
namespace {

template <class T> using Table = kw::Tensor<const T, 'B', 'N'>;

// ---- ranges
struct Box {
  int first[2], last[2];
};

template <class T> __global__ void range_kernel(Table<T> table, const Box* boxes, int count, int* out) {
  const int warps = blockDim.x / 32;
  for (int n = threadIdx.x / 32; n < count; n += warps) {
    const Box b = boxes[n];
    const int least = kw::least(table, b.first[0], b.last[0], b.first[1], b.last[1]);
    const int most = kw::greatest(table, b.first[0], b.last[0], b.first[1], b.last[1]);
    if (int(threadIdx.x % 32) == n % 32) out[2 * n] = least, out[2 * n + 1] = most;  // any lane
  }
}

// Of bools, rows of one kind but for one element, so that every element decides for some box. Where the
// stride is a multiple of 4, most boxes are words of memory.
template <class T> void ranges(Report& report, const char* what, int low, int high, int kStride = 307) {
  constexpr int kRows = 21, kColumns = 300, kBoxes = 400;
  Random random(3);
  std::vector<int> values(kRows * kStride);
  for (int& x : values) x = random.integer(low, high);
  if (high == 1)
    for (int i = 0; i < kRows; ++i) {
      std::fill_n(&values[i * kStride], kStride, i / 7 % 2);
      values[i * kStride + random.integer(0, kColumns - 1)] ^= 1;
    }
  std::vector<T> table(values.begin(), values.end());
  std::vector<Box> boxes(kBoxes);
  std::vector<int> least, most;
  for (int n = 0; n < kBoxes; ++n) {
    Box& b = boxes[n];
    const int edge = n % 3 == 0 ? 9 : 0;  // beyond the tensor, on either side
    b.first[0] = random.integer(0, kRows - 1), b.last[0] = n % 2 ? b.first[0] : random.integer(b.first[0], kRows - 1);
    b.first[1] = random.integer(-edge, kColumns - 1), b.last[1] = random.integer(b.first[1], kColumns - 1 + edge);
    if (n % 5 == 0) b.last[1] = b.first[1];
    if (kStride % 4 == 0 && n % 4 != 0) {
      b.first[1] = std::max(b.first[1], 0) / 4 * 4;
      b.last[1] = std::min(b.first[1] + random.integer(1, 40) * 4, kColumns) - 1;
    }
    int lowest = INT32_MAX, highest = INT32_MIN;
    // An index outside of a dimension reads its last element, and a range goes up to there.
    const bool outside = b.first[1] < 0 || b.last[1] >= kColumns;
    const int from = std::clamp(b.first[1], 0, kColumns - 1), to = outside ? kColumns - 1 : b.last[1];
    for (int i = b.first[0]; i <= b.last[0]; ++i)
      for (int j = from; j <= to; ++j) {
        const int x = values[i * kStride + j];
        lowest = std::min(lowest, x), highest = std::max(highest, x);
      }
    least.push_back(lowest), most.push_back(highest);
  }
  std::vector<unsigned char> bytes(table.size() * sizeof(T));
  for (size_t n = 0; n < table.size(); ++n) std::memcpy(&bytes[n * sizeof(T)], &values[n], sizeof(T));
  if (sizeof(T) == 8)
    for (size_t n = 0; n < table.size(); ++n) {
      const long long wide = values[n];
      std::memcpy(&bytes[n * 8], &wide, 8);
    }
  Device<unsigned char> data(bytes);
  Device<Box> asked(boxes);
  Device<int> out(2 * kBoxes);
  running = "least";
  launch(range_kernel<T>, 1, 128, Table<T>{reinterpret_cast<const T*>(data.data()), {kStride, 1}, {kRows, kColumns}},
         asked.data(), kBoxes, out.data());
  std::vector<int> got_least, got_most;
  const std::vector<int> got = out.read();
  for (int n = 0; n < kBoxes; ++n) got_least.push_back(got[2 * n]), got_most.push_back(got[2 * n + 1]);
  report.exact("least", what, got_least, least);
  report.exact("greatest", what, got_most, most);
}

// ---- lists
constexpr int kGroups = 4;

// keeps[n * kGroups + r]: 0 nothing, 1 something, 2 everything.
__global__ void list_kernel(const int* keeps, int first, int end, int words, int* out) {
  const kw::Scratch lists = [&] {
    kw::Scratch s;
    s.words = out;
    return s;
  }();
  const int w = kw::block_index(gridDim.x);
  kw::list_blocks<kGroups>(lists, w * words, first, end, [&](int n, int r, int s) -> kw::Kept {
    bool some = false, all = true;
    for (int g = r; g < s; ++g) {
      const int kept = keeps[(w * end + n) * kGroups + g];
      some = some || kept > 0;
      all = all && kept == 2;
    }
    return {some, all};
  });
}

std::vector<int> list_of(const std::vector<int>& keeps, int w, int first, int end) {
  std::vector<int> full, partial;
  std::vector<int> last(kGroups, -1);
  for (int n = first; n < end; ++n) {
    const int* k = &keeps[(w * end + n) * kGroups];
    bool some = false, all = true;
    for (int g = 0; g < kGroups; ++g) some |= k[g] > 0, all &= k[g] == 2;
    if (all) {
      full.push_back(n);
    } else if (some) {
      for (int g = 0; g < kGroups; ++g)
        if (k[g] > 0) last[g] = int(partial.size());
      partial.push_back(n);
    }
  }
  if (full.empty() && partial.empty()) partial.push_back(0);
  std::vector<int> out = {int(full.size() + partial.size()), int(full.size())};
  for (int g = 0; g < kGroups; ++g) out.push_back(std::max(1, int(full.size()) + last[g] + 1));
  out.insert(out.end(), full.begin(), full.end());
  out.insert(out.end(), partial.begin(), partial.end());
  return out;
}

// `often`: of 100 groups and key blocks, how many keep something.
void lists(Report& report, const char* what, int threads, int first, int end, int often) {
  constexpr int kLists = 3, kUntouched = -7;
  Random random(unsigned(end + often));
  std::vector<int> keeps(kLists * end * kGroups);
  for (size_t n = 0; n < keeps.size(); n += kGroups) {
    const int whole = random.integer(0, 99);
    for (int g = 0; g < kGroups; ++g)
      keeps[n + g] = whole < often / 3 ? 2 : random.integer(0, 99) < often ? random.integer(1, 2) : 0;
  }
  const int words = 2 + kGroups + end;
  Device<int> asked(keeps), out(kLists * words, kUntouched);
  running = "list_blocks";
  launch(list_kernel, kLists, threads, asked.data(), first, end, words, out.data());
  std::vector<int> want(kLists * words, kUntouched);
  for (int w = 0; w < kLists; ++w) {
    const std::vector<int> list = list_of(keeps, w, first, end);
    std::copy(list.begin(), list.end(), want.begin() + w * words);
  }
  report.exact("list_blocks", what, out.read(), want);
}

}  // namespace

void test_lists(Report& report) {
  ranges<int>(report, "ints", -1000000, 1000000);
  ranges<kw::i64>(report, "ints of 64 bits", -2000000000, 2000000000);
  ranges<bool>(report, "bools", 0, 1);
  ranges<bool>(report, "bools in words", 0, 1, 308);
  lists(report, "some of 64 key blocks", 512, 0, 64, 30);
  lists(report, "from the 5th to the 70th", 128, 5, 70, 60);
  lists(report, "none", 512, 0, 40, 0);
  lists(report, "one key block", 512, 0, 1, 90);
  lists(report, "more than a chunk", 512, 3, 20000, 40);
  lists(report, "one warp", 32, 0, 100, 50);
}

}  // namespace conformance
