// What the browser remembers of this console. Storage may be switched off, so each access may fail.

export function remembered(name, otherwise, storage = "localStorage") {
  try {
    return window[storage].getItem(`dormouse.${name}`) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function remember(name, text, storage = "localStorage") {
  try {
    if (text === undefined) window[storage].removeItem(`dormouse.${name}`);
    else window[storage].setItem(`dormouse.${name}`, text);
  } catch {
    // Then it is forgotten with the page.
  }
}
