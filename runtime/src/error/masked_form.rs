//! Operations that know the real size of a padded dimension.

/// Returns the path of the operation that does to the real elements of a padded axis what `op` does to all elements of an axis.
pub(crate) fn of(op: &str) -> Option<&'static str> {
    let path = match op {
        "sum" => "ops::masked_sum",
        "mean" => "ops::masked_mean",
        "prod" => "ops::masked_prod",
        "max" => "ops::masked_max",
        "min" => "ops::masked_min",
        "argmax" => "ops::masked_argmax",
        "argmin" => "ops::masked_argmin",
        "logsumexp" => "ops::masked_logsumexp",
        "var" => "ops::masked_var",
        "std" => "ops::masked_std",
        "any" => "ops::masked_any",
        "all" => "ops::masked_all",
        "softmax" => "ops::masked_softmax",
        "log_softmax" => "ops::masked_log_softmax",
        "matmul" => "ops::masked_matmul",
        _ => return None,
    };
    Some(path)
}

/// Returns the remedy, as the end of "use …".
pub(super) fn sentence(instead: Option<&str>) -> String {
    match instead {
        Some(path) => format!("`{path}`, which knows the real rows"),
        None => "an operation that knows the real rows (`ops::masked_sum`, `ops::masked_mean`, `ops::masked_max`, \
                 `ops::masked_softmax` and others, or `ops::attention` with lengths or positions)"
            .into(),
    }
}
