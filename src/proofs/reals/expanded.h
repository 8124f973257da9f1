// Formulas multiplied out, to see whether terms of them cancel.
//
// (x + 4096) - 4096 is x, and 1 - 1 / (1 + e) is e / (1 + e): the same formula over real numbers,
// of which fp32 has lost the small values. Multiplied out as a quotient of sums, each has a term
// twice, with opposite signs; so has every detour by which terms cancel, whatever its degree.
// And x * x / x, which is 0 or infinite where x is small or large, has a letter above and below.
// Products and quotients are followed, exponentials as products of powers, tanh and sigmoid as
// quotients of exponentials; a choice (where, max, abs) as all of its arms. What else there is (a
// logarithm, an integer among reals, an element of a tensor) is a letter, by its text.
//
// And terms that share a factor (a * x - a * y) have been multiplied out: of nearly equal ones that
// is rounded before the difference is taken, where a * (x - y) takes it exactly.
//
// No term cancels is what is claimed, so what is too large to multiply out counts as one that does.
//
// Where the function's own terms cancel, it matters which sums are taken: of x and y near each
// other (x - y) * (x + y) is exact and x * x - y * y is not. So the sums that are written are kept,
// each multiplied out, without its numbers, by names that program and function share: `plain` ones.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kw::proofs {

// A product of letters by their powers, and a sum of products by their coefficients.
using Product = std::map<std::string, double>;
using Sum = std::map<Product, double>;

struct Quotient {
  Sum over, under;
  bool operator==(const Quotient&) const = default;
  bool operator<(const Quotient& o) const {
    return std::tie(over, under) < std::tie(o.over, o.under);
  }
};

// What a formula is, by each way through its choices. Without any it is infinite: a key that is
// dropped.
using Arms = std::set<Quotient>;

class Expanded {
 public:
  static constexpr const char *kUnknown = "?", *kNumber = "", *kInteger = "#int",
                              *kScore = "#score", *kOutput = "#output", *kTotal = "#total";
  // A row's log-sum, and its gradient.
  static constexpr const char *kLogSum = "lse@i", *kOfLogSum = "d_lse@i";
  // What a row hands on (a sum, a reference) and what is the same for all of a launch.
  static constexpr const char *kOfRow = "#", *kOfLaunch = "launch ";
  // Data of a row, of a key, of both, and of neither.
  static constexpr const char *kRow = "@i", *kKey = "@j", *kBoth = "@ij", *kNeither = "@";

  static std::string place(bool row, bool key) {
    return row && key ? kBoth : key ? kKey : row ? kRow : kNeither;
  }

  Arms number(double x) const;
  // `plain`: what it is called in sums. kNumber: it is left out there, as numbers are.
  Arms letter(const std::string& name, const std::string& plain = kUnknown);
  Arms sum(const Arms& a, const Arms& b, double sign);
  Arms product(const Arms& a, const Arms& b);
  Arms inverse(const Arms& a) const;
  Arms power(const Arms& a, double exponent);
  Arms exp2(const Arms& a);
  Arms tanh(const Arms& a);
  Arms either(Arms a, const Arms& b);
  // Notes that a sum of these is written, of which `shares` is asked.
  void written(const Arms& a, const Arms& b, double sign);
  // The letters of these are the same for all of a launch.
  void constant(const Arms& a);

  // Whether terms of something that was built have cancelled.
  bool cancels() const { return noted_.cancels; }
  // Whether terms of a sum that was written have a factor in common, which is no power of two.
  bool shares() const { return noted_.shares; }
  // The sums of two terms or more that were written.
  const std::set<std::string>& sums() const { return noted_.sums; }
  // What these three say, since it was forgotten.
  struct Noted {
    bool cancels = false, shares = false;
    std::set<std::string> sums;
  };
  const Noted& noted() const { return noted_; }
  void note(const Noted& found) { noted_ = found; }
  void forget() { noted_ = {}; }
  // What the letters of these are called in sums.
  std::set<std::string> names(const Arms& a) const;
  // What each of these is, by the names of its terms: of what a row is summed up. With `sums`, of
  // those that are of several terms.
  std::set<std::string> terms(const Arms& a, bool sums = false) const;

 private:
  void add(Sum& to, const Product& p, double coefficient);
  Sum multiplied(const Sum& a, const Sum& b);
  template <typename Of>
  Arms each(const Arms& a, const Arms& b, const Of& of);

  // How many elements of data, scores and coordinates a product is of.
  double elements(const Product& p) const;
  bool common(const Product& p, double x, const Product& q, double y) const;

  std::string plain(const Product& p, bool launch) const;
  std::string plain(const Quotient& x) const;
  bool is_of_row(const Sum& sum) const;
  std::string plain_exponent(const Quotient& x) const;
  std::string plain_sum(const Quotient& x, bool launch) const;

  std::set<std::string> constants_;
  std::map<std::string, std::string> plain_;  // of each letter
  Noted noted_;
};

}  // namespace kw::proofs
