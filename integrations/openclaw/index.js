// OpenClaw's plugin API goes in; memory-tools' hooks and its memory corpus are registered on it.

import { Core } from "./lib/core.js";
import { settingsOf } from "./lib/settings.js";

const HOOK_MS = 2_000; // OpenClaw's own guard, far above what a handler takes

// OpenClaw registers a plugin several times in a process, for its hooks and for the discovery of tools: they share what a turn was shown.
let shared = null;

export default {
  id: "memory-tools",
  name: "memory-tools",
  description: "Records tool calls, offers memory-tools' recall in memory_search, and credits the memories that a turn used.",

  register(api) {
    let settings;
    try {
      settings = settingsOf(api.pluginConfig);
    } catch (error) {
      api.logger.error(`memory-tools: ${error.message}; the plugin does nothing until this is mended`);
      return;
    }
    if (api.registrationMode === "full" || shared === null) shared = new Core(settings, api.logger);
    const core = shared;
    const guarded = (work) => async (...given) => {
      try {
        return await work(...given);
      } catch (error) {
        api.logger.error(`memory-tools: ${error.stack ?? error}`); // a fault of this plugin; no turn shall suffer from it
        return undefined;
      }
    };
    api.on("after_tool_call", guarded((event, ctx) => core.toolCalled(event, ctx ?? {})), { timeoutMs: HOOK_MS });
    api.on("agent_end", guarded((event, ctx) => core.turnEnded(event, ctx ?? {})), { timeoutMs: HOOK_MS });
    api.on("gateway_stop", guarded(() => core.stopped()), { timeoutMs: 2 * HOOK_MS });
    if (settings.guidelineTools.length) {
      api.on("before_prompt_build", guarded((_event, ctx) => core.promptContext(ctx ?? {})), { timeoutMs: HOOK_MS });
    }
    if (settings.recall) {
      api.registerMemoryCorpusSupplement({
        search: async (asked) => (await guarded((given) => core.search(given))(asked)) ?? [],
        get: async (asked) => (await guarded((given) => core.get(given))(asked)) ?? null,
      });
    }
  },
};
