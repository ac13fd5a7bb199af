// Talking to the server: every answer is data or a ServerError whose kind says what the page should do about it.

const KINDS = { 400: "refused", 403: "key", 404: "missing", 408: "slow", 413: "long", 429: "busy", 503: "busy", 504: "slow" };
const DEFAULT_WAIT = 5;

/** What went wrong: kind is gone, busy, key, long, slow, missing, refused or failed; wait is in seconds. */
export class ServerError extends Error {
  constructor(kind, message, wait = DEFAULT_WAIT) {
    super(message);
    this.kind = kind;
    this.wait = wait;
  }
}

let key = null;

/** The key that goes with every request from now on; null for none. */
export function useKey(value) {
  key = value || null;
}

/** What the server allows and expects: charLimit, batchLimit, keyRequired and so on. */
export function readSettings(signal) {
  return ask("frontend/settings", { signal });
}

/** The models it serves. */
export async function readModels(signal) {
  return (await ask("v1/models", { signal })).models;
}

/** Translations of a list of texts. */
export async function translate(request, signal) {
  return (await post("v1/translate", request, signal)).translations;
}

/** What the model attended to while it wrote a sentence, for the lens. */
export function readAttention(request, signal) {
  return post("v1/attention", { ...request, encoding: "bytes" }, signal);
}

/** Whether the server answers at all. */
export async function isThere(signal) {
  try {
    const answer = await fetch("health", { cache: "no-store", signal });
    await answer.text();
    return answer.ok;
  } catch {
    return false;
  }
}

function post(path, body, signal) {
  return ask(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal });
}

async function ask(path, request) {
  const sent = key; // it may be another one when the answer comes
  const headers = { ...request.headers, ...(sent ? { Authorization: `Bearer ${sent}` } : {}) };
  let answer;
  let data;
  try {
    answer = await fetch(path, { ...request, headers });
    data = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!answer) throw new ServerError("gone", "The server does not answer.");
    if (answer.ok) throw new ServerError("gone", "The server broke off its answer.");
  }
  if (answer.ok) return data;
  const kind = KINDS[answer.status] ?? "failed";
  const said = typeof data?.error === "string" ? data.error : `The server answers ${answer.status}.`;
  if (kind === "key" && !sent) throw new ServerError(kind, "This server asks for a key.");
  throw new ServerError(kind, said, secondsToWait(answer.headers.get("Retry-After")));
}

/** Retry-After is a number of seconds, or a date. */
function secondsToWait(header) {
  if (!header) return DEFAULT_WAIT;
  const seconds = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(Math.ceil(seconds), 1), 600) : DEFAULT_WAIT;
}
