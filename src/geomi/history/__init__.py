"""History: every visit is one line, and committed batches are numbered.

Takes what agents settled. Gives visits by page, the log that workers follow, the politeness proof.
"""
