"""`python -m hugeplan_agent` does what the command hugeplan-agent does; an image needs no installed script."""

import sys

from hugeplan_agent.cli import main

sys.exit(main())
