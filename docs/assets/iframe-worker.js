// Search from the disk: a browser starts no worker from file://, so a hidden frame of the page stands in for one.
(() => {
  if (location.protocol !== "file:") return;

  const load = (inner, url) =>
    new Promise((resolve, reject) => {
      const script = inner.document.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = reject;
      inner.document.head.append(script);
    });

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inner.importScripts = (...urls) => Promise.all(urls.map((each) => load(inner, each)));
      this.loaded = load(inner, new URL(url, location.href));
    }

    // What comes before the script is there waits for it.
    postMessage(data) {
      this.loaded.then(() => {
        const inner = this.frame.contentWindow;
        inner.dispatchEvent(new inner.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
