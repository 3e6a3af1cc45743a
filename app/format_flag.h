#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "kelvin/report/table.h"

namespace kelvin {

// -o: how results are printed.
class FormatFlag {
 public:
  void declare(CLI::App& command) {
    command.add_option("-o,--format", name_, "how to print: text, md, csv, json or jsonl")
        ->type_name("FORMAT");
  }

  TableFormat format() const { return table_format(name_); }

 private:
  std::string name_ = "text";
};

}  // namespace kelvin
