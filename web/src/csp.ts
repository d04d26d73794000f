/**
 * xterm.js writes its colours into <style> elements and its DOM renderer sets
 * style attributes; a policy of style-src 'self' refuses both. The same text
 * in a constructed sheet, or through the CSSOM, is a script's own doing, which
 * the policy allows. So what script makes as a <style> is an inert element
 * that keeps its text in an adopted sheet (even an empty <style> is refused,
 * aloud), and style attributes of spans go through element.style. Imported
 * first by main.ts.
 */
function installStyleShim(): void {
  const create = document.createElement.bind(document) as typeof document.createElement;
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    return tag.toLowerCase() === "style" ? adopting(create("template")) : create(tag, options);
  }) as typeof document.createElement;

  const setAttribute = Element.prototype.setAttribute;
  HTMLSpanElement.prototype.setAttribute = function (name: string, value: string): void {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
}

function adopting(el: HTMLElement): HTMLElement {
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
  return el;
}

installStyleShim();
