// Work that several threads share, one of them the caller's.
//
// An exception that leaves a thread ends the process, and one that leaves the caller's own part
// unwinds past threads that nobody has joined, which ends it too, with a message that says nothing.
// Here all threads are waited for whatever happens, and the first exception is the caller's.
#pragma once
#include <cstddef>
#include <functional>

namespace kw {

// Runs work() on so many threads at once and returns when all have ended. Rethrows what the first
// of them threw; the others have ended by themselves, so work() takes what is next until nothing is
// left.
void on_threads(int threads, const std::function<void()>& work);

// Runs work(n) of every n below count, each once, by whichever thread is free.
void each_on_threads(int threads, size_t count, const std::function<void(size_t)>& work);

}  // namespace kw
