// A path's series as a chart with zoom. It replaces the page's static picture.
import uPlot from "./uplot/uPlot.esm.js";
import {rate, trip} from "./units.js";

const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// shown returns a Date whose UTC fields are those of the time that the page shows: the browser's, or UTC (times.js).
function shown(t) {
	const d = new Date(t * 1e3);
	return utc() ? d : new Date(d - d.getTimezoneOffset() * 60e3);
}

const utc = () => document.documentElement.hasAttribute("data-utc");

// date returns a tick's label, by the distance between ticks.
function date(t, apart) {
	const d = shown(t), two = n => String(n).padStart(2, "0");
	if (apart < 86400 && (d.getUTCHours() || d.getUTCMinutes())) return `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
	if (apart >= 86400 * 300) return String(d.getUTCFullYear());
	return apart >= 86400 * 27 ? `${months[d.getUTCMonth()]} ${d.getUTCFullYear()}` : `${d.getUTCDate()} ${months[d.getUTCMonth()]}`;
}

// bandColours are the limiters' colours in the style sheet.
const bandColours = new Map();

function bandColour(limiter) {
	if (!bandColours.has(limiter)) {
		const probe = document.createElement("span");
		probe.className = limiter;
		document.body.append(probe);
		bandColours.set(limiter, getComputedStyle(probe).getPropertyValue("--band").trim() || "#888888");
		probe.remove();
	}
	return bandColours.get(limiter);
}

// under draws limiters at the foot of the plot and changes across it.
function under(limiters, changes) {
	return u => {
		const { ctx, bbox } = u, t = u.data[0], height = 14 * devicePixelRatio;
		ctx.save();
		ctx.beginPath();
		ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
		ctx.clip();
		for (let i = 0; limiters && i < t.length;) {
			let j = i + 1;
			while (j < t.length && limiters[j].name === limiters[i].name) j++;
			const from = u.valToPos(t[i], "x", true), to = u.valToPos(t[Math.min(j, t.length - 1)], "x", true);
			ctx.globalAlpha = .35;
			ctx.fillStyle = bandColour(limiters[i].name);
			ctx.fillRect(from, bbox.top + bbox.height - height, Math.max(to - from, 2), height);
			ctx.globalAlpha = 1;
			if (to - from > 12 * devicePixelRatio) {
				ctx.fillStyle = colour("--ink");
				ctx.font = `700 ${11 * devicePixelRatio}px system-ui, sans-serif`;
				ctx.textAlign = "center";
				ctx.fillText(limiters[i].letter, (Math.max(from, bbox.left) + Math.min(to, bbox.left + bbox.width)) / 2,
					bbox.top + bbox.height - 3 * devicePixelRatio);
			}
			i = j;
		}
		let row = 0, end = -Infinity; // a number that would overlap the previous one goes one row down
		changes.forEach((at, i) => {
			if (i > 0 && at === changes[i - 1]) return;
			const last = changes.lastIndexOf(at), x = u.valToPos(at, "x", true);
			ctx.strokeStyle = ctx.fillStyle = colour("--bad");
			ctx.lineWidth = 1.5 * devicePixelRatio;
			ctx.beginPath();
			ctx.moveTo(x, bbox.top);
			ctx.lineTo(x, bbox.top + bbox.height);
			ctx.stroke();
			ctx.font = `700 ${13 * devicePixelRatio}px system-ui, sans-serif`;
			ctx.textAlign = "left";
			if (!limiters) return;
			const number = last > i ? `${i + 1}–${last + 1}` : String(i + 1), left = x + 3 * devicePixelRatio;
			row = left < end ? row + 1 : 0;
			end = Math.max(end, left + ctx.measureText(number).width + 3 * devicePixelRatio);
			ctx.fillText(number, left, bbox.top + (12 + 14 * row) * devicePixelRatio);
		});
		ctx.restore();
	};
}

const letters = {
	"application": "A", "send-buffer": "S", "receiver-window": "W", "receiver-application": "R", "congestion": "C",
	"bottleneck": "B", "local-queue": "Q", "ack-path": "K", "slow-start": "O", "nagle-delayed-ack": "N",
	"mtu-black-hole": "H", "pacing": "P", "cpu": "U", "sender": "E", "mixed": "M", "unknown": "?",
};

function draw(figure, runs) {
	const direction = figure.dataset.direction, times = [], goodput = [], rtt = [], resent = [], limiters = [], ids = [];
	for (const run of runs) {
		const d = run.directions.find(d => d.direction === direction);
		if (!d) continue;
		times.push(Date.parse(run.started_at) / 1e3);
		goodput.push(run.outcome === "done" ? d.goodput_bps ?? null : null);
		rtt.push(d.rtt_min_s ?? null);
		resent.push(d.retransmitted_ratio ?? null);
		limiters.push({ name: d.limiter ?? "", letter: letters[d.limiter] ?? "·" });
		ids.push(run.id);
	}
	if (times.length < 2) return;
	const changes = [...figure.querySelectorAll("[data-at]")].map(p => Date.parse(p.dataset.at) / 1e3);
	const place = document.createElement("div");
	place.className = "zoom";
	place.tabIndex = 0;
	place.setAttribute("role", "group");
	place.setAttribute("aria-label", `goodput ${direction}: + and - zoom, arrows move, 0 shows all`);
	const keys = document.createElement("p");
	keys.className = "keys";
	keys.textContent = "Drag to zoom, double-click to see all; by keys + and −, arrows, 0. A click opens the result.";
	const full = [times[0], times[times.length - 1]];
	let charts = [];
	const scaled = (min, max) => charts.forEach(u => u.setScale("x", { min, max }));
	function chart(label, values, print, height, bands) {
		const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
		const u = new uPlot({
			width: figure.clientWidth, height, tzDate: ts => utc() ? uPlot.tzDate(new Date(ts * 1e3), "UTC") : new Date(ts * 1e3),
			cursor: { sync: { key: `series ${direction}` }, drag: { x: true, y: false } },
			scales: { y: { range: (u, min, max) => [0, (max || 1) * 1.1] } },
			legend: { markers: { show: false }, mount: (u, el) => u.root.prepend(el) },
			series: [{ label: "at", value: (u, t) => t == null ? "–" : shown(t).toISOString().slice(0, 16).replace("T", " ") },
				{ label, stroke: colour("--data"), width: 1.5, points: { show: times.length < 300, size: 5, fill: colour("--paper") },
					value: (u, v) => v == null ? "–" : print(v) }],
			axes: [{ ...axis, values: (u, ticks, i, space, apart) => ticks.map(t => date(t, apart)) }, { ...axis, size: 78, values: (u, ticks) => ticks.map(print) }],
			hooks: { draw: [under(bands, changes)], setScale: [(u, key) => {
				if (key !== "x") return;
				const { min, max } = u.scales.x;
				for (const other of charts) {
					if (other !== u && (other.scales.x.min !== min || other.scales.x.max !== max)) other.setScale("x", { min, max });
				}
			}] },
		}, [times, values], place);
		let down = 0;
		u.over.addEventListener("mousedown", e => { down = e.clientX; });
		u.over.addEventListener("click", e => {
			if (Math.abs(e.clientX - down) < 3 && u.cursor.idx != null) location.href = `${figure.dataset.base}/runs/${ids[u.cursor.idx]}`;
		});
		return u;
	}
	function all() {
		charts.forEach(u => u.destroy());
		charts = [];
		charts.push(chart("goodput", goodput, rate, 260, limiters));
		if (rtt.some(v => v != null)) charts.push(chart("shortest round trip", rtt, trip, 120, null));
		if (resent.some(v => v != null)) charts.push(chart("segments retransmitted", resent, v => `${+(100 * v).toPrecision(2)} %`, 130, null));
	}
	place.addEventListener("keydown", e => {
		const { min, max } = charts[0].scales.x, span = max - min;
		const to = { "+": [min + span / 4, max - span / 4], "=": [min + span / 4, max - span / 4], "-": [min - span / 2, max + span / 2],
			ArrowLeft: [min - span / 4, max - span / 4], ArrowRight: [min + span / 4, max + span / 4], "0": full }[e.key];
		if (!to || e.ctrlKey || e.metaKey || e.altKey) return;
		e.preventDefault();
		scaled(Math.max(to[0], full[0] - span), Math.min(to[1], full[1] + span));
	});
	figure.querySelector(".scroll").replaceWith(place, keys);
	all();
	let width = figure.clientWidth;
	new ResizeObserver(() => {
		if (figure.clientWidth !== width) {
			width = figure.clientWidth;
			charts.forEach(u => u.setSize({ width, height: u.height }));
		}
	}).observe(figure);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
	addEventListener("zone", all);
}

for (const figure of document.querySelectorAll("figure[data-runs]")) {
	fetch(figure.dataset.runs).then(answer => answer.ok ? answer.json() : null).then(doc => doc && draw(figure, doc.runs));
}
