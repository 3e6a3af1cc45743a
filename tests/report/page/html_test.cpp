#include "kelvin/report/page/html.h"

#include <gtest/gtest.h>

namespace kelvin::html_test {

TEST(EscapeHtml, LeavesNothingThatCouldOpenATagOrAnAttribute) {
  EXPECT_EQ(escape_html("<a b=\"c\" d='e'>&"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
}

TEST(EscapeHtml, KeepsUtf8) { EXPECT_EQ(escape_html("κ ± 2 †"), "κ ± 2 †"); }

TEST(EscapeHtml, ReplacesBytesThatAreNoText) {
  EXPECT_EQ(escape_html("a\xff"
                        "b\x01"
                        "c\xe2\x82"),
            "a\uFFFDb\uFFFDc\uFFFD\uFFFD");
}

TEST(Slug, HoldsOnlyLettersDigitsAndSingleDashes) {
  EXPECT_EQ(slug("Scores: ../neco & SVHN "), "scores-neco-svhn");
  EXPECT_EQ(slug("<>"), "");
}

TEST(NoteList, EscapesItsItemsAndIsNothingWithoutAny) {
  EXPECT_EQ(note_list({}), "");
  EXPECT_EQ(note_list({"a < b"}), "<ul class=\"notes\">\n<li>a &lt; b</li>\n</ul>\n");
}

TEST(ReportAssets, AreWhatThePageNeedsAndAskForNothing) {
  for (const char* name : {"figure", "page", "readout"}) {
    const auto& text = report_assets().at(name);
    EXPECT_FALSE(text.empty()) << name;
    for (const char* part : {"url(", "@import", "http", "</s"}) {
      EXPECT_EQ(text.find(part), std::string::npos) << name << ": " << part;
    }
  }
}

}  // namespace kelvin::html_test
