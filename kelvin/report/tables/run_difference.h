#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kelvin/report/tables/table.h"
#include "kelvin/runs/run_folder.h"

namespace kelvin {

// Something both runs tell by the same name, as text; empty where a run has no such thing.
struct ToldByTwo {
  std::string name;
  std::string a;
  std::string b;
};

// The same thing, measured by the same definition in both runs.
struct MeasuredByTwo {
  Reading a;
  double b = 0;
  bool is_default = true;  // the first of its name and place in A, as elsewhere
};

// How run B differs from run A.
struct RunDifference {
  std::vector<ToldByTwo> settings = {};      // by full name
  std::vector<ToldByTwo> metadata = {};      // what may change results: versions, threads, CPU
  std::vector<MeasuredByTwo> readings = {};  // in the order of A
  int64_t in_common = 0;                     // readings that were compared, equal or not
  // Readings that are not compared because the other run has none by the same definition.
  int64_t only_in_a = 0;
  int64_t only_in_b = 0;
};

// With `all` also what is equal, and the points of curves such as singular values.
RunDifference run_difference(const Run& a, const Run& b, bool all = false);

// For people (text, md) a table for each of settings, metadata and readings, these by their default
// definition unless all are asked for; for programs (csv, json, jsonl) one table of all with exact
// numbers.  A difference is B - A.  `width` is that of render.
std::string difference_text(const RunDifference& difference, TableFormat format,
                            bool with_definitions = false, size_t width = 0);

// "2 readings of A and 1 of B are not compared: ..."; empty if all are.
std::string not_compared_text(const RunDifference& difference);

}  // namespace kelvin
