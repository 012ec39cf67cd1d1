"""QUESTIONS ABOUT JOBS: asked only through a port."""
