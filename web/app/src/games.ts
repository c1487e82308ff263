// What the page says about each game it knows. A game it does not know is shown by its name alone.

export interface GameText {
  title: string;
  text: string;
}

const TEXTS: Record<string, GameText> = {
  pong: {
    title: "Pong",
    text: "Two to four players, one wall each. First to eleven. Bots keep empty seats warm until somebody sits down.",
  },
};

export function gameText(name: string): GameText {
  return TEXTS[name] ?? { title: name.charAt(0).toUpperCase() + name.slice(1), text: "" };
}
