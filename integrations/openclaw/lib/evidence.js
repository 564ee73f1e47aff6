// Something that a search showed, and what the turn then read or said, go in; whether it was used comes out. Pure.

const RUN = 40; // consecutive letters and digits that are no coincidence
const SHORT_RUN = 14; // a memory shorter than RUN counts when all of it is there, if it is at least so long
const LINE = 12; // a line of the snippet as long as this, found in what was read, is the same line
const DENSE = 2.5; // one Chinese, Japanese or Korean character says as much as so many Latin letters
const DENSE_CHAR = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const AFTER_CITATION = /^(?:[A-Za-z0-9_]|-L?\d)/; // what makes it another, longer name
const AFTER_ADDRESS = /^(?:[\p{L}\p{N}_]|-+[\p{L}\p{N}_])/u;
const MAX_SNIPPET = 4_000; // this runs in the gateway's own thread
const MAX_TEXT = 30_000;

/** Letters and digits alone, folded: Markdown, line breaks and punctuation are what a quotation changes first. */
export function folded(text) {
  return text.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
}

/** Length in Latin letters' worth. */
export function weight(text) {
  let sum = 0;
  for (const char of text) sum += DENSE_CHAR.test(char) ? DENSE : 1;
  return sum;
}

/**
 * Whether `reading` held what was shown. The text decides where there is one: lines and headings may have moved since the search.
 * @param {import("./results.js").Shown} shown @param {import("./results.js").Reading} reading
 */
export function wasRead(shown, reading) {
  if (!samePath(reading.path, shown.path)) return false;
  if (reading.text === null) return (reading.startLine ?? 1) <= shown.endLine && shown.startLine <= (reading.endLine ?? Infinity);
  const text = folded(reading.text.slice(0, MAX_TEXT));
  const snippet = shown.snippet.slice(0, MAX_SNIPPET);
  const lines = snippet.split(/\r\n|\r|\n/);
  const body = lines.filter((line) => !/^\s{0,3}#{1,6}\s/.test(line)); // a twin has the same heading
  const telling = (body.some((line) => line.trim()) ? body : lines).map(folded);
  return telling.some((line) => weight(line) >= LINE && text.includes(line)) || shares(telling.join(""), text);
}

/** Whether `said` names it by citation or address, or repeats it. @param {import("./results.js").Shown} shown @param {string} said */
export function wasQuoted(shown, said) {
  if (names(said, shown.citation, AFTER_CITATION)) return true;
  if (shown.address.includes("#") && names(said, shown.address, AFTER_ADDRESS)) return true; // a bare file name says too little
  return shares(folded(shown.snippet.slice(0, MAX_SNIPPET)), folded(said.slice(-MAX_TEXT)));
}

function samePath(read, shown) {
  const plain = read.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "").replace(/#.*$/s, "");
  const inside = shown.replace(/^@[^/]+\//, ""); // a read tool knows an extra root by its real path
  return plain === shown || plain.endsWith(`/${inside}`);
}

// MEMORY.md#L3 is not named by MEMORY.md#L30, nor MEMORY.md#api by MEMORY.md#api-keys or old/MEMORY.md#api.
function names(text, name, goesOn) {
  if (!name) return false;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const before = /[A-Za-z0-9_./@-]$/.test(text.slice(0, at).slice(-1));
    if (!before && !goesOn.test(text.slice(at + name.length, at + name.length + 3))) return true;
  }
  return false;
}

// Whether they have a run in common that weighs RUN. Every such run holds a probe that begins at a multiple of half its length.
function shares(snippet, text) {
  if (weight(snippet) < RUN) return weight(snippet) >= SHORT_RUN && text.includes(snippet);
  const length = DENSE_CHAR.test(snippet) ? RUN / 2 / DENSE : RUN / 2;
  for (let at = 0; at + length <= snippet.length; at += length / 2) {
    const probe = snippet.slice(at, at + length);
    for (let found = text.indexOf(probe); found >= 0; found = text.indexOf(probe, found + 1)) {
      let start = 0;
      let end = length;
      while (at > start && found > start && snippet[at - start - 1] === text[found - start - 1]) start += 1;
      while (at + end < snippet.length && found + end < text.length && snippet[at + end] === text[found + end]) end += 1;
      if (weight(snippet.slice(at - start, at + end)) >= RUN) return true;
    }
  }
  return false;
}
