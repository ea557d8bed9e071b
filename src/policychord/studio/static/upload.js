// Files that are handed to the studio: chosen or dropped, sent once, and then known by a number.

// take(file) is called for a file that was chosen or dropped.
export function offer(input, drop, take) {
  const over = (on) => (event) => { event.preventDefault(); drop.classList.toggle("over", on); };
  input.addEventListener("change", (event) => { if (event.target.files[0]) take(event.target.files[0]); event.target.value = ""; });
  drop.addEventListener("dragover", over(true));
  drop.addEventListener("dragleave", over(false));
  drop.addEventListener("drop", (event) => { over(false)(event); if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]); });
}

// The number of a file in the studio's memory; an Error says why it did not arrive.
export async function send(file) {
  const answer = await fetch(`/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  if (!answer.ok) throw new Error(`${file.name} did not arrive: ${await answer.text()}`);
  return (await answer.json()).number;
}
