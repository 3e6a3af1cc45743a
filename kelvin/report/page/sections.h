#pragma once

#include <string>
#include <vector>

#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/page.h"
#include "kelvin/report/tables/comparison.h"

namespace kelvin {

// The parts of a page as HTML, in its order; empty where the runs have nothing to say.  Figures
// come before the runs (page.cpp).

// What was run, and what came out of it, in sentences.
std::string summary_section(const PageInput& input, const Comparison& comparison);
// The tables of means over seeds, of each seed and of other definitions.
std::string comparison_section(const PageInput& input, const Comparison& comparison);
// Why numbers of some run do not mean what they seem to.
std::string caveat_section(const PageInput& input);
// What recipes claim, and whether the runs bear it out.
std::string verdict_section(const PageInput& input);
// Where the numbers come from: status, time, machine and settings of each run.
std::string run_section(const PageInput& input, const Comparison& comparison);
// What the readings on the page mean, by the glossary and by their own definitions.
std::string definition_section(const PageInput& input, const Comparison& comparison);

// What every page is made of: all up to its content, figures under the headings of their sections,
// and all after its content.
std::string page_opening(const std::string& title);
std::string figure_sections(const std::vector<RunFigure>& figures);
std::string page_ending();

}  // namespace kelvin
