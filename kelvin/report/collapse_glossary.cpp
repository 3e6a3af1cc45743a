#include "kelvin/report/collapse_glossary.h"

namespace kelvin {

// A table.  NOLINTNEXTLINE(readability-function-size)
const std::vector<Term>& collapse_glossary() {
  static const std::vector<Term> terms = {
      {.name = "nc1_trace_pinv",
       .label = "NC1, Tr(S_W S_B^+) / K",
       .meaning = "How far samples spread around their class mean, in the directions in which the "
                  "means differ and relative to how far: 0 if every class is one point."},
      {.name = "nc1_trace_ratio",
       .label = "NC1, Tr S_W / Tr S_B",
       .meaning = "The within-class variance over that of the class means, each class counted "
                  "once: 0 if every class is one point."},
      {.name = "nc1_cdnv",
       .label = "NC1, class-distance variance",
       .meaning = "The variance of two classes over the squared distance of their means, mean over "
                  "all pairs: 0 if every class is one point."},
      {.name = "nc1_trace_pinv_unscaled",
       .label = "NC1, Tr(S_W S_B^+)",
       .meaning = "NC1, not divided by the number of classes."},
      {.name = "nc1_trace_svd",
       .label = "NC1, K - 1 directions / K",
       .meaning =
           "NC1 with K - 1 directions of the class means inverted whatever they hold: larger "
           "than the one with a cutoff where the means hardly use some of them."},
      {.name = "nc1_trace_svd_unscaled",
       .label = "NC1, K - 1 directions",
       .meaning = "NC1 with K - 1 directions inverted, not divided by the number of classes, as "
                  "in the original notebook."},
      {.name = "nc1_trace_pinv_weighted_mean",
       .label = "NC1 around the mean of samples",
       .meaning = "NC1 with class means taken around the mean of all samples rather than around "
                  "the mean of the class means; the same if all classes are of one size."},
      {.name = "nc1_trace_ratio_weighted_mean",
       .label = "NC1, ratio around the mean of samples",
       .meaning = "The ratio of traces with class means taken around the mean of all samples; the "
                  "same as the plain one if all classes are of one size."},
      {.name = "nc2_equinorm",
       .label = "NC2, lengths of means",
       .meaning = "The relative spread of the distances of the class means to their centre: 0 if "
                  "all are equally far."},
      {.name = "nc2_equiangular",
       .label = "NC2, angles of means",
       .meaning = "How far the cosines between centred class means are from -1/(K-1), the most "
                  "that K directions can be apart: 0 if all pairs are."},
      {.name = "nc2_etf_error",
       .label = "NC2, distance to a simplex",
       .meaning = "How far the products of centred class means are from those of a simplex of "
                  "equal lengths and angles, both of norm 1: 0 for such a simplex."},
      {.name = "nc2_etf_error_per_pair",
       .label = "NC2, distance to a simplex / K²",
       .meaning = "The distance of the class means to a simplex over the square of the number of "
                  "classes, as some papers print it."},
      {.name = "nc2_etf_error_weighted_mean",
       .label = "NC2, distance to a simplex around the mean of samples",
       .meaning = "The distance of the class means to a simplex if they are taken around the mean "
                  "of all samples; the same if all classes are of one size."},
      {.name = "nc2_distance_variance",
       .label = "NC2, variance of distances",
       .meaning = "How unequal the distances between the directions of the class means are: 0 if "
                  "all pairs are equally far."},
      {.name = "nc2_log_distance_variance",
       .label = "NC2, variance of log distances",
       .meaning = "How unequal the logarithms of the distances between the directions of the class "
                  "means are: 0 if all pairs are equally far."},
      {.name = "nc2_riesz_variance",
       .label = "NC2, variance of the Riesz kernel",
       .meaning = "How unequal the distances between the directions of the class means are to the "
                  "power of two less than the number of features: 0 if all pairs are equally far."},
      {.name = "nc0_weight_sum",
       .label = "NC0, sum of the classifier's rows",
       .meaning = "The length of the sum of the classifier's rows over its width: 0 if the rows "
                  "are centred by themselves."},
      {.name = "nc0_weight_sum_squared",
       .label = "NC0, squared",
       .meaning = "The squared length of the sum of the classifier's rows over the number of "
                  "classes: 0 if the rows are centred by themselves."},
      {.name = "nc2_weight_equinorm",
       .label = "NC2, lengths of weights",
       .meaning = "The relative spread of the lengths of the classifier's rows: 0 if all are "
                  "equally long."},
      {.name = "nc2_weight_equiangular",
       .label = "NC2, angles of weights",
       .meaning = "How far the cosines between the classifier's rows are from -1/(K-1): 0 if all "
                  "pairs are as far apart as K directions can be."},
      {.name = "nc2_weight_etf_error",
       .label = "NC2, distance of weights to a simplex",
       .meaning = "How far the products of the classifier's rows are from those of a simplex of "
                  "equal lengths and angles, both of norm 1: 0 for such a simplex."},
      {.name = "nc2_weight_etf_error_per_pair",
       .label = "NC2, distance of weights to a simplex / K²",
       .meaning = "The distance of the classifier's rows to a simplex over the square of the "
                  "number of classes, as some papers print it."},
      {.name = "nc2_product_etf_error",
       .label = "NC2M, distance of W M to a simplex / K²",
       .meaning = "The distance of the products of the classifier's rows and the centred class "
                  "means to those of a simplex, over the square of the number of classes."},
      {.name = "nc3_self_duality",
       .label = "NC3, weights against means",
       .meaning = "The squared distance between the classifier and the centred class means, each "
                  "scaled to norm 1: 0 if they are the same but for scale."},
      {.name = "nc3_self_duality_norm",
       .label = "NC3, not squared",
       .meaning = "The distance between the classifier and the centred class means, each scaled to "
                  "norm 1: 0 if they are the same but for scale."},
      {.name = "nc3_self_duality_per_entry",
       .label = "NC3, per entry",
       .meaning = "The distance between the scaled classifier and class means over the number of "
                  "their entries, as some papers print it."},
      {.name = "nc3_dual_etf_error",
       .label = "NC3, distance of W M to a simplex",
       .meaning = "How far the products of the classifier's rows and the centred class means are "
                  "from those of a simplex, both of norm 1: 0 if both are the same simplex."},
      {.name = "nc3_dual_etf_error_weighted_mean",
       .label = "NC3, distance of W M to a simplex around the mean of samples",
       .meaning = "The same with class means taken around the mean of all samples."},
      {.name = "nc3_dual_variance",
       .label = "NC3U, variance of <w_c, m_c>",
       .meaning = "How unequally the classes' rows of the classifier answer to their centred "
                  "means: 0 if all do alike. It grows with the scale of both."},
      {.name = "nc4_ncc_mismatch",
       .label = "NC4, not the nearest mean",
       .meaning = "The share of samples for which the network does not predict the class whose "
                  "mean is nearest, in the classifier's input or in a layer; means are those of "
                  "the training split.",
       .is_fraction = true},
      {.name = "nc4_ncc_mismatch_without_bias",
       .label = "NC4, bias ignored",
       .meaning = "The share of samples for which the classifier without its bias does not predict "
                  "the class whose mean is nearest.",
       .is_fraction = true},
      {.name = "nc4_centre_logits",
       .label = "NC4, logits at the centre",
       .meaning = "The length of the logits that the classifier gives the centre of the class "
                  "means: 0 if the bias makes up for the centre."},
      {.name = "orthodev",
       .label = "NC5, OrthoDev",
       .meaning = "The mean absolute cosine between the class means and the mean of foreign "
                  "samples, nothing centred: 0 if foreign samples lie orthogonal to all classes."},
      {.name = "orthodev_class_means",
       .label = "NC5, OrthoDev of class means",
       .meaning = "OrthoDev with the mean of the foreign classes' means, each class counted once; "
                  "the same if the foreign classes are of one size."},
  };
  return terms;
}

}  // namespace kelvin
