// A bad network as a text that netem understands.

export interface Lag {
  rtt_ms: number;
  jitter_ms: number;
  loss_percent: number;
}

export const PRESETS: { name: string; lag: Lag }[] = [
  { name: "None", lag: { rtt_ms: 0, jitter_ms: 0, loss_percent: 0 } },
  { name: "Good Wi-Fi", lag: { rtt_ms: 20, jitter_ms: 4, loss_percent: 0 } },
  { name: "Mobile", lag: { rtt_ms: 90, jitter_ms: 20, loss_percent: 2 } },
  { name: "Terrible", lag: { rtt_ms: 300, jitter_ms: 60, loss_percent: 15 } },
];

/** Empty for a network that is left as it is. */
export function profileOf({ rtt_ms, jitter_ms, loss_percent }: Lag): string {
  const parts = [
    rtt_ms > 0 && `rtt=${rtt_ms}ms`,
    jitter_ms > 0 && `jitter=${jitter_ms}ms`,
    loss_percent > 0 && `loss=${loss_percent}%`,
  ];
  return parts.filter(Boolean).join(",");
}
