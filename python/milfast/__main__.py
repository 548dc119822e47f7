"""``python -m milfast``."""

import sys

from milfast.cli import main

sys.exit(main())
