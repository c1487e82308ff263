// Lets a test send messages to a page in place of the wasm client: for rare states.

/** To be called before the page is loaded. From then on `tell` says what is other than the game has it. */
export async function tellable(context) {
  await context.addInitScript(() => {
    const Real = window.Worker;
    /** The last words of each kind, and what of them is other. */
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

/** `news`: parts of `hud` and `status`; what was told before is as the game has it again, unless it is told once more. */
export function tell(player, news) {
  return player.page.evaluate((news) => window.tell({ hud: {}, status: {}, ...news }), news);
}
