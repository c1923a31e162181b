// The browser speed test: one connection, then several, in each direction, with RTT probes during the transfers.
// Connections run in workers, so that this page's own work never delays them.
import {rate, trip} from "./units.js";

const place = document.getElementById("test"), start = document.getElementById("start");
const state = document.getElementById("state"), figures = document.getElementById("figures");
const base = place.dataset.base, asked = new URLSearchParams(location.search);
const ms = Math.min(Math.max(+asked.get("ms") || 5000, 500), 10000);
const many = Math.min(Math.max(asked.has("many") ? +asked.get("many") || 0 : +place.dataset.many, 0), 6);
const only = asked.get("only");
const socket = path => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}${path}`;
// The token stays out of the result's address, since users share that address.
if (asked.has("access_token")) sessionStorage.setItem("access_token", asked.get("access_token"));
const token = sessionStorage.getItem("access_token");
const withToken = query => { if (token) query.set("access_token", token); return query; };

function show(what, text) {
	figures.hidden = false;
	let row = [...figures.tBodies[0].rows].find(r => r.cells[0].textContent === what);
	if (!row) {
		row = figures.tBodies[0].insertRow();
		row.insertCell().textContent = what;
		row.insertCell();
	}
	row.cells[1].textContent = text;
}

// gauge shows the rate of this moment on a logarithmic scale from 100 kbit/s to 10 Gbit/s.
function gauge(bps) {
	document.getElementById("now").textContent = rate(bps);
	document.querySelector(".gauge .filled").setAttribute("stroke-dasharray",
		`${Math.min(Math.max(20 * Math.log10(bps / 1e5), 0), 100)} 200`);
}

// course draws values over the time of the whole test, a line for each phase.
function course(id, most, print) {
	const place = document.getElementById(id), lines = [];
	const begun = performance.now(), whole = 1000 + (only ? 1 : 2) * (many > 1 ? 2 : 1) * (ms + 1000);
	let largest = 0;
	return (phase, value) => {
		let line = lines.find(one => one.phase === phase);
		if (!line) {
			line = {phase, points: [], path: document.createElementNS("http://www.w3.org/2000/svg", "path")};
			line.path.setAttribute("class", "data");
			place.append(line.path);
			lines.push(line);
		}
		line.points.push([480 * Math.min((performance.now() - begun) / whole, 1), value]);
		largest = Math.max(largest, value);
		document.getElementById(most).textContent = print(largest);
		for (const one of lines) one.path.setAttribute("d", "M" + one.points.map(([x, y]) => `${x.toFixed(1)} ${(118 - 112 * y / largest).toFixed(1)}`).join("L"));
	};
}

// run runs one connection in a worker and resolves with the worker's counts.
function run(order, progress) {
	return new Promise(done => {
		const worker = new Worker("/static/test-worker.js", {type: "module"});
		const end = result => { clearTimeout(late); worker.terminate(); done(result); };
		const late = setTimeout(() => end({failed: "the connection did not end"}), (order.ms ?? ms) + 12000);
		worker.onmessage = e => e.data.done ? end(e.data.done) : progress?.(e.data);
		worker.onerror = () => end({failed: "the browser ended it"});
		worker.postMessage(order);
	});
}

// echoes measures RTTs until stop() is called, grouped by the phase that load() has named.
function echoes(id, each) {
	const worker = new Worker("/static/test-worker.js", {type: "module"});
	const times = {};
	let name = "idle";
	const ready = new Promise((open, fail) => {
		worker.onmessage = e => {
			if (e.data.open) open();
			else if (e.data.done) fail(new Error(e.data.done.failed ?? "closed"));
			else {
				(times[name] ??= []).push(e.data);
				each(name, e.data.rtt / 1000);
			}
		};
		worker.onerror = () => fail(new Error("the browser ended it"));
	});
	worker.postMessage({kind: "echo", url: socket(`/test/echo?${withToken(new URLSearchParams({run: id}))}`)});
	return {times, ready, load: n => { name = n; }, stop: () => worker.terminate()};
}

const round = ms => Math.round(ms * 100) / 100;
const wait = time => new Promise(done => setTimeout(done, time));

async function post(path, body) {
	const headers = {"Content-Type": "application/json"};
	if (token) headers.Authorization = `Bearer ${token}`;
	const answer = await fetch(base + path, {method: "POST", body: JSON.stringify(body), headers});
	const doc = await answer.json();
	if (!answer.ok) throw refusal(doc, answer);
	return doc;
}

// refusal returns the server's error and remedy as an Error.
const refusal = (doc, answer) => new Error([doc?.error?.message ?? answer.statusText, doc?.error?.try].filter(Boolean).join(": "));

// reason returns the server's reason for a failed connection. Browsers hide the status of a refused WebSocket.
async function reason(failed) {
	const answer = await fetch(base + "/test/may", {headers: {Accept: "application/json"}}).catch(() => null);
	return answer && !answer.ok ? refusal(await answer.json().catch(() => null), answer) : new Error(failed);
}

async function phase(id, way, name, connections, each) {
	const path = way === "download" ? "/ndt/v7/download" : "/ndt/v7/upload";
	const url = socket(`${path}?${withToken(new URLSearchParams({fullpipe_run: id, fullpipe_phase: name, fullpipe_ms: ms,
		client_name: "fullpipe-page"}))}`);
	const mean = [], now = [], before = [];
	const sum = all => all.reduce((a, b) => a + (b ?? 0), 0);
	const all = await Promise.all(Array.from({length: connections}, (_, i) => run({kind: way, url, ms}, count => {
		const last = before[i] ?? {bytes: 0, at: 0};
		if (count.at > last.at) now[i] = (count.bytes - last.bytes) * 8000 / (count.at - last.at);
		before[i] = count;
		mean[i] = count.bytes * 8000 / count.at;
		show(`${way}, ${connections === 1 ? "1 connection" : connections + " connections"}`, rate(sum(mean)));
		each(name, sum(now));
	})));
	const failed = all.find(one => one.failed);
	if (failed) throw await reason(failed.failed);
	return {name, connections, bytes: all.reduce((sum, one) => sum + one.bytes, 0),
		first_ms: Math.min(...all.map(one => one.first)), last_ms: Math.max(...all.map(one => one.last)),
		idle_ratio: all.reduce((sum, one) => sum + (one.idle ?? 0), 0) / all.length,
		late_ratio: all.reduce((sum, one) => sum + (one.late ?? 0), 0) / all.length};
}

async function test() {
	start.disabled = true;
	const {id} = await post("/test/begin", {});
	document.getElementById("running").hidden = false;
	const trips = course("rtt-course", "slowest", trip);
	const echo = echoes(id, (name, rtt) => {
		document.getElementById("trip").textContent = trip(rtt);
		trips(name, rtt);
	});
	try { return await measure(id, echo); } finally { echo.stop(); }
}

async function measure(id, echo) {
	state.textContent = "Measuring the idle RTT…";
	await echo.ready;
	await wait(1000);
	const phases = [], rates = course("goodput-course", "most", rate);
	const each = (name, bps) => { gauge(bps); rates(name, bps); };
	for (const way of ["download", "upload"]) {
		if (only && only !== way) continue;
		for (const connections of many > 1 ? [1, many] : [1]) {
			const name = (way === "download" ? "down" : "up") + connections;
			state.textContent = `${way[0].toUpperCase() + way.slice(1)}, ${connections === 1 ? "one connection" : connections + " connections"}…`;
			document.getElementById("way").textContent = way;
			echo.load(name);
			phases.push(await phase(id, way, name, connections, each));
			echo.load("between");
		}
	}
	echo.stop();
	const idle = (echo.times.idle ?? []).map(one => round(one.rtt));
	for (const one of phases) {
		const times = (echo.times[one.name] ?? []).filter(t => t.at >= one.first_ms).slice(0, 400);
		one.rtt_ms = times.map(t => round(t.rtt));
		one.rtt_at_ms = times.map(t => round(t.at - one.first_ms));
	}
	state.textContent = "Looking for the limiter…";
	const result = await post(`/test/${id}/result`, {phases, idle_rtt_ms: idle.slice(0, 100)});
	location.replace(`${base}/test/${result.id}`);
}

const begin = () => test().catch(e => { state.textContent = `The test failed: ${e.message}`; start.disabled = false; });
start.hidden = false;
start.onclick = begin;
if (asked.has("start")) begin();
