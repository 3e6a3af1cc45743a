#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/report/figures/figures.h"
#include "kelvin/report/tables/table.h"

namespace kelvin {

// What a computation without runs has to tell: made of its readings alone, a file for each kind.
struct Study {
  std::string title = {};
  std::vector<std::string> findings = {};  // sentences with the numbers they rest on
  std::vector<Table> tables = {};
  std::vector<RunFigure> figures = {};
};

// Figure 6 of Unpacking Softmax, see kelvin/experiment/tasks/theory_fig6.h.
Study fig6_study(const Readings& readings);
// Proposition 3.1, see theory_prop31.h there.
Study prop31_study(const Readings& readings);
// Proposition 3.2, see theory_prop32.h.
Study prop32_study(const Readings& readings);
// Dispersion of softmax, see theory_dispersion.h.
Study dispersion_study(const Readings& readings);
// The same of heads trained for max retrieval, see evaluate_attention.h.
Study heads_study(const Readings& readings);
// Networks for max retrieval on sets of many sizes, see evaluate_attention.h; `heat` is shown as it
// is.
Study retrieval_study(const Readings& readings, const std::vector<HeatMapFigure>& heat);
// The polynomial of an adaptive temperature, see fit_beta.h.
Study beta_study(const Readings& readings);

// The attention of a language model, see inspect_language.h; `heat` and what it has `written` are
// shown as they are.
Study language_study(const Readings& readings, const std::vector<HeatMapFigure>& heat,
                     const std::string& written);

// Tables and findings for a terminal of this width, 0 for any, or as Markdown.
std::string study_text(const Study& study, TableFormat format, size_t width);

// One HTML file that needs nothing else: findings, tables, figures, and what the readings mean.
std::string study_page(const Study& study, const Readings& readings, const std::string& command);

// What studies share.

// Those of this name whose definition has all of these entries.
Readings readings_named(const Readings& readings, const std::string& name,
                        const Definition& with = Definition::object());

// The first of them; throws an Error if there is none.
Reading reading_named(const Readings& readings, const std::string& name,
                      const Definition& with = Definition::object());

bool has_entries(const Definition& definition, const Definition& with);

// The numbers that readings of a name have under a key of their definitions, each once, ascending.
std::vector<double> numbers_under(const Readings& readings, const std::string& name,
                                  const std::string& key);

// A point for each reading of the name: its value, with its interval, over the number under `key`.
std::vector<PlotPoint> points_over(const Readings& readings, const std::string& name,
                                   const std::string& key,
                                   const Definition& with = Definition::object());

}  // namespace kelvin
