// Asks for a token. It is kept for this tab, or on this device if the reader wants it.
import { refused, token, useToken } from "../api.js";
import { html, useSignal, useState } from "../html.js";
import { signIn } from "../session.js";

export function SignIn() {
  const why = useSignal(refused);
  const [text, setText] = useState("");
  const [keeps, setKeeps] = useState(false);
  const [problem, setProblem] = useState(undefined);
  const submit = async (event) => {
    event.preventDefault();
    // A header cannot carry other characters: the browser would throw.
    if (!/^[\x21-\x7e]+$/.test(text.trim())) {
      setProblem("A token has only printable ASCII characters.");
      return;
    }
    const before = token.value;
    token.value = text.trim();
    try {
      await signIn();
      useToken(text.trim(), keeps);
    } catch (error) {
      token.value = before;
      setProblem(error.message);
    }
  };
  return html`<main class="sign-in"><form class="sheet" onSubmit=${submit}>
    <h1>Dormouse</h1>
    <p class="quiet">${why}</p>
    <label class="field">Token
      <input type="password" autocomplete="off" autofocus value=${text} onInput=${(e) => setText(e.target.value)} /></label>
    <label><input type="checkbox" checked=${keeps} onChange=${(e) => setKeeps(e.target.checked)} /> Keep it on this device</label>
    ${problem && html`<p class="note is-bad" role="alert">${problem}</p>`}
    <div class="buttons"><button type="submit" class="primary">Sign in</button></div>
    <p class="quiet">The server's operator makes tokens: <code>dormouse config token</code>.</p>
  </form></main>`;
}
