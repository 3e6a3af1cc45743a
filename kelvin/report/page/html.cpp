#include "kelvin/report/page/html.h"

#include <fmt/format.h>

#include <cctype>

namespace kelvin {
namespace {

// Length of the UTF-8 sequence at the start of `text`; 0 if there is none.
size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80                    ? 1
                        : lead >= 0xC2 && lead <= 0xDF ? 2
                        : lead >= 0xE0 && lead <= 0xEF ? 3
                        : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_forbidden_control(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t';
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text.substr(at));
    if (length == 0 || is_forbidden_control(text[at])) {
      escaped += "\uFFFD";
      ++at;
      continue;
    }
    switch (text[at]) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += text.substr(at, length);
    }
    at += length;
  }
  return escaped;
}

std::string slug(std::string_view text) {
  std::string slugged;
  for (const char letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      slugged += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else if (!slugged.empty() && slugged.back() != '-') {
      slugged += '-';
    }
  }
  while (slugged.ends_with('-')) slugged.pop_back();
  return slugged;
}

std::string paragraph(const std::string& html, const std::string& classes) {
  return "<p" + (classes.empty() ? "" : " class=\"" + classes + "\"") + ">" + html + "</p>\n";
}

std::string heading(const std::string& text) { return "<h2>" + escape_html(text) + "</h2>\n"; }

std::string strong(const std::string& text) { return "<strong>" + escape_html(text) + "</strong>"; }

std::string details(const std::string& summary_text, const std::string& html) {
  return "<details><summary>" + escape_html(summary_text) + "</summary>\n" + html + "</details>\n";
}

std::string note_list(const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::string html = "<ul class=\"notes\">\n";
  for (const auto& text : texts) html += "<li>" + escape_html(text) + "</li>\n";
  return html + "</ul>\n";
}

std::string counted(size_t count, const std::string& thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace kelvin
