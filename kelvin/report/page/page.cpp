#include "kelvin/report/page/page.h"

#include "kelvin/core/check.h"
#include "kelvin/report/figures/figures.h"
#include "kelvin/report/page/html.h"
#include "kelvin/report/page/sections.h"
#include "kelvin/report/plot/svg.h"

namespace kelvin {
namespace {

// More figures than this under one heading wait until they are asked for.
constexpr size_t kMostOpenFigures = 8;

std::string figure_html(const RunFigure& figure) {
  const auto svg = std::visit([](const auto& each) { return svg_of(each); }, figure.figure);
  const auto title = std::visit([](const auto& each) { return each.title; }, figure.figure);
  std::string html = "<figure id=\"" + slug(figure.name) + "\">\n<h3>" + escape_html(title) +
                     "</h3>\n" + svg + "<figcaption>" + escape_html(figure.how_to_read);
  if (!figure.definition.empty()) {
    html += "<small>Definition: " + escape_html(figure.definition) + "</small>";
  }
  return html + "</figcaption>\n</figure>\n";
}

}  // namespace

std::string page_opening(const std::string& title) {
  return R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="kelvin">
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M3 13 13 3' stroke='%230068a8' stroke-width='3'/%3E%3Cpath d='M8 13h5' stroke='%23cf5200' stroke-width='3'/%3E%3C/svg%3E">
<title>)" +
         escape_html(title) + "</title>\n<style>" + figure_css() + "\n" +
         report_assets().at("page") + "</style>\n</head>\n<body>\n<main>\n";
}

// The script shows what lies nearest to the pointer; without it the browser's own tooltips do.
std::string page_ending() {
  return "</main>\n<div id=\"readout\" aria-hidden=\"true\"></div>\n<script>\n" +
         report_assets().at("readout") + "</script>\n</body>\n</html>\n";
}

std::string figure_sections(const std::vector<RunFigure>& figures) {
  std::string html;
  for (size_t start = 0; start < figures.size();) {
    size_t end = start;
    std::string section;
    while (end < figures.size() && figures[end].section == figures[start].section) {
      section += figure_html(figures[end++]);
    }
    section = "<div class=\"figures\">\n" + section + "</div>\n";
    html += heading(figures[start].section);
    html += end - start <= kMostOpenFigures ? section
                                            : details(counted(end - start, "figure"), section);
    start = end;
  }
  return html;
}

std::string render_page(const PageInput& input) {
  check(!input.runs.empty(), "report: needs at least one run, got none");
  const auto comparison = compare(input.runs);
  auto html = page_opening(input.title);
  html += summary_section(input, comparison);
  html += comparison_section(input, comparison);
  html += caveat_section(input);
  html += verdict_section(input);
  html += figure_sections(run_figures(input.runs, comparison, input.cases));
  html += run_section(input, comparison);
  html += definition_section(input, comparison);
  return html + page_ending();
}

}  // namespace kelvin
