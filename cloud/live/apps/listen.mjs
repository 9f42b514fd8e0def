// Listens to the live channel as an app does. Standard input says how:
//
//   {address, client_id, username, password, topics, ca, version, refused, publish}
//
// Each line of the output is JSON: {granted} when it has subscribed, {topic,
// body} for what it hears, {closed} when the connection has ended. Topics in
// refused are subscribed to beside the others; publish is a topic that it
// publishes to after that. It ends with the connection.
import mqtt from 'mqtt';

let input = '';
for await (const chunk of process.stdin) input += chunk;
const how = JSON.parse(input);
const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');

const client = mqtt.connect(how.address, {
  clientId: how.client_id,
  username: how.username,
  password: how.password,
  protocolVersion: how.version,
  ca: how.ca || undefined,
  clean: true,
  reconnectPeriod: 0,
});
client.on('error', (err) => say({ error: String(err.message) }));
client.on('close', () => {
  say({ closed: true });
  process.exit(0);
});
client.on('message', (topic, payload) => say({ topic, body: JSON.parse(payload.toString()) }));
client.on('connect', async () => {
  const granted = {};
  for (const topic of [...how.topics, ...(how.refused || [])]) {
    await new Promise((resolve) =>
      client.subscribe(topic, { qos: 1 }, (err, list) => {
        for (const g of list || []) granted[g.topic] = g.qos;
        if (err) granted[topic] = 128;
        resolve();
      }),
    );
  }
  say({ granted });
  if (how.publish) client.publish(how.publish, '{}', { qos: 1 });
});
