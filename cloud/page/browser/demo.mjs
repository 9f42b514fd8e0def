// What scripts need that work on a demo, which kills its own cloud now and then.

// up waits until the cloud at an address answers.
export async function up(base) {
  for (let i = 0; i < 300; i++) {
    if (await fetch(base + "/healthz").then((r) => r.ok, () => false)) return;
    await new Promise((next) => setTimeout(next, 200));
  }
}

// patient tries again what the demo cut off.
export async function patient(base, what) {
  for (let tries = 0; ; tries++) {
    await up(base);
    try {
      return await what();
    } catch (e) {
      if (tries === 3) throw e;
    }
  }
}
