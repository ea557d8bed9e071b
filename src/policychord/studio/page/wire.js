// Frames as studio/wire.py packs them, and the socket they come through.

export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  let place = 4 + length;
  for (const [name, shape] of header.arrays) {
    const count = shape.reduce((a, b) => a * b, 1);
    arrays[name] = { values: new Float32Array(buffer, place, count), shape };
    place += 4 * count;
  }
  return { ...header, arrays };
}

// hear: {open(), words(message), frame(frame), gone()}. A socket that breaks is tried again, ever more slowly.
export function connect(room, hear) {
  let socket = null, over = false, wait = 500;
  function begin() {
    socket = new WebSocket(`ws://${location.host}/ws/${room}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { wait = 500; hear.open(); };
    socket.onmessage = (event) => {
      if (over) return;
      if (typeof event.data === "string") hear.words(JSON.parse(event.data));
      else hear.frame(decode(event.data));
    };
    socket.onclose = () => {
      if (over) return;
      hear.gone();
      setTimeout(() => { if (!over) begin(); }, wait);
      wait = Math.min(wait * 2, 8000);
    };
  }
  begin();
  return {
    send(message) { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); },
    close() { over = true; socket.close(); },
  };
}
