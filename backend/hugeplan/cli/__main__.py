"""``python -m hugeplan.cli``."""

from __future__ import annotations

import sys

from hugeplan.cli import main

sys.exit(main())
