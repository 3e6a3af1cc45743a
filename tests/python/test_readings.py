"""kelvin.Readings finds numbers by name, place and definition, and shows them."""
import sys
import types
import unittest
from unittest import mock

import support

import kelvin

READINGS = kelvin.Readings([
    {"name": "solution_rank", "value": 9.0, "split": "test", "definition": {"gamma": 1e-3}},
    {"name": "solution_rank", "value": 8.0, "split": "test", "definition": {"gamma": 1e-2}},
    {"name": "numerical_rank", "value": 30.0, "layer": "a<b", "split": "test", "definition": {}},
    {"name": "singular_value", "value": 2.5, "layer": "a<b", "split": "test", "index": 0, "definition": {}},
    {"name": "singular_value", "value": 1.5, "layer": "a<b", "split": "test", "index": 1, "definition": {}},
    {"name": "auroc", "value": 0.912345678, "detector": "msp", "ood": "svhn", "low": 0.9, "high": 0.92, "definition": {}},
    {"name": "auroc", "value": 0.8, "detector": "knn", "ood": "svhn", "low": 0.7, "high": 0.9, "definition": {}},
], ["solution_rank: as large as 30 samples allow"])


class Value(unittest.TestCase):
    def test_is_the_first_of_its_name(self):
        self.assertEqual(READINGS.value("solution_rank"), 9)

    def test_may_be_asked_for_by_place_and_definition(self):
        self.assertEqual(READINGS.value("solution_rank", split="test", gamma=0.01), 8)
        self.assertEqual(READINGS.value("auroc", detector="knn", ood="svhn"), 0.8)
        self.assertEqual(READINGS.value("singular_value", layer="a<b", index=1), 1.5)

    def test_that_is_not_there_is_an_error_that_says_what_is(self):
        for text, arguments, places in (("did you mean 'solution_rank'?", "solution_rnk", {}),
                                        ("no reading named 'xyz'; there are: solution_rank, numerical_rank", "xyz", {}),
                                        ("there are: detector msp, knn; ood svhn", "auroc", {"detector": "vim"}),
                                        ("there are: split test", "solution_rank", {"gamma": 3})):
            with self.assertRaises(kelvin.Error) as raised:
                READINGS.value(arguments, **places)
            self.assertIn(text, str(raised.exception))


class Select(unittest.TestCase):
    def test_gives_readings(self):
        found = READINGS.select("auroc", ood="svhn")
        self.assertIsInstance(found, kelvin.Readings)
        self.assertEqual([reading["detector"] for reading in found], ["msp", "knn"])
        self.assertEqual(found.caveats, READINGS.caveats)
        self.assertEqual(len(READINGS.select()), len(READINGS))
        self.assertEqual(READINGS.select("auroc", split="train"), [])


class Table(unittest.TestCase):
    def test_has_a_row_for_each_default_reading(self):
        self.assertEqual(repr(READINGS).splitlines(), [
            "name            layer  split  detector  ood     value  95 %",
            "--------------  -----  -----  --------  ----  -------  -----------",
            "solution_rank          test                         9",
            "auroc                         msp       svhn  0.91235  0.9 .. 0.92",
            "auroc                         knn       svhn      0.8  0.7 .. 0.9",
            "numerical_rank  a<b    test                        30",
            "Read with care: solution_rank: as large as 30 samples allow",
            "3 more readings: curves, other definitions",
        ])

    def test_of_many_readings_is_cut(self):
        many = kelvin.Readings({"name": f"n{i}", "value": i} for i in range(500))
        self.assertEqual(len(repr(many).splitlines()), 103)
        self.assertIn("400 more readings: curves, other definitions and further rows", repr(many))

    def test_of_nothing_is_its_head(self):
        self.assertEqual(repr(kelvin.Readings()), "name  value\n----  -----")

    def test_is_html_in_notebooks(self):
        html = READINGS._repr_html_()
        self.assertIn("<td>a&lt;b</td>", html)
        self.assertEqual(html.count("<tr>"), 5)
        self.assertIn("<p>Read with care: solution_rank", html)

    def test_shows_how_probabilities_were_scaled(self):
        both = kelvin.Readings({"name": "ece", "value": value, "definition": {"scaling": scaling}}
                               for value, scaling in ((0.1, "none"), (0.2, "temperature")))
        self.assertEqual(repr(both).splitlines()[2:], ["ece   none           0.1", "ece   temperature    0.2"])
        self.assertEqual(both.value("ece", scaling="temperature"), 0.2)


class Frame(unittest.TestCase):
    def test_has_a_row_for_each_reading_and_the_columns_that_are_used(self):
        try:
            import pandas
        except ImportError:  # what is handed to it
            pandas = types.SimpleNamespace(DataFrame=lambda rows, columns: types.SimpleNamespace(
                columns=columns, to_dict=lambda _: rows))
        with mock.patch.dict(sys.modules, pandas=pandas):
            frame = READINGS.to_frame()
        self.assertEqual(list(frame.columns),
                         ["name", "layer", "split", "detector", "ood", "index", "value", "low", "high", "definition"])
        rows = frame.to_dict("records")
        self.assertEqual([row["value"] for row in rows], [reading["value"] for reading in READINGS])
        self.assertEqual(rows[0]["definition"], {"gamma": 1e-3})

    def test_needs_pandas(self):
        with mock.patch.dict(sys.modules, pandas=None):
            with self.assertRaisesRegex(kelvin.Error, "to_frame: needs pandas: install python3-pandas"):
                READINGS.to_frame()


if __name__ == "__main__":
    unittest.main()
