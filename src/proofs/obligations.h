// What attention's obligations say, as reports and certificates have it.
#pragma once

namespace kw::proofs {

inline constexpr char kKeeps[] = "what this visit keeps is what the specification keeps";
inline constexpr char kOnce[] = "each key block of which a row keeps something is visited once";
inline constexpr char kThere[] = "each turn is about queries that there are";
inline constexpr char kFits[] = "what is computed of integers fits 32 bits";
inline constexpr char kSigns[] = "an index is not negative, and a divisor is positive";
inline constexpr char kOfSmallData[] = " where the data's lie within 2^29";
inline constexpr char kIntegers[] =
    "addresses, scores and conditions are made of the specification's integers";
inline constexpr char kTurns[] = "all agents take the same key blocks in the same order";
inline constexpr char kOrder[] = "each block of the output is computed once";
inline constexpr char kInTurn[] =
    "a block waits for the turn of the one before it, which is launched before it";
inline constexpr char kReals[] = "no number leaves the range of fp32 by what the program adds";
inline constexpr char kForm[] = "each turn of a loop over key blocks is one of an online softmax";
inline constexpr char kGradients[] =
    "each turn of a loop over queries adds to gradients, and hands on nothing else";
inline constexpr char kRounds[] =
    "a row loses less than a quarter of its largest value to rounding";
inline constexpr char kPlaces[] = "what is read of a list of key blocks is a word of it";

}  // namespace kw::proofs
