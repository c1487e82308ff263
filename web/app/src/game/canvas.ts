// A canvas with as many pixels as the display has.

export interface Size {
  w: number;
  h: number;
}

export interface Point {
  x: number;
  y: number;
}

/** Empties a canvas that is this large in CSS pixels; what is drawn then is in those. */
export function emptied(canvas: HTMLCanvasElement, size: Size): CanvasRenderingContext2D | null {
  const density = devicePixelRatio || 1;
  const [wide, high] = [Math.round(size.w * density), Math.round(size.h * density)];
  // Setting a size clears the canvas, so it is done only together with drawing.
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const to = canvas.getContext("2d");
  to?.setTransform(density, 0, 0, density, 0, 0);
  to?.clearRect(0, 0, size.w, size.h);
  return to;
}

/** Keeps telling how large an element is, until the returned function is called. */
export function fitted(element: HTMLElement, tell: (size: Size) => void): () => void {
  const observer = new ResizeObserver(() => {
    const { clientWidth: w, clientHeight: h } = element;
    if (w > 0 && h > 0) tell({ w, h });
  });
  observer.observe(element);
  return () => observer.disconnect();
}

/** Where something happened, from the corner of an element. */
export function within(element: HTMLElement, event: PointerEvent): Point {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}
