#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kelvin/core/reading.h"
#include "kelvin/measures/measure.h"

namespace kelvin {

inline std::unique_ptr<Measure> make_measure(const std::string& name, const Values& values = {},
                                             const MeasureContext& context = {}) {
  Settings settings("measure." + name, values);
  return measures().find(name).make(context, settings);
}

// The test split of a stream as a measure's sample.
inline void show_sample(Measure& measure, const std::vector<Record>& records) {
  for (const auto& record : records) {
    if (record.split == Split::test && !record.is_ood()) measure.see_sample(record);
  }
}

// The first record of a stream that has gradients, if there is one.
inline void show_gradients(Measure& measure, const std::vector<Record>& records) {
  for (const auto& record : records) {
    if (record.layers.empty() || !record.layers[0].gradient.defined()) continue;
    measure.see_gradients(record);
    return;
  }
}

// All that a measure asks for, from one stream.
inline void show(Measure& measure, const std::vector<Record>& records) {
  show_sample(measure, records);
  do {
    for (const auto& record : records) measure.update(record);
  } while (measure.wants_another_pass());
  show_gradients(measure, records);
}

inline Readings measured(const std::string& name, const std::vector<Record>& records,
                         const Values& values = {}, const MeasureContext& context = {}) {
  const auto measure = make_measure(name, values, context);
  show(*measure, records);
  return measure->compute();
}

// Those of this name whose definition contains all of `definition`.
inline Readings readings_of(const Readings& readings, const std::string& name,
                            const Definition& definition = Definition::object()) {
  Readings found;
  for (const auto& reading : readings) {
    bool matches = reading.name == name;
    for (const auto& [key, value] : definition.items()) {
      matches = matches && reading.definition.contains(key) && reading.definition[key] == value;
    }
    if (matches) found.push_back(reading);
  }
  return found;
}

// The only such reading; none or several fail the test.
inline Reading reading_of(const Readings& readings, const std::string& name,
                          const Definition& definition = Definition::object()) {
  const auto found = readings_of(readings, name, definition);
  EXPECT_EQ(found.size(), 1U) << name << " " << definition;
  return found.empty() ? Reading{} : found.front();
}

inline void expect_same(const Readings& actual, const Readings& expected, double tolerance = 0) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    auto fields = fields_of(actual[i]);
    auto wanted = fields_of(expected[i]);
    fields.erase("value");
    wanted.erase("value");
    EXPECT_EQ(fields, wanted);
    EXPECT_EQ(actual[i].definition, expected[i].definition) << wanted;
    EXPECT_NEAR(actual[i].value, expected[i].value, tolerance) << wanted;
  }
}

inline Record record_of(const torch::Tensor& logits, const torch::Tensor& labels,
                        Split split = Split::test, const std::string& ood = "") {
  Record record;
  record.split = split;
  record.ood = ood;
  record.classes = logits.size(1);
  record.logits = logits;
  record.labels = labels;
  return record;
}

}  // namespace kelvin
