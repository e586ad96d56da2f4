// The console's start: who are we, which screen does the address name, and what if neither works.
import { openDialog } from "./actions.js";
import { refused, trouble } from "./api.js";
import { Dialogs } from "./components/dialog.js";
import { Help, Shell, Title } from "./components/shell.js";
import { SignIn } from "./components/signin.js";
import { Component, html, render, useEffect, useSignal, useState } from "./html.js";
import { onHelp, onKey, showTheme } from "./keys.js";
import { keepLive } from "./live.js";
import { route } from "./router.js";
import { Connections, Locks } from "./screens/clients.js";
import { Job, JobByKey } from "./screens/job.js";
import { Overview } from "./screens/overview.js";
import { Put } from "./screens/put.js";
import { Schedules } from "./screens/schedules.js";
import { Server } from "./screens/server.js";
import { Tail } from "./screens/tail.js";
import { Topic } from "./screens/topic.js";
import { Topics } from "./screens/topics.js";
import { signIn, who } from "./session.js";

// The first step of the address chooses the screen; the others are its arguments.
const SCREENS = {
  "": Overview, topics: Topics, t: Topic, j: Job, k: JobByKey, schedules: Schedules, tail: Tail, locks: Locks,
  connections: Connections, put: Put, server: Server,
};
const pages = new Set(Object.keys(SCREENS));

function NoScreen({ hash }) {
  return html`<${Title} name="No such page" />
    <p class="note is-bad" role="alert">There is nothing at <code>${hash}</code>. <a href="#/">Go to the overview</a>.</p>`;
}

// A screen that fails says so; the frame around it stays.
class Guarded extends Component {
  componentDidCatch(error) {
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (!error) return children;
    return html`<${Title} name="This screen failed" />
      <p class="note is-bad" role="alert">The console has a fault: ${String(error)}. <a href="#/">Go to the overview</a>, or load the page again.</p>`;
  }
}

function Screen() {
  const { steps, query, hash, error } = useSignal(route);
  if (error) return html`<${NoScreen} hash=${hash} />`;
  const [name = "", ...rest] = steps;
  const screen = Object.hasOwn(SCREENS, name) ? SCREENS[name] : undefined;
  if (!screen) return html`<${NoScreen} hash=${hash} />`;
  const key = steps.slice(0, 2).join("/");
  return html`<${Guarded} key=${key}><${screen} steps=${rest} query=${query} /></${Guarded}>`;
}

const RETRY_MS = 1000;

function App() {
  const answer = useSignal(who);
  const why = useSignal(refused);
  const problem = useSignal(trouble);
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (answer || why) return undefined;
    let timer;
    signIn().catch(() => { timer = setTimeout(() => setRound((n) => n + 1), RETRY_MS); });
    return () => clearTimeout(timer);
  }, [answer, why, round]);
  if (why) return html`<${SignIn} />`;
  if (!answer) {
    return html`<main class="sign-in"><h1>Dormouse</h1>
      ${problem ? html`<p class="note is-bad" role="alert">${problem.text} Asking again every second.</p>` : html`<p>Connecting…</p>`}</main>`;
  }
  const showHelp = () => openDialog(() => html`<${Help} />`);
  return html`<${Shell} pages=${pages} onHelp=${showHelp}><${Screen} /></${Shell}><${Dialogs} />`;
}

showTheme();
keepLive();
onHelp(() => html`<${Help} />`);
addEventListener("keydown", onKey);
const root = document.querySelector("#app");
root.replaceChildren();
render(html`<${App} />`, root);
