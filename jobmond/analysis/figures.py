"""Numbers as text: as short as they can be without becoming other numbers."""

import math


def figure(value: object, decimals: int) -> str:
    """`value` with so many decimals; words (`nan`) as they are.

    What rounding would make a zero, or what is too large to read, is written in powers of ten:
    only a zero looks like a zero.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    size = abs(value)
    if (size and size < 10**-decimals) or size >= 1e6:
        return f"{value:.1e}"
    return f"{value or 0.0:.{decimals}f}"  # a negative zero is a zero
