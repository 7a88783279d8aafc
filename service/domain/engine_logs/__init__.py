"""Reading engines' start-up logs: text to facts, pure, in linear time."""

from service.domain.engine_logs.facts import Failure, Launched, LogFacts, Mark, Printed, Setting, Spread
from service.domain.engine_logs.reading import engine_of, read_log

__all__ = ["Failure", "Launched", "LogFacts", "Mark", "Printed", "Setting", "Spread", "engine_of", "read_log"]
