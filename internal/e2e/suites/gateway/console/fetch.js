// Browsers have fetch, which the client takes from the package undici.
export const fetch = (url, { dispatcher, ...options } = {}) => globalThis.fetch(url, options);
export const FormData = globalThis.FormData;
