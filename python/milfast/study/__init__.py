"""Studies: grids of jobs that can be stopped, resumed, merged and shown."""

from milfast.study.run import Study
from milfast.study.store import Record, Store, StudyError

__all__ = ["Record", "Store", "Study", "StudyError"]
