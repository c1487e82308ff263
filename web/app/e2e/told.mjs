// Lets a test send messages to a page in place of the wasm client: for rare states.

/** Call this before the page is loaded. From then on `tell` overrides parts of the game's messages. */
export async function tellable(context) {
  await context.addInitScript(() => {
    const Real = window.Worker;
    /** The last message of each kind, and its overrides. */
    const [said, told] = [{}, { hud: {}, status: {} }];
    let hear = null;
    const pass = (message) => hear?.({ data: message.kind in told ? { ...message, [message.kind]: { ...message[message.kind], ...told[message.kind] } } : message });
    window.Worker = class extends Real {
      set onmessage(listener) {
        hear = listener;
        super.onmessage = ({ data }) => {
          if (data.kind in told) said[data.kind] = data;
          pass(data);
        };
      }
    };
    window.tell = (news) => {
      Object.assign(told, news);
      Object.values(said).forEach(pass);
    };
  });
}

/** `news`: parts of `hud` and `status`; earlier overrides end unless they are repeated. */
export function tell(player, news) {
  return player.page.evaluate((news) => window.tell({ hud: {}, status: {}, ...news }), news);
}
