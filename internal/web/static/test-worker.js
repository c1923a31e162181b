// One connection of the test, in a worker: a download, an upload, or RTT probes.
const ndt7 = "net.measurementlab.ndt.v7";
const now = () => performance.timeOrigin + performance.now();

function connect(order, protocol) {
	const ws = protocol ? new WebSocket(order.url, protocol) : new WebSocket(order.url);
	ws.binaryType = "arraybuffer";
	ws.onerror = () => { if (!ws.failed) ws.failed = ws.opened ? "the connection broke" : "the server refused the test"; };
	return ws;
}

function download(order) {
	const ws = connect(order, ndt7);
	let bytes = 0, first = 0, last = 0, reported = 0;
	ws.onopen = () => { ws.opened = true; };
	ws.onmessage = e => {
		if (typeof e.data === "string") return;
		last = now();
		if (!first) { first = reported = last; bytes = -e.data.byteLength; } // the clock starts after this message
		bytes += e.data.byteLength;
		if (last - reported > 200) { reported = last; postMessage({bytes, at: last - first}); }
	};
	ws.onclose = () => postMessage({done: bytes > 0 ? {bytes, first, last} : {failed: ws.failed ?? "nothing arrived"}});
}

function upload(order) {
	const ws = connect(order, ndt7);
	const largest = 1 << 20;
	const usual = 8; // ms: usual delay of setTimeout on an idle device, even for a timeout of 0
	let data = new Uint8Array(1 << 13), sent = 0, idle = 0, late = 0, begun = 0, before = 0, slept = 0, counted = 0, ended = 0;
	fill(data);
	const feed = () => {
		if (ws.readyState !== WebSocket.OPEN) return;
		const at = now();
		if (ws.bufferedAmount === 0 && sent > 0) idle += at - before;
		late += Math.max(at - slept - usual, 0);
		before = at;
		if (at - begun > order.ms + 500) { ended ||= at; ws.close(); return; }
		for (let n = 0; n < 8 && ws.bufferedAmount < 4 * data.length; n++) {
			if (data.length < largest && data.length < sent / 16) fill(data = new Uint8Array(2 * data.length));
			ws.send(data);
			sent += data.length;
		}
		slept = now();
		setTimeout(feed, 0);
	};
	ws.onopen = () => { ws.opened = true; begun = before = slept = now(); feed(); };
	ws.onmessage = e => {
		if (typeof e.data !== "string") return;
		const app = JSON.parse(e.data).AppInfo;
		if (app?.ElapsedTime > 0) {
			counted = app.NumBytes;
			postMessage({bytes: app.NumBytes, at: app.ElapsedTime / 1000});
		}
	};
	ws.onclose = () => {
		const last = ended || now();
		postMessage({done: counted > 0 ? {bytes: counted, first: begun, last,
			idle: Math.min(idle / Math.max(last - begun, 1), 1), late: Math.min(late / Math.max(last - begun, 1), 1)}
			: {failed: ws.failed ?? "nothing arrived"}});
	};
}

function fill(data) {
	for (let at = 0; at < data.length; at += 65536) crypto.getRandomValues(data.subarray(at, Math.min(at + 65536, data.length)));
}

function echo(order) {
	const ws = connect(order);
	let asking;
	ws.onopen = () => {
		postMessage({open: true});
		asking = setInterval(() => { if (ws.bufferedAmount === 0) ws.send(String(performance.now())); }, 50);
	};
	ws.onmessage = e => postMessage({rtt: performance.now() - Number(e.data), at: now()});
	ws.onclose = () => { clearInterval(asking); postMessage({done: {failed: ws.failed ?? "closed"}}); };
}

onmessage = e => ({download, upload, echo})[e.data.kind](e.data);
