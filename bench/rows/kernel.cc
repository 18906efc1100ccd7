// Kernels of distance: 2,000 queries against 100,000 points in three dimensions, beside libtorch in
// chunks.
#include <torch/torch.h>

#include <numbers>

#include "bench/rows/operands.h"
#include "bench/peers/peers.h"

namespace fovea::bench {
namespace {

// On unit-normal points a bandwidth at which compact kernels see a good share of the keys, and
// every query some.
constexpr double kBandwidth = 2.0;
// Queries a chunk: 64 x 100,000 floats are 26 MB, about what runs fastest here (16 to 512 differ by
// less than 10 %). Differences are three times as large: 8 run twice as fast as 64.
constexpr int64_t kChunk = 64, kDifferencesChunk = 8;

at::Tensor inside(const at::Tensor& u) { return (u <= 1).to(u.dtype()); }
at::Tensor parabola(const at::Tensor& u) { return (1 - u.square()).clamp_min(0); }

struct KernelCase {
  std::string name;
  KernelName kernel;
  peers::Profile profile;  // K(u), up to a constant factor, which the ratio cancels
};

const KernelCase kKernels[] = {
    {"gaussian", KernelName::kGaussian,
     [](const at::Tensor& u) { return (u.square() * -0.5).exp(); }},
    {"laplace", KernelName::kLaplace, [](const at::Tensor& u) { return (-u).exp(); }},
    {"logistic", KernelName::kLogistic,
     [](const at::Tensor& u) { return 1 / (u.exp() + 2 + (-u).exp()); }},
    {"sigmoid", KernelName::kSigmoid,
     [](const at::Tensor& u) { return 1 / (u.exp() + (-u).exp()); }},
    {"silverman", KernelName::kSilverman,
     [](const at::Tensor& u) {
       const at::Tensor z = u / std::numbers::sqrt2;
       return (-z).exp() * (z + std::numbers::pi / 4).sin();
     }},
    {"cauchy", KernelName::kCauchy, [](const at::Tensor& u) { return 1 / (1 + u.square()); }},
    {"box", KernelName::kBox, [](const at::Tensor& u) { return inside(u); }},
    {"triangular", KernelName::kTriangular,
     [](const at::Tensor& u) { return (1 - u).clamp_min(0); }},
    {"epanechnikov", KernelName::kEpanechnikov, [](const at::Tensor& u) { return parabola(u); }},
    {"quartic", KernelName::kQuartic, [](const at::Tensor& u) { return parabola(u).square(); }},
    {"triweight", KernelName::kTriweight, [](const at::Tensor& u) { return parabola(u).pow(3); }},
    {"tricube", KernelName::kTricube,
     [](const at::Tensor& u) { return (1 - u.pow(3)).clamp_min(0).pow(3); }},
    {"cosine", KernelName::kCosine,
     [](const at::Tensor& u) { return (u * (std::numbers::pi / 2)).cos() * inside(u); }}};

// The form that is as accurate as ours: cdist and the expanded square lose what cancels between
// close points far from the origin.
constexpr const char* kByDifferences = "eager, chunked, by differences";

using Chunk = std::function<at::Tensor(const at::Tensor& query, const at::Tensor& key,
                                       const at::Tensor& value)>;

// A chunk of queries at a time, its gradients taken before the next: nothing of a chunk outlives
// it.
Contender chunked(Pass pass, const std::string& name, const Operands& x, int64_t chunk,
                  Chunk attention) {
  return {name, [=]() -> Tensors {
            Tensors outputs, d_queries;
            if (pass == Pass::kForward) {
              const at::NoGradGuard no_grad;
              for (const at::Tensor& query : x.query.split(chunk, -2))
                outputs.push_back(attention(query, x.key, x.value));
              return {at::cat(outputs, -2)};
            }
            at::Tensor d_key = at::zeros_like(x.key), d_value = at::zeros_like(x.value);
            const Tensors gradients = x.gradient.split(chunk, -2);
            const Tensors queries = x.query.detach().split(chunk, -2);
            for (size_t i = 0; i < queries.size(); ++i) {
              const at::Tensor query = queries[i].detach().requires_grad_(true);
              const at::Tensor output = attention(query, x.key, x.value);
              // A box has no slope: nothing reaches query and key.
              const Tensors d = torch::autograd::grad({output}, {query, x.key, x.value},
                                                      {gradients[i]}, std::nullopt, false, true);
              outputs.push_back(output.detach());
              d_queries.push_back(d[0].defined() ? d[0] : at::zeros_like(query));
              if (d[1].defined()) d_key.add_(d[1]);
              d_value.add_(d[2]);
            }
            return {at::cat(outputs, -2), at::cat(d_queries, -2), d_key, d_value};
          }};
}

const Shape kPoints{
    .heads = 1, .key_heads = 1, .queries = 2000, .keys = 100'000, .width = 3, .value_width = 1};

// Does the kernel or its derivative jump at u = 1? A pair that rounding puts inside on one side and
// outside on the other then moves a sparse query's mean or gradient by that one key.
bool jumps(KernelName kernel) {
  return kernel == KernelName::kBox || kernel == KernelName::kTriangular ||
         kernel == KernelName::kEpanechnikov || kernel == KernelName::kCosine;
}

Row kernel_row(const KernelCase& kernel, Pass pass, std::vector<Figure> figures) {
  const double pairs = pairs_dense(kPoints.queries, kPoints.keys);
  return {
      .name = row_name("kernel-" + kernel.name, "2000x100000", "dense", pass),
      .pass = pass,
      .roof = Roof::kExp,
      .work = dot_work(pass, kPoints, pairs),
      .make =
          [=] {
            const Operands x(kPoints);
            const at::Tensor bandwidth = at::full({1}, kBandwidth, at::kFloat);
            // Sums of 100,000 terms in float32 on both sides; cdist's square root costs some
            // more bits.
            Instance instance{.ours = x.ours(pass, {.score = Kernel{kernel.kernel, bandwidth, {}},
                                                    .normaliser = KernelRatio{}}),
                              .tolerance = jumps(kernel.kernel) ? 0.05 : 2e-3};
            const Contender by_distance =
                chunked(pass, "eager, chunked", x, kChunk, [=](auto& q, auto& k, auto& v) {
                  return peers::kernel_ratio(q, k, v, kBandwidth, kernel.profile);
                });
            if (kernel.kernel != KernelName::kGaussian) {
              // Their figures are against the Gaussian's row: a peer checks them, and is not
              // timed.
              instance.ours_to_check = instance.ours.run;
              instance.expected = by_distance.run;
              return instance;
            }
            instance.peers = {
                chunked(pass, kByDifferences, x, kDifferencesChunk,
                        [](auto& q, auto& k, auto& v) {
                          return peers::gaussian_differences(q, k, v, kBandwidth);
                        }),
                by_distance,
                chunked(pass, "eager, chunked, expanded", x, kChunk, [](auto& q, auto& k, auto& v) {
                  return peers::gaussian_expanded(q, k, v, kBandwidth);
                })};
            return instance;
          },
      .figures = std::move(figures),
      .tensor_bytes = tensor_bytes(kPoints)};
}

}  // namespace

std::vector<Row> kernel_rows() {
  std::vector<Row> rows;
  const std::string gaussian = "kernel-gaussian/2000x100000/dense/";
  for (const KernelCase& kernel : kKernels) {
    for (Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
      std::vector<Figure> figures;
      if (kernel.kernel != KernelName::kGaussian) {
        figures = {times_row_at_most(2.0, gaussian + name(pass))};
      } else if (pass == Pass::kForward) {
        figures = {times_this_peer_at_least(55, kByDifferences), percent_roof_at_least(50)};
      } else {
        figures = {times_this_peer_at_least(45, kByDifferences)};
      }
      rows.push_back(kernel_row(kernel, pass, figures));
    }
  }
  return rows;
}

}  // namespace fovea::bench
