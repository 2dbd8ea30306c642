"""Which selector to choose: every one of them on eleven data sets (see ``_selector_study.py``).

python benchmarks/selectors.py --out results/selectors
python benchmarks/selectors.py --quick --out study
"""

import sysconfig
from pathlib import Path

if __name__ == "__main__":
    from _selector_study import main

    main()
else:
    # The folder of a script comes before the standard library on the path, so whatever imports
    # the library's `selectors` (subprocess does) from a script here finds this file: be that.
    source = Path(sysconfig.get_path("stdlib")) / "selectors.py"
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"))
