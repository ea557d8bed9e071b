// Frames as studio/wire.py packs them, and the socket they come through.

export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  let offset = 4 + length;
  for (const [name, shape] of header.arrays) {
    const count = shape.reduce((a, b) => a * b, 1);
    arrays[name] = { values: new Float32Array(buffer, offset, count), shape };
    offset += 4 * count;
  }
  return { ...header, arrays };
}

// on: {open(), text(message), frame(frame), closed()}. A socket that breaks is opened again, at growing intervals.
export function connect(page, on) {
  let socket = null, ended = false, wait = 500;
  function open() {
    socket = new WebSocket(`ws://${location.host}/ws/${page}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { wait = 500; on.open(); };
    socket.onmessage = (event) => {
      if (ended) return;
      if (typeof event.data === "string") on.text(JSON.parse(event.data));
      else on.frame(decode(event.data));
    };
    socket.onclose = () => {
      if (ended) return;
      on.closed();
      setTimeout(() => { if (!ended) open(); }, wait);
      wait = Math.min(wait * 2, 8000);
    };
  }
  open();
  return {
    send(message) { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); },
    close() { ended = true; socket.close(); },
  };
}
