// Search in pages that are opened as files: browsers start no worker there, so its script runs in a hidden frame.
if (location.protocol === "file:") {
  // Frames lack this function of workers; the search loads its scripts for Chinese with it, in this order.
  const importScripts = (...urls) =>
    urls.reduce((loaded, src) => loaded.then(() => new Promise((onload, onerror) => {
      document.body.append(Object.assign(document.createElement("script"), { src, onload, onerror }));
    })), Promise.resolve());

  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      const script = document.createElement("script");
      script.src = url;
      frame.hidden = true;
      frame.srcdoc = `<body><script>importScripts = ${importScripts}</script>${script.outerHTML}`;
      this.inside = new Promise((resolve) => {
        frame.onload = () => {
          frame.contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          resolve(frame.contentWindow);
        };
      });
      document.body.append(frame);
    }

    postMessage(data) {
      this.inside.then((window) => window.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
