// What the browser remembers of this console. Storage may be switched off, so each access may fail.
// Another console may live on the same host below another path: each has names of its own.

export const home = new URL("..", document.baseURI);

const named = (name) => `dormouse.${name} ${home.pathname}`;

export function remembered(name, otherwise, storage = "localStorage") {
  try {
    return window[storage].getItem(named(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function remember(name, text, storage = "localStorage") {
  try {
    if (text === undefined) window[storage].removeItem(named(name));
    else window[storage].setItem(named(name), text);
  } catch {
    // Then it is forgotten with the page.
  }
}
