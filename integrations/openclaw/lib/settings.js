// The plugin's configuration as OpenClaw hands it over goes in; settings with every default filled in come out. Pure.

export const DEFAULT_BASE_URL = "http://127.0.0.1:8002";

/**
 * @typedef {object} Settings
 * @property {URL} baseUrl
 * @property {string} token "" where the server has none
 * @property {Set<string> | null} agents null: every agent
 * @property {boolean} recall
 * @property {boolean} learn
 * @property {boolean} recordToolCalls
 * @property {Set<string>} ignoreTools
 * @property {boolean} summarize
 * @property {string[]} guidelineTools
 * @property {number} guidelineChars
 */

/** OpenClaw checks the types against the manifest. Throws where baseUrl is no address. @returns {Settings} */
export function settingsOf(config = {}) {
  const text = config.baseUrl?.trim() || DEFAULT_BASE_URL;
  let baseUrl;
  try {
    baseUrl = new URL(text.replace(/\/+$/, "") + "/");
  } catch {
    throw new Error(`baseUrl: ${JSON.stringify(text)} is not an address; use for example ${DEFAULT_BASE_URL}`);
  }
  if (baseUrl.protocol !== "http:" && baseUrl.protocol !== "https:") throw new Error(`baseUrl: expected http or https, not ${baseUrl.protocol}`);
  return {
    baseUrl,
    token: config.token?.trim() ?? "",
    agents: config.agents?.length ? new Set(config.agents) : null,
    recall: config.recall ?? true,
    learn: config.learn ?? true,
    recordToolCalls: config.recordToolCalls ?? true,
    ignoreTools: new Set(config.ignoreTools ?? []),
    summarize: config.summarize ?? true,
    guidelineTools: (config.guidelineTools ?? []).filter((name) => name.trim() && !name.includes(",")),
    guidelineChars: config.guidelineChars ?? 3000,
  };
}
