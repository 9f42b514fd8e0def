// The camera of the screen. While it is on, what it sees goes to the program of this very
// device, picture by picture, which looks for a code in it and forgets it.
const width = 640, height = 480, every = 200, again = 20000;

// camera makes the view of it, which stays away where no camera works; turn(true) has it look.
export function camera(words) {
  const video = Object.assign(document.createElement("video"), { muted: true, playsInline: true, tabIndex: -1 });
  const view = document.createElement("figure"), caption = document.createElement("figcaption");
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const draw = canvas.getContext("2d", { willReadFrequently: true });
  let wanted = false, stream = null, run = 0;
  view.className = "camera";
  view.hidden = true;
  video.setAttribute("aria-hidden", "true");
  view.append(video, caption);

  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  function off() {
    for (const track of stream?.getTracks() ?? []) track.stop();
    stream = null;
    video.srcObject = null;
    view.hidden = true;
    delete document.body.dataset.seen;
  }

  // picture is the middle of what the camera sees, as brightness.
  function picture() {
    const scale = Math.max(width / video.videoWidth, height / video.videoHeight), w = video.videoWidth * scale, h = video.videoHeight * scale;
    draw.drawImage(video, (width - w) / 2, (height - h) / 2, w, h);
    const rgba = draw.getImageData(0, 0, width, height).data, out = new Uint8Array(width * height);
    for (let i = 0, j = 0; i < out.length; i++, j += 4) out[i] = (77 * rgba[j] + 150 * rgba[j + 1] + 29 * rgba[j + 2]) >> 8;
    return out;
  }

  async function look(mine) {
    stream = await navigator.mediaDevices.getUserMedia({ audio: false, video: { width: { ideal: 1280 }, height: { ideal: 960 } } });
    if (mine !== run) return off();
    video.srcObject = stream;
    view.hidden = false;
    while (mine === run && stream.active) {
      if (video.paused) await video.play().catch(() => {}); // moved in the page
      if (video.videoWidth) {
        const r = await fetch("/api/picture", { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: picture() });
        if (r.ok) document.body.dataset.seen = (await r.json()).found ? "yes" : "no";
      }
      await wait(every);
    }
  }

  return {
    view,
    relabel() { if (caption.textContent !== words()) caption.textContent = words(); },
    async turn(on) {
      if (on === wanted) return;
      wanted = on;
      const mine = ++run;
      if (!on) return off();
      while (mine === run) {
        await look(mine).catch(() => {}); // there is none, it is another program's, or the program starts again
        if (mine !== run) return;
        off();
        await wait(again);
      }
    },
  };
}
