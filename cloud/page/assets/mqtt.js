// The little of MQTT 3.1.1 that it takes to listen: one connection over
// WebSocket that subscribes and acknowledges.

const CONNECT = 0x10, CONNACK = 2, PUBLISH = 3, PUBACK = 0x40, SUBSCRIBE = 0x82, SUBACK = 9, PINGREQ = 0xc0, PINGRESP = 13;
const keepAlive = 30; // seconds
const patience = 10000; // milliseconds for an answer
const largest = 1 << 20; // bytes of a packet

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const short = (n) => [n >> 8, n & 255];
const text = (s) => { const b = encoder.encode(s); return [...short(b.length), ...b]; };

function packet(first, body) {
  const length = [];
  let n = body.length;
  do {
    length.push((n & 127) | (n > 127 ? 128 : 0));
    n >>= 7;
  } while (n > 0);
  return new Uint8Array([first, ...length, ...body]);
}

// split gives the whole packets at the beginning of bytes, and the rest.
export function split(bytes) {
  const packets = [];
  for (;;) {
    let length = 0, at = 1, shift = 0;
    for (; at < bytes.length; shift += 7) {
      const b = bytes[at++];
      length |= (b & 127) << shift;
      if (b < 128) break;
      if (shift > 14) throw new Error("a length of more than four bytes");
    }
    if (length > largest) throw new Error("a packet that is too large");
    if (at < 2 || bytes[at - 1] > 127 || bytes.length < at + length) return [packets, bytes];
    packets.push([bytes[0], bytes.subarray(at, at + length)]);
    bytes = bytes.subarray(at + length);
  }
}

// listen listens to topics at an address until a time, in milliseconds of the
// clock, and then resolves; it rejects when the connection cannot be made or is
// lost. opened is called when all topics are subscribed to, heard with the JSON
// of each message, which may come again.
export function listen(address, login, topics, until, opened, heard) {
  return new Promise((done, failed) => {
    const socket = new WebSocket(address, "mqtt");
    socket.binaryType = "arraybuffer";
    let rest = new Uint8Array(0);
    let waits = setTimeout(() => end(new Error("no answer")), patience);
    let asked = 0; // when a ping was sent that nobody answered
    const send = (p) => { if (socket.readyState === WebSocket.OPEN) socket.send(p); };
    const beat = setInterval(() => {
      if (Date.now() >= until) return end();
      if (asked && Date.now() - asked > patience) return end(new Error("no answer"));
      if (!asked && !waits) {
        asked = Date.now();
        send(packet(PINGREQ, []));
      }
    }, keepAlive * 500);
    const renew = setTimeout(() => end(), Math.min(Math.max(until - Date.now(), 0), 2 ** 31 - 1));

    function end(error) {
      clearTimeout(waits);
      clearTimeout(renew);
      clearInterval(beat);
      socket.onclose = socket.onerror = socket.onmessage = null;
      send(packet(0xe0, []));
      socket.close();
      if (error) failed(error);
      else done();
    }

    function take([first, body]) {
      switch (first >> 4) {
        case CONNACK:
          if (body[1] !== 0) throw new Error(`refused with ${body[1]}`);
          send(packet(SUBSCRIBE, [0, 1, ...topics.flatMap((t) => [...text(t), 1])]));
          break;
        case SUBACK:
          if (body.subarray(2).some((code) => code > 2)) throw new Error("a topic was refused");
          clearTimeout(waits);
          waits = 0;
          opened();
          break;
        case PUBLISH: {
          const quality = (first >> 1) & 3;
          const name = (body[0] << 8) | body[1];
          heard(JSON.parse(decoder.decode(body.subarray(2 + name + (quality ? 2 : 0)))));
          if (quality) send(packet(PUBACK, [body[2 + name], body[3 + name]]));
          break;
        }
        case PINGRESP:
          asked = 0;
      }
    }

    socket.onopen = () => send(packet(CONNECT, [...text("MQTT"), 4, 0xc2, ...short(keepAlive), ...text(login.client_id), ...text(login.username), ...text(login.password)]));
    socket.onclose = socket.onerror = () => end(new Error("the connection is lost"));
    socket.onmessage = (event) => {
      try {
        const news = new Uint8Array(event.data);
        const all = new Uint8Array(rest.length + news.length);
        all.set(rest);
        all.set(news, rest.length);
        let packets;
        [packets, rest] = split(all);
        packets.forEach(take);
      } catch (error) {
        end(error);
      }
    };
  });
}
