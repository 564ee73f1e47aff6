// The result of a tool call goes in; what memory-tools showed, read out or recorded in it comes out. Pure.
//
// One way for every road: hits in OpenClaw's memory_search, the plain and the --json form of the command in a shell, results of MCP tools.

const OWN_TOOL = /(?:^|[^a-z])memory_(?:search|get|feedback)$/i; // OpenClaw's own, and MCP tools under whatever server name
const SHELL_LATER = "process"; // polls a command that `exec` left running; its parameters do not name the command
const READ_TOOL = /^read(?:_file)?$/i;
const HIT_ID = /^memory-tools\/(r[a-z0-9]+)\/(\d+)$/;
const HEAD = /^\d[\d,]* memor(?:y|ies) \(recall (r[a-z0-9]+)\)\. Quoted lines are data/;
const ITEM = /^(\d+)\. (.+)  (.+#L\d+(?:-L\d+)?)$/;
const QUOTE = "   > ";
const EXCERPT = /^(.+)  lines (\d+)-(\d+) of \d+$/;
const RECORDED = /^(?:success|failure|unknown)  (.+)  [\d.]+ success, [\d.]+ failure of /;

/**
 * @typedef {object} Shown something that a search showed
 * @property {string} recall
 * @property {number} position from 1
 * @property {string} address as it was then
 * @property {string} citation
 * @property {string} path
 * @property {number} startLine
 * @property {number} endLine
 * @property {string} snippet
 *
 * @typedef {object} Reading
 * @property {string} path
 * @property {number | null} startLine
 * @property {number | null} endLine
 * @property {string | null} text
 */

export function hitId(recall, position) {
  return `memory-tools/${recall}/${position}`;
}

/** What OpenClaw puts around a result: text blocks and, beside them, `details` as the tool gave them. */
export function textOf(result) {
  if (typeof result === "string") return result;
  const blocks = Array.isArray(result?.content) ? result.content : [];
  return blocks.map((block) => (typeof block?.text === "string" ? block.text : `[${block?.type ?? "unknown"}]`)).join("\n");
}

/** @returns {Shown[]} */
export function shownIn(event) {
  if (!mayBeOurs(event)) return [];
  const text = textOf(event.result);
  const shown = documentsIn(event.result, text).flatMap(shownInDocument);
  return unique(shown.length ? shown : shownInPlain(text));
}

/** @returns {Reading[]} */
export function readingsIn(event) {
  if (event.error || !event.result) return [];
  const text = textOf(event.result);
  const { details } = event.result;
  const asked = event.params?.path ?? event.params?.file_path;
  if (READ_TOOL.test(event.toolName) && typeof asked === "string") {
    const body = typeof details?.content === "string" ? details.content : text;
    return [{ path: asked, ...linesOf(event.params.offset, event.params.limit), text: body }];
  }
  if (!mayBeOurs(event)) return [];
  const documents = documentsIn(event.result, text).filter((one) => typeof one.path === "string" && typeof one.text === "string" && one.text);
  const readings = documents.map((one) => {
    const lines = one.startLine ? { startLine: one.startLine, endLine: one.endLine ?? null } : linesOf(one.fromLine ?? one.from, one.lineCount ?? one.lines);
    return { path: one.path, ...lines, text: one.text };
  });
  if (readings.length) return readings;
  return readInPlain(text);
}

/** Addresses for which an outcome was recorded by hand. @returns {string[]} */
export function resolvedIn(event) {
  if (!mayBeOurs(event)) return [];
  const text = textOf(event.result);
  const rows = documentsIn(event.result, text).flatMap((one) => (Array.isArray(one.recorded) ? one.recorded : []));
  const lines = text.split(/\r\n|\r|\n/).map((line) => RECORDED.exec(line)?.[1]);
  return [...new Set([...rows.map((row) => row?.address), ...lines])].filter((address) => typeof address === "string");
}

// Text that merely looks like an answer of ours, say in a web page, must not earn anything.
function mayBeOurs(event) {
  if (OWN_TOOL.test(event.toolName) || event.toolName === SHELL_LATER) return true;
  const words = event.params?.command ?? event.params?.cmd ?? event.params?.args;
  return typeof words === "string" ? words.includes("memory-tools") : Array.isArray(words) && words.some((word) => String(word).includes("memory-tools"));
}

function documentsIn(result, text) {
  const details = result?.details;
  const given = [details, details?.structuredContent, result?.structuredContent].filter((one) => one && typeof one === "object");
  const lines = text.trimStart().startsWith("{") ? [text, ...text.split("\n")] : text.split("\n");
  return [...given, ...lines.filter((line) => /^\s*\{/.test(line)).map(parsed).filter(Boolean)];
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? value : null;
  } catch {
    return null; // a line of something else that begins with a brace
  }
}

function shownInDocument(document) {
  if (!Array.isArray(document.results)) return [];
  return document.results.flatMap((hit, index) => {
    const named = HIT_ID.exec(hit?.id ?? "");
    const recall = named?.[1] ?? document.recall;
    if (typeof recall !== "string" || typeof hit?.path !== "string" || typeof hit.snippet !== "string") return [];
    const { path, snippet, startLine, endLine, citation } = hit;
    return [{ recall, position: named ? Number(named[2]) : index + 1, address: hit.address ?? path, citation, path, startLine, endLine, snippet }];
  });
}

function shownInPlain(text) {
  const shown = [];
  let recall = null;
  for (const line of text.split(/\r\n|\r|\n/)) {
    const head = HEAD.exec(line);
    const item = recall && ITEM.exec(line);
    if (head) recall = head[1];
    else if (item) {
      const [, position, address, citation] = item;
      const [, path, startLine, endLine] = /^(.+)#L(\d+)(?:-L(\d+))?$/.exec(citation);
      const lines = { startLine: Number(startLine), endLine: Number(endLine ?? startLine) };
      shown.push({ recall, position: Number(position), address, citation, path, ...lines, snippet: "" });
    } else if (shown.length && (line + " ").startsWith(QUOTE)) {
      const last = shown[shown.length - 1];
      last.snippet += (last.snippet && "\n") + line.slice(QUOTE.length);
    }
  }
  return shown;
}

function readInPlain(text) {
  const readings = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    const head = EXCERPT.exec(line);
    if (head) readings.push({ path: head[1], startLine: Number(head[2]), endLine: Number(head[3]), text: "" });
    else if (readings.length && (line + " ").startsWith("> ")) readings[readings.length - 1].text += line.slice(2) + "\n";
  }
  return readings;
}

function linesOf(from, count) {
  const startLine = Number.isInteger(from) ? from : null;
  return { startLine, endLine: Number.isInteger(count) ? (startLine ?? 1) + count - 1 : null };
}

function unique(shown) {
  const seen = new Map();
  for (const one of shown) {
    const key = hitId(one.recall, one.position);
    if (!seen.has(key)) seen.set(key, one);
  }
  return [...seen.values()];
}
