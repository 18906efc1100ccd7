#include "torch/composed/custom.h"

#include <torch/csrc/autograd/custom_function.h>

namespace fovea::composed {
namespace {

// What the function needs of a block: the position of each run of scores.
struct Runs {
  Custom custom;
  int64_t batch;
  at::Tensor queries;  // int64, the positions of l queries, for each item where they differ
  at::Tensor columns;  // int64 [l or 1, S]; both contiguous
  bool own_keys;
};

// Calls body(offset of the run in a [B, H, l, S] array, its length, its position) for each run of
// consecutive keys: a row, or a single pair where a query has keys of its own.
template <class Body>
void for_each_run(const Runs& runs, at::IntArrayRef sizes, Body body) {
  const int64_t columns = sizes[3];
  const auto* query = runs.queries.const_data_ptr<int64_t>();
  const auto* column = runs.columns.const_data_ptr<int64_t>();
  const int64_t per_item = runs.queries.numel() > sizes[2] ? sizes[2] : 0;
  int64_t offset = 0;
  for (int64_t b = 0; b < sizes[0]; ++b) {
    for (int64_t h = 0; h < sizes[1]; ++h) {
      for (int64_t r = 0; r < sizes[2]; ++r, offset += columns) {
        choice::RowPosition at{runs.batch + b, h, query[b * per_item + r], 0};
        if (!runs.own_keys) {
          body(offset, columns, at);
          continue;
        }
        for (int64_t c = 0; c < columns; ++c) {
          at.key = column[r * columns + c];
          if (at.key >= 0) body(offset + c, 1, at);
        }
      }
    }
  }
}

struct ApplyCustom : torch::autograd::Function<ApplyCustom> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& scores,
                            const Runs& runs, std::shared_ptr<Runs> kept) {
    at::Tensor result = scores.clone(at::MemoryFormat::Contiguous);
    const auto run = [&](auto function, auto* data) {
      for_each_run(runs, result.sizes(),
                   [&](int64_t offset, int64_t n, const choice::RowPosition& at) {
                     function(runs.custom.context, data + offset, static_cast<size_t>(n), at);
                   });
    };
    if (scores.scalar_type() == at::kDouble) {
      run(runs.custom.value_f64, result.mutable_data_ptr<double>());
    } else {
      run(runs.custom.value_f32, result.mutable_data_ptr<float>());
    }
    context->save_for_backward({scores});
    context->saved_data["runs"] =
        at::IValue::make_capsule(c10::make_intrusive<Holder>(std::move(kept)));
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (at::GradMode::is_enabled() && gradients[0].requires_grad()) {
      throw Unsupported("custom: a user's function gives no second derivative");
    }
    const auto holder =
        c10::dynamic_intrusive_pointer_cast<Holder>(context->saved_data["runs"].toCapsule());
    const Runs& runs = *holder->runs;
    const at::Tensor scores = context->get_saved_variables()[0].contiguous();
    at::Tensor gradient = gradients[0].clone(at::MemoryFormat::Contiguous);
    const auto run = [&](auto function, const auto* data, auto* out) {
      for_each_run(
          runs, scores.sizes(), [&](int64_t offset, int64_t n, const choice::RowPosition& at) {
            function(runs.custom.context, data + offset, out + offset, static_cast<size_t>(n), at);
          });
    };
    if (scores.scalar_type() == at::kDouble) {
      run(runs.custom.derivative_f64, scores.const_data_ptr<double>(),
          gradient.mutable_data_ptr<double>());
    } else {
      run(runs.custom.derivative_f32, scores.const_data_ptr<float>(),
          gradient.mutable_data_ptr<float>());
    }
    return {gradient, at::Tensor(), at::Tensor()};
  }

  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<Runs> r) : runs(std::move(r)) {}
    std::shared_ptr<Runs> runs;
  };
};

}  // namespace

at::Tensor apply_custom(const Custom& custom, const at::Tensor& scores, const Block& block) {
  if (!scores.device().is_cpu())
    throw Unsupported("custom: a user's C++ function runs on the CPU only");
  auto runs = std::make_shared<Runs>(
      Runs{custom, block.batch, block.position.contiguous(), block.j.contiguous(), block.gathered});
  return ApplyCustom::apply(scores, *runs, runs);
}

}  // namespace fovea::composed
