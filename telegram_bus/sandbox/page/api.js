// Talking to the sandbox: what people do goes out as JSON, what happens comes in as server-sent events.

export class Refused extends Error {}

/** Do something as a person, e.g. `act("say", {chat_id, user_id, text})`; returns the result. */
export async function act(doing, fields) {
  const response = await fetch(`/sandbox/${doing}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  });
  const answer = await response.json();
  if (!response.ok) throw new Refused(answer.error ?? `status ${response.status}`);
  return answer.result;
}

export async function loadState() {
  const response = await fetch("/sandbox/state");
  if (!response.ok) throw new Refused(`status ${response.status}`);
  return response.json();
}

/** The calls that were made or changed after a version of the record, as soon as there is one. */
export async function loadCalls(version, newest) {
  const response = await fetch(`/sandbox/record?changed_after=${version}&newest=${newest}&wait=25`);
  if (!response.ok) throw new Refused(`status ${response.status}`);
  return response.json();
}

/** The newest calls that fit, of all that the sandbox still has; `wanted` are filters of the record. */
export async function findCalls(wanted) {
  const response = await fetch(`/sandbox/record?${new URLSearchParams(wanted)}`);
  if (!response.ok) throw new Refused(`status ${response.status}`);
  return (await response.json()).entries;
}

/** Follow all changes after the loaded state; the browser reconnects and says where it was. */
export function follow(state, { change, reset, online }) {
  const source = new EventSource(`/sandbox/events?after=${state.instance}.${state.seq}`);
  source.addEventListener("change", (event) => change(JSON.parse(event.data)));
  source.addEventListener("reset", () => {
    source.close();
    reset();
  });
  source.addEventListener("open", () => online(true));
  source.addEventListener("error", () => {
    online(false);
    if (source.readyState === EventSource.CLOSED) setTimeout(reset, 1000);
  });
}
