// Browsers have URL, which the client takes from the module url of Node.js.
export const URL = globalThis.URL;
