// Times, sizes and ranges as people read them: the same as surfaces/words.py.
export function timecode(us, parts = 0) {
  const step = 10 ** (6 - parts);
  const units = Math.floor(Math.max(0, us) / step);
  const whole = Math.floor(units / 10 ** parts);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const text = h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  return parts ? `${text}.${String(units % 10 ** parts).padStart(parts, "0")}` : text;
}

// A range of seconds: 6-9 min; never more exact than it is.
export function timeRange(seconds) {
  if (!seconds) return "measuring";
  const [low, high] = [seconds[0], Math.max(...seconds)];
  if (high < 1) return "under 1 s";
  const units = [["h", 3600, 5400], ["min", 60, 90], ["s", 1, 0]].filter(([, , from]) => high >= from);
  const ranges = units.map(([unit, length]) => [figure(low / length, unit), figure(high / length, unit), unit]);
  const [a, b, unit] = (high > 1.05 * low && ranges.find(([a, b]) => a !== b)) || ranges[0];
  return a === b ? `${b} ${unit}` : `${a}-${b} ${unit}`;
}

export function size(bytes) {
  let value = bytes;
  for (const unit of ["bytes", "kB", "MB", "GB"]) {
    if (value < 999.5) return `${value.toFixed(unit === "bytes" || value >= 99.5 ? 0 : 1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

export const plural = (number, one) => `${number.toLocaleString("en")} ${number === 1 ? one : `${one}s`}`;

const figure = (value, unit) => (unit === "h" ? value.toFixed(1).replace(/\.0$/, "") : String(Math.max(1, Math.round(value))));
const two = (n) => String(n).padStart(2, "0");
