// Recurrent cells that torch fuses on accelerators and has no CPU kernel of, written out in its elementary operators.
// Formulas: Hochreiter & Schmidhuber 1997 (LSTM, with forget gate), Cho et al. 2014 (GRU, reset after the product).
#include "operators.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <tuple>

namespace assay {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Tensor with_bias(const Tensor& gates, const Optional& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

Tensor or_zero(const Optional& gradient, const Tensor& like) {
  return gradient && gradient->defined() ? *gradient : at::zeros_like(like);
}

Tensor through_sigmoid(const Tensor& gradient, const Tensor& gate) {
  return gradient * gate * (1 - gate);
}

Tensor through_tanh(const Tensor& gradient, const Tensor& value) {
  return gradient * (1 - value * value);
}

Tensor bias_of(const Tensor& gradient, bool has_bias) {
  return has_bias ? gradient.sum(0) : Tensor();
}

// -> (hidden, cell, workspace), the workspace being the four gates side by side
Three lstm(const Tensor& from_input, const Tensor& from_hidden, const Tensor& cell, const Optional& input_bias,
           const Optional& hidden_bias) {
  const auto gates = (with_bias(from_hidden, hidden_bias) + with_bias(from_input, input_bias)).chunk(4, 1);
  const auto in = gates[0].sigmoid();
  const auto forget = gates[1].sigmoid();
  const auto fresh = gates[2].tanh();
  const auto out = gates[3].sigmoid();
  const auto next = forget * cell + in * fresh;
  return {out * next.tanh(), next, at::cat({in, forget, fresh, out}, 1)};
}

// -> (gradient of the gates, of the cell, of the bias)
Three lstm_backward(const Optional& to_hidden, const Optional& to_cell, const Tensor& cell, const Tensor& next,
                    const Tensor& workspace, bool has_bias) {
  const auto gates = workspace.chunk(4, 1);
  const auto shown = next.tanh();
  const auto hidden = or_zero(to_hidden, next);
  const auto inner = through_tanh(hidden * gates[3], shown) + or_zero(to_cell, next);
  const auto gradient = at::cat({through_sigmoid(inner * gates[2], gates[0]), through_sigmoid(inner * cell, gates[1]),
                                 through_tanh(inner * gates[0], gates[2]), through_sigmoid(hidden * shown, gates[3])},
                                1);
  return {gradient, inner * gates[1], bias_of(gradient, has_bias)};
}

// -> (hidden, workspace), the workspace being reset, update, new, the old hidden state and its part of the new one
std::tuple<Tensor, Tensor> gru(const Tensor& from_input, const Tensor& from_hidden, const Tensor& hidden,
                               const Optional& input_bias, const Optional& hidden_bias) {
  const auto input = with_bias(from_input, input_bias).chunk(3, 1);
  const auto old = with_bias(from_hidden, hidden_bias).chunk(3, 1);
  const auto reset = (old[0] + input[0]).sigmoid();
  const auto update = (old[1] + input[1]).sigmoid();
  const auto fresh = (input[2] + reset * old[2]).tanh();
  return {(hidden - fresh) * update + fresh, at::cat({reset, update, fresh, hidden, old[2]}, 1)};
}

// -> (gradients of the input's gates, of the hidden state's gates, of the hidden state, of the two biases)
Five gru_backward(const Tensor& gradient, const Tensor& workspace, bool has_bias) {
  const auto kept = workspace.chunk(5, 1); // reset, update, new, hidden, old
  const auto fresh = through_tanh(gradient * (1 - kept[1]), kept[2]);
  const auto update = through_sigmoid(gradient * (kept[3] - kept[2]), kept[1]);
  const auto reset = through_sigmoid(fresh * kept[4], kept[0]);
  const auto to_input = at::cat({reset, update, fresh}, 1);
  const auto to_hidden = at::cat({reset, update, fresh * kept[0]}, 1);
  return {to_input, to_hidden, gradient * kept[1], bias_of(to_input, has_bias), bias_of(to_hidden, has_bias)};
}

} // namespace

void install_cells(torch::Library& aten) {
  aten.impl("_thnn_fused_lstm_cell", lstm);
  aten.impl("_thnn_fused_lstm_cell_backward_impl", lstm_backward);
  aten.impl("_thnn_fused_gru_cell", gru);
  aten.impl("_thnn_fused_gru_cell_backward", gru_backward);
}

} // namespace assay
