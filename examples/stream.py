"""
A stream that drifts
====================

Rows arrive in batches and change half way: digits 0 to 4 first, then 5 to 9. One model remembers
everything, one forgets. The picture shows the share of each new batch that the model of earlier
batches does not explain.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer import StreamingKernelPCA

BATCH = 50
HALF_LIFE = 100  # rows

X, digit = load_digits(return_X_y=True)
rows = np.vstack([X[digit < 5][:850], X[digit >= 5][:850]])
batches = np.split(rows, len(rows) // BATCH)


def surprises(model):
    """Mean feature-space error of each batch before the model has seen it; k(x, x) = 1."""
    errors = []
    for i, batch in enumerate(batches):
        if i:
            errors.append(float(np.mean(model.reconstruction_error(batch))))
        model.partial_fit(batch)
    return errors


# %%
# Both are surprised when the stream changes. The one that forgets recovers sooner, and explains
# more of what comes after. Memory stays the same however long the stream is: at most 300 rows are
# kept.

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, forgetting, style in (
    ("remembers all", 1.0, "-"),
    (f"forgets half in {HALF_LIFE} rows", 0.5 ** (1 / HALF_LIFE), "--"),
):
    model = StreamingKernelPCA(
        5,
        kernel="rbf",
        gamma=0.0002,
        budget=800,
        novelty=0.03,
        forgetting=forgetting,
        random_state=0,
    )
    errors = surprises(model)
    ax.plot(BATCH * np.arange(1, len(batches)), errors, style, color="0.1", label=name)
    print(f"{name}: mean error of the last ten batches {np.mean(errors[-10:]):.3f}")
    print(
        f"  {len(model.landmarks_)} rows kept, {100 * model.lost_share_:.1f} % outside their span"
    )
ax.axvline(850, color="tab:orange", lw=1)
ax.set(xlabel="rows seen", ylabel="share not explained", ylim=(0, None))
ax.legend(frameon=False)

plt.show()
