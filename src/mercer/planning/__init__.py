"""Planning: what each method would cost, and which one "auto" takes.

Costs are counted (kernel evaluations, multiply-adds, bytes) and turned into seconds by
three speeds. A fit uses stored speeds, since only their ratios decide; `plan` measures
them first, in a fraction of a second, to predict seconds.
"""

from .choosing import check_budget, choose, plan
from .types import Estimate, Plan, Speeds, Workload

__all__ = ["Estimate", "Plan", "Speeds", "Workload", "check_budget", "choose", "plan"]
