// Polls: their options as buttons, one's own vote, and the counts.

import { el } from "/page/dom.js";

const votes = (count) => (count === 1 ? "1 vote" : `${count} votes`);

export class Polls {
  constructor(vote) {
    this.vote = vote; // called with a message and the numbers of options
    this.chosen = new Map(); // poll id → options ticked, where several can be and no vote was given yet
  }

  show(message, me) {
    const { poll } = message;
    const own = message.votes.find((vote) => vote.user_id === me)?.options ?? [];
    const voted = own.length > 0;
    const rows = poll.options.map((option, index) => this.row(message, option, index, own));
    return el("div", { class: poll.allows_multiple_answers ? "poll several" : "poll", role: "group", "aria-label": `Poll: ${poll.question}` },
      el("strong", {}, poll.question),
      el("small", {}, [`${poll.is_anonymous ? "Anonymous" : "Public"} ${poll.type === "quiz" ? "quiz" : "poll"}`, poll.is_closed && "closed", poll.allows_multiple_answers && "several answers"].filter(Boolean).join(", ")),
      el("div", { class: "poll-options" }, rows),
      el("small", { class: "poll-total" }, votes(poll.total_voter_count)),
      voted && poll.type === "quiz" && poll.explanation && el("em", {}, poll.explanation),
      !poll.is_closed && this.action(message, voted));
  }

  row(message, option, index, own) {
    const { poll } = message;
    const ticked = own.includes(index) || this.ticked(poll).has(index);
    const right = own.length > 0 && poll.correct_option_ids?.includes(index);
    const counted = own.length > 0 || poll.is_closed; // the apps show no counts before one's own vote
    const share = poll.total_voter_count ? Math.round((100 * option.voter_count) / poll.total_voter_count) : 0;
    return el("button", {
      class: "poll-option", type: "button", "aria-pressed": String(ticked), disabled: counted,
      "aria-label": [option.text, counted && votes(option.voter_count), right && "right"].filter(Boolean).join(", "),
      onclick: (event) => {
        if (!poll.allows_multiple_answers) this.vote(message, [index]);
        else event.currentTarget.setAttribute("aria-pressed", String(this.tick(poll, index)));
      },
    },
    el("span", {}, option.text, right && " ✓"), el("span", { class: "poll-count" }, counted ? `${share} %` : ""),
    counted && el("progress", { max: 100, value: share, "aria-hidden": "true" }));
  }

  action(message, voted) {
    const { poll } = message;
    if (voted && poll.type === "quiz") return null; // the apps do not let one take that back
    if (voted) return el("button", { class: "poll-action", type: "button", onclick: () => this.vote(message, []) }, "Take the vote back");
    if (!poll.allows_multiple_answers) return null;
    return el("button", {
      class: "poll-action", type: "button", onclick: () => {
        const options = [...this.ticked(poll)];
        this.chosen.delete(poll.id);
        if (options.length) this.vote(message, options);
      },
    }, "Vote");
  }

  ticked(poll) {
    return this.chosen.get(poll.id) ?? new Set();
  }

  tick(poll, index) {
    const ticked = new Set(this.ticked(poll));
    if (!ticked.delete(index)) ticked.add(index);
    this.chosen.set(poll.id, ticked);
    return ticked.has(index);
  }
}
