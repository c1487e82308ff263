// A worker that says so whenever a second has passed.

setInterval(() => (self as unknown as { postMessage(message: null): void }).postMessage(null), 1_000);
