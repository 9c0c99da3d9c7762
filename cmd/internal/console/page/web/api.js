// Calls of the admin API. The token is in the header that this script sets and in the storage of this tab: no cookie and no link has it.

const storage = "headgate-token";

/** An answer that is not a success. */
export class Refused extends Error {
  constructor(status, text, body) {
    super(text);
    this.status = status;
    this.body = body;
  }
}

export const token = {
  get: () => sessionStorage.getItem(storage) ?? "",
  set: (text) => (text ? sessionStorage.setItem(storage, text) : sessionStorage.removeItem(storage)),
};

/** Sends a call and reads its JSON. */
export async function call(method, path, body, { timeout = 10_000 } = {}) {
  const headers = { Accept: "application/json" };
  if (token.get()) headers.Authorization = "Bearer " + token.get();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch("/api/v1/" + path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(timeout),
  });
  const text = await answer.text();
  let read = null;
  try {
    read = JSON.parse(text);
  } catch {
    // Refusals of the listener itself are plain text.
  }
  if (!answer.ok) throw new Refused(answer.status, describe(answer.status, read, text), read);
  return read ?? text.trim();
}

function describe(status, read, text) {
  if (read?.faults?.length) return read.faults.map((f) => f.text || f.problem).join("\n");
  return read?.error || read?.message || text.trim().slice(0, 500) || "status " + status;
}

export const get = (path, options) => call("GET", path, undefined, options);

/** A query string of the parameters that have a value. */
export function query(parameters) {
  const q = new URLSearchParams(Object.entries(parameters).filter(([, v]) => v !== undefined && v !== "" && v !== null));
  return q.size ? "?" + q : "";
}
