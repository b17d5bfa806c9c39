// Requests to the server over HTTP, and the socket of a game, which reconnects after a lost connection.

import { hasWords, words } from "../page/language.js";

export class Problem extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function call(method, path, { body, token, signal } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(words("problem.silent"), 0);
  }
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  const answer = isJson ? await response.json() : await response.text();
  if (!response.ok) throw refusal(answer, response.status);
  return answer;
}

// Return the error of a refusal, in the page's language if its code has a text there, with the server's message as details.
function refusal({ code, message }, status) {
  return new Problem(hasWords(`refused.${code}`) ? words(`refused.${code}`, { message }) : message ?? words("problem.refused"), status);
}

// The close code after which reconnecting is of no use: an unknown game, or a wrong token.
const NOT_ADMITTED = 4403;
const MIN_RETRY_DELAY = 250, MAX_RETRY_DELAY = 5000; // milliseconds
// Interval of pings, and timeout of an answer, in milliseconds. Without them a connection would stay open for many minutes after the
// network is lost, and messages would be lost.
const PING_INTERVAL = 20_000, ANSWER_TIMEOUT = 10_000;

export class GameSocket {
  #closed = false;
  #retryDelay = MIN_RETRY_DELAY;
  #retryTimer = 0;
  #pingTimer = 0;
  #answerTimer = 0;

  constructor(id, ticket, { onJoined, onState, onProblem, onConnection }) {
    Object.assign(this, { id, ticket, onJoined, onState, onProblem, onConnection });
    this.wake = () => { if (document.visibilityState === "visible" && !this.send({ type: "ping" })) this.#retryNow(); };
    this.#pingTimer = setInterval(() => this.send({ type: "ping" }), PING_INTERVAL);
    document.addEventListener("visibilitychange", this.wake);
    addEventListener("online", this.wake);
    this.#connect();
  }

  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    this.#answerTimer ||= setTimeout(() => this.#reconnect(), ANSWER_TIMEOUT); // the server answers every message
    return true;
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    clearInterval(this.#pingTimer);
    this.#clearAnswerTimer();
    document.removeEventListener("visibilitychange", this.wake);
    removeEventListener("online", this.wake);
    this.socket?.close();
  }

  #connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/games/${encodeURIComponent(this.id)}/socket`);
    this.socket = socket;
    socket.onopen = () => this.send({ type: "join", ...this.ticket });
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
    socket.onclose = (event) => this.#disconnected(event);
  }

  #clearAnswerTimer() {
    clearTimeout(this.#answerTimer);
    this.#answerTimer = 0;
  }

  // Reconnect at once: without a network, closing a socket would wait for the other side.
  #reconnect() {
    this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
    this.#disconnected({});
  }

  #receive(message) {
    if (this.#closed) return;
    this.#clearAnswerTimer();
    if (message.type === "joined") {
      this.#retryDelay = MIN_RETRY_DELAY;
      this.onConnection(true);
      this.onJoined(message.role);
    } else if (message.type === "state") this.onState(message);
    else if (message.type === "error") this.onProblem(refusal(message, message.status));
  }

  #disconnected(event) {
    if (this.#closed) return;
    this.#clearAnswerTimer();
    this.onConnection(false, event.code === NOT_ADMITTED);
    if (event.code === NOT_ADMITTED) return this.close();
    this.#retryTimer = setTimeout(() => this.#connect(), this.#retryDelay);
    this.#retryDelay = Math.min(MAX_RETRY_DELAY, this.#retryDelay * 2);
  }

  #retryNow() {
    if (this.#closed || this.socket.readyState !== WebSocket.CLOSED) return;
    clearTimeout(this.#retryTimer);
    this.#connect();
  }
}
