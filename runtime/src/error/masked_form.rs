//! Operations that know the real size of a padded dimension.

/// Returns the operation to use instead of `op` over a padded dimension, as the end of "use …".
pub(super) fn of(op: &str) -> &'static str {
    match op.strip_suffix("_keepdim").unwrap_or(op) {
        "sum" => "`ops::masked_sum`, which knows the real rows",
        "mean" => "`ops::masked_mean`, which knows the real rows",
        "max" => "`ops::masked_max`, which knows the real rows",
        "min" => "`ops::masked_min`, which knows the real rows",
        "argmin" => "`ops::masked_argmin`, which knows the real rows",
        "prod" => "`ops::masked_prod`, which knows the real rows",
        "logsumexp" => "`ops::masked_logsumexp`, which knows the real rows",
        "log_softmax" => "`ops::masked_log_softmax`, which knows the real rows",
        "argmax" => "`ops::masked_argmax`, which knows the real rows",
        "softmax" => "`ops::masked_softmax`, which knows the real rows",
        "matmul" => "`ops::masked_matmul`, which knows the real rows",
        _ => {
            "an operation that knows the real rows (`ops::masked_sum`, `ops::masked_mean`, `ops::masked_prod`, \
             `ops::masked_max`, `ops::masked_min`, `ops::masked_argmax`, `ops::masked_argmin`, `ops::masked_logsumexp`, \
             `ops::masked_softmax`, `ops::masked_log_softmax`, `ops::masked_matmul`, or `ops::attention` with lengths or \
             positions)"
        }
    }
}
