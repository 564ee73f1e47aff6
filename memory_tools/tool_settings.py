"""The configuration to what tool memory needs of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo

from memory_tools.config import Config


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What tool memory takes from the configuration. Intervals in seconds from start to start, for judges that use the network."""

    max_history: int = 100
    recent: int = 30
    evaluation_interval_s: float = 1.0
    summary_interval_s: float = 1.0
    judge: str = "rules"
    llm_base_url: str | None = None
    llm_model: str | None = None
    llm_api_key: str | None = field(default=None, repr=False)
    judge_timeout_s: float = 60.0
    judge_attempts: int = 3
    zone: tzinfo | None = None  # None: the system's


def settings_of(config: Config) -> ToolSettings:
    return ToolSettings(
        max_history=config.max_history_tool_call_cnt,
        recent=config.recent_call_count,
        evaluation_interval_s=config.evaluation_sleep_interval,
        summary_interval_s=config.summary_sleep_interval,
        judge=config.judge,
        llm_base_url=config.llm.get("base_url"),
        llm_model=config.llm.get("model"),
        llm_api_key=config.llm.get("api_key"),
        zone=config.zone() if config.time_zone else None,
    )
