"""Text that a browser would run if a page did not escape it."""

from __future__ import annotations

HOSTILE = "\"'><script>document.title='owned'</script><img src=x onerror=alert(1)>{{7*7}}"
