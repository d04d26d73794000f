/**
 * xterm.js writes its colours into <style> elements and its DOM renderer sets
 * style attributes; a policy of style-src 'self' refuses both. The same text
 * in a constructed sheet, or through the CSSOM, is a script's own doing, which
 * the policy allows. So <style> elements made by script keep their text in an
 * adopted sheet, and style attributes of spans go through element.style.
 * Imported first by main.ts.
 */
function installStyleShim(): void {
  const create = document.createElement.bind(document) as typeof document.createElement;
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    const el = create(tag, options);
    if (tag.toLowerCase() === "style") adopt(el as HTMLStyleElement);
    return el;
  }) as typeof document.createElement;

  const setAttribute = Element.prototype.setAttribute;
  HTMLSpanElement.prototype.setAttribute = function (name: string, value: string): void {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

function adopt(el: HTMLStyleElement): void {
  const sheet = new CSSStyleSheet();
  let text = "";
  let adopted = false;
  const property: PropertyDescriptor = {
    get: () => text,
    set(value: string) {
      text = value;
      sheet.replaceSync(value);
      if (!adopted) document.adoptedStyleSheets.push(sheet);
      adopted = true;
    },
  };
  Object.defineProperties(el, { textContent: property, innerText: property });
  el.remove = () => {
    HTMLElement.prototype.remove.call(el);
    const at = document.adoptedStyleSheets.indexOf(sheet);
    if (at >= 0) document.adoptedStyleSheets.splice(at, 1);
    adopted = false;
  };
}

installStyleShim();
