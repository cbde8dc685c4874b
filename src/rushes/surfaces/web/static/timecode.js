// Film time: 12:41, 1:02:03, with some digits of a second 12:41.7.
export function timecode(us, parts = 0) {
  const step = 10 ** (6 - parts);
  const units = Math.floor(Math.max(0, us) / step);
  const whole = Math.floor(units / 10 ** parts);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const text = h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
  return parts ? `${text}.${String(units % 10 ** parts).padStart(parts, "0")}` : text;
}

const two = (n) => String(n).padStart(2, "0");
