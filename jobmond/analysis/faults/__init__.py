"""The fault catalogue: how the tools of the field say that something broke, a module a family."""
