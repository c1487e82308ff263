// The claim of a tab to its seat in a session without a lobby: for a reload, and for a return to the page. The claim is
// in the tab's storage only while no page of the tab plays. A page that plays has taken it out, so a copy of the tab has none
// and gets a seat of its own.

const PREFIX = "sametick.claim.";

type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** The claim to a seat in a session of a game, which is a secret. */
export class Claims {
  private claim: string | null = null;
  private is_left = false;
  private readonly key: string;

  constructor(
    game: string,
    session: string,
    private readonly store: () => Store = () => sessionStorage,
  ) {
    this.key = `${PREFIX}${game}/${session}`;
  }

  /** Takes out what the last page of this tab has left. */
  take(): string | null {
    this.claim = this.use((store) => store.getItem(this.key)) ?? null;
    this.hold();
    return this.claim;
  }

  /** The server has sent a new claim. */
  given(claim: string): void {
    if (claim) this.claim = claim;
    if (this.is_left) this.leave();
  }

  /** This page plays: another page must not use the claim. */
  hold(): void {
    this.is_left = false;
    this.use((store) => store.removeItem(this.key));
  }

  /** Leaves it for the next page of this tab. */
  leave(): void {
    this.is_left = true;
    const { claim } = this;
    if (claim) this.use((store) => store.setItem(this.key, claim));
  }

  /** Without storage a reload joins as a new player. */
  private use<T>(act: (store: Store) => T): T | undefined {
    try {
      return act(this.store());
    } catch {
      return undefined;
    }
  }
}
