// SHA-256 of pieces that come one after the other: browsers hash only whole buffers, and only on secure pages.
const K = constants((n) => Math.cbrt(n), 64);
const H = constants((n) => Math.sqrt(n), 8);

function constants(root, count) {
  const found = [];
  for (let n = 2; found.length < count; n += 1) {
    if ([...Array(n).keys()].slice(2).every((d) => n % d)) found.push(((root(n) % 1) * 2 ** 32) | 0);
  }
  return Int32Array.from(found);
}

export class Sha256 {
  #state = Int32Array.from(H);
  #words = new Int32Array(64);
  #rest = new Uint8Array(64);
  #filled = 0;
  #length = 0;

  update(bytes) {
    this.#length += bytes.length;
    let at = 0;
    while (at < bytes.length) {
      if (!this.#filled && bytes.length - at >= 64) {
        this.#block(bytes, at);
        at += 64;
        continue;
      }
      const some = Math.min(64 - this.#filled, bytes.length - at);
      this.#rest.set(bytes.subarray(at, at + some), this.#filled);
      this.#filled += some;
      at += some;
      if (this.#filled === 64) {
        this.#block(this.#rest, 0);
        this.#filled = 0;
      }
    }
    return this;
  }

  digest() {
    const bits = this.#length * 8;
    const end = new Uint8Array(((this.#filled < 56 ? 56 : 120) - this.#filled) + 8);
    end[0] = 0x80;
    new DataView(end.buffer).setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
    new DataView(end.buffer).setUint32(end.length - 4, bits % 2 ** 32);
    this.update(end);
    const out = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, n) => out.setInt32(4 * n, word));
    return new Uint8Array(out.buffer);
  }

  #block(bytes, at) {
    const w = this.#words;
    for (let n = 0, i = at; n < 16; n += 1, i += 4) w[n] = (bytes[i] << 24) | (bytes[i + 1] << 16) | (bytes[i + 2] << 8) | bytes[i + 3];
    for (let n = 16; n < 64; n += 1) {
      const a = w[n - 15];
      const b = w[n - 2];
      const s0 = ((a >>> 7) | (a << 25)) ^ ((a >>> 18) | (a << 14)) ^ (a >>> 3);
      const s1 = ((b >>> 17) | (b << 15)) ^ ((b >>> 19) | (b << 13)) ^ (b >>> 10);
      w[n] = (w[n - 16] + s0 + w[n - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state;
    for (let n = 0; n < 64; n += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[n] + w[n]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, n) => { this.#state[n] = (this.#state[n] + word) | 0; });
  }
}

export async function sha256(buffer) {
  if (globalThis.crypto?.subtle) return new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
  return new Sha256().update(new Uint8Array(buffer)).digest();
}

export const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
export const base64 = (bytes) => btoa(String.fromCharCode(...bytes));
