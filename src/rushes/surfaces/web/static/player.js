// The player: HLS in a plain video element, with frames, speed, captions and one clock for everything else.
import Hls from "./vendor/hls.min.mjs";
import { timecode } from "./words.js";

const CAPTIONS = "rushes.captions"; // whoever wants them once wants them in the next film
const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3];

export class Player {
  constructor(root) {
    this.root = root;
    this.video = root.querySelector("video");
    const [over, under] = root.dataset.rate.split("/").map(Number);
    this.frame = under / over;
    this.duration = Number(root.dataset.duration);
    this.listeners = new Set();
    if (this.video) this.start();
  }

  start() {
    const { video, root } = this;
    video.removeAttribute("controls");
    if (video.src) video.addEventListener("error", () => this.fail()); // a 3D version is one plain file
    else if (Hls.isSupported()) {
      this.hls = new Hls({ enableWorker: false, maxBufferLength: 30 });
      this.hls.loadSource(root.dataset.proxy);
      this.hls.attachMedia(video);
      this.hls.on(Hls.Events.ERROR, (_name, error) => { if (error.fatal || error.response?.code === 404) this.fail(); });
    } else video.src = root.dataset.proxy;
    for (const part of root.querySelectorAll("[data-controls], [data-position]")) part.hidden = false;
    this.position = root.querySelector("[data-position]");
    this.now = root.querySelector("[data-now]");
    this.bind();
  }

  bind() {
    const { video, position } = this;
    const actions = {
      play: () => this.toggle(), back: () => this.step(-1), forward: () => this.step(1), captions: () => this.captions(),
      boxes: () => this.root.dispatchEvent(new CustomEvent("boxes")), mute: () => this.mute(), full: () => this.full(),
    };
    for (const button of this.root.querySelectorAll("[data-do]")) button.addEventListener("click", actions[button.dataset.do]);
    this.root.querySelector("[data-speed]").addEventListener("change", (event) => { video.playbackRate = Number(event.target.value); });
    video.addEventListener("click", () => this.toggle());
    position.addEventListener("input", () => this.seek(Number(position.value)));
    for (const name of ["play", "pause"]) video.addEventListener(name, () => this.sign("play", video.paused ? "Play" : "Pause", video.paused ? "play" : "pause"));
    for (const name of ["timeupdate", "seeking", "seeked", "loadedmetadata"]) video.addEventListener(name, () => this.tell());
    video.addEventListener("play", () => this.tick());
    video.addEventListener("seeking", () => { this.picture = undefined; });
    this.watch();
    if (localStorage.getItem(CAPTIONS) === "1") this.captions();
  }

  watch() {
    this.video.requestVideoFrameCallback?.((_now, { mediaTime }) => { this.picture = mediaTime; this.watch(); });
  }

  get us() { return Math.round((this.video?.currentTime ?? 0) * 1e6); }

  // Where the picture on screen begins: by the even rate of the film, else as the browser tells it, which may be up to
  // half a millisecond late.
  get shown() {
    const now = this.video?.currentTime ?? 0;
    const old = this.picture === undefined || this.picture > now + 0.001; // of a seek before the last one
    const told = old ? now : this.picture;
    const even = Math.floor(told / this.frame + 0.1) * this.frame;
    return Math.max(0, Math.round((old || Math.abs(even - told) < 0.001 ? even : told - 0.0005) * 1e6));
  }

  onTime(listener) { this.listeners.add(listener); }

  tick() {
    this.tell();
    if (!this.video.paused) requestAnimationFrame(() => this.tick());
  }

  tell() {
    const us = this.us;
    this.now.textContent = timecode(us, 3);
    this.position.value = us;
    this.position.setAttribute("aria-valuetext", timecode(us));
    this.position.style.setProperty("--at", `${(100 * us) / this.duration}%`);
    for (const listener of this.listeners) listener(us);
  }

  // A quarter of a frame into the picture that is asked for, so that it is never the one before.
  seek(us) { if (this.video) this.video.currentTime = Math.max(0, Math.min(us + this.frame * 250000, this.duration - 1000)) / 1e6; }
  skip(seconds) { if (this.video) this.video.currentTime += seconds; }
  toggle() { if (this.video) this.video.paused ? this.video.play().catch(() => {}) : this.video.pause(); }

  step(frames) {
    this.video.pause();
    this.video.currentTime = Math.max(0, (Math.floor(this.video.currentTime / this.frame + 0.01) + frames + 0.25) * this.frame);
  }

  speed(by) {
    const at = SPEEDS.indexOf(this.video.playbackRate);
    this.video.playbackRate = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at + by))];
    this.root.querySelector("[data-speed]").value = this.video.playbackRate;
  }

  captions() {
    const track = this.video?.textTracks[0];
    if (!track) return;
    track.mode = track.mode === "showing" ? "hidden" : "showing";
    this.press("captions", track.mode === "showing");
    localStorage.setItem(CAPTIONS, track.mode === "showing" ? "1" : "0");
  }

  // Captions as they are now, after a correction.
  renewCaptions() {
    const old = this.video?.querySelector("track");
    if (!old) return;
    const track = old.cloneNode();
    track.src = `${old.getAttribute("src").split("?")[0]}?at=${Date.now()}`;
    const { mode } = old.track;
    old.replaceWith(track);
    track.track.mode = mode;
  }

  mute() {
    this.video.muted = !this.video.muted;
    this.press("mute", this.video.muted);
    this.sign("mute", "Mute", this.video.muted ? "volume-x" : "volume-2");
  }

  full() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen?.();
  }

  press(name, on) { this.root.querySelector(`[data-do="${name}"]`)?.setAttribute("aria-pressed", String(on)); }

  sign(name, label, icon) {
    const button = this.root.querySelector(`[data-do="${name}"]`);
    if (!button) return;
    if (name === "play") button.setAttribute("aria-label", label);
    const use = button.querySelector("use");
    use.setAttribute("href", use.getAttribute("href").replace(/#.*/, `#${icon}`));
  }

  fail() { document.querySelector("[data-broken]").hidden = false; }
}
