#include "train/task.h"

#include "train/descent/optimiser.h"

namespace fovea {

std::vector<train::ParameterGroup> GradientTask::parameter_groups(torch::nn::Module& model) const {
  train::ParameterGroup group;
  for (const torch::Tensor& p : model.parameters())
    if (p.requires_grad()) group.parameters.push_back(p);
  return {group};
}

std::vector<float> to_floats(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

bool lower_is_better(const std::string& metric) {
  for (const char* name : {"loss", "error", "perplexity", "rmse", "mse", "aer"})
    if (metric.find(name) != std::string::npos) return true;
  return false;
}

}  // namespace fovea
