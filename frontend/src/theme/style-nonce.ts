// The server puts a fresh nonce into index.html and into its Content-Security-Policy: only styles that carry it apply.
// Without a server (tests, the development server) there is no policy, and any value will do.

export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
}

// The scroll lock of modals reads the nonce from this global, which is the only way it offers.
export function shareStyleNonce(): void {
  Object.assign(globalThis, { __webpack_nonce__: styleNonce() });
}
