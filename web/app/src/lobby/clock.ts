// A worker that posts a message every second.

setInterval(() => (self as unknown as { postMessage(message: null): void }).postMessage(null), 1_000);
