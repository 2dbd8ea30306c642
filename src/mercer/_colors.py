"""Colors of groups: the same in plots and reports.

Twelve colors found by search: as far apart in OKLab as could be had for ordinary vision and
simulated protanopia, deuteranopia and tritanopia alike, among colors that stand out from white
paper and from a dark page. With more groups shapes go on telling them apart.
"""

GROUP_COLORS = (
    "#273bc4",  # blue
    "#d88914",  # orange
    "#008962",  # green
    "#d83b14",  # red
    "#b176ff",  # violet
    "#629db1",  # gray blue
    "#892700",  # brown
    "#62d8b1",  # mint
    "#623b76",  # plum
    "#d8c400",  # yellow
    "#8962b1",  # purple
    "#b1b1ff",  # lavender
)


def group_color(k: int) -> str:
    """The color of the k-th group, as #rrggbb; they begin again after twelve."""
    return GROUP_COLORS[k % len(GROUP_COLORS)]
