"""Loading target and draft models, drafts derived from the target, and rendering prompts to token ids.

Start at `specaudit.models.loading.load_pair` and `specaudit.models.rendering.render`. What needs no torch (`source`,
`drafts`, `options`, `bundled`) can be imported without loading it, so this package re-exports nothing.
"""
