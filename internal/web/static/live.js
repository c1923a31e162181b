// The connections that watch shows, updated each period. Texts are set as textContent, so that names of programs are
// never markup.
import {rate, trip} from "./units.js";

const state = document.getElementById("state"), table = document.querySelector(".live");
const rows = document.getElementById("rows"), unread = document.getElementById("unread");
const limited = document.getElementById("limited");

// Characters that control a browser's output: control and format characters, line and paragraph separators. They are
// escaped as in all output of fullpipe.
const obeyed = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const line = text => String(text ?? "").replace(obeyed, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

function element(name, kind, text) {
	const e = document.createElement(name);
	if (kind) e.className = kind;
	e.textContent = text;
	return e;
}

// bar draws shares of 1 as one bar, the largest first.
function bar(shares) {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	for (const [name, value] of Object.entries({viewBox: "0 0 1000 10", preserveAspectRatio: "none", class: "shares",
		role: "img", "aria-label": "shares by limiter"})) svg.setAttribute(name, value);
	let at = 0;
	for (const [name, share] of shares.sort((a, b) => b[1] - a[1])) {
		const rect = document.createElementNS(svg.namespaceURI, "rect"), width = Math.min(1000 * share, 1000 - at);
		for (const [key, value] of [["class", line(name)], ["x", at], ["width", width], ["height", 10]]) rect.setAttribute(key, value);
		svg.append(rect);
		at += width;
	}
	return svg;
}

const swatch = name => element("span", `swatch ${line(name)}`, "");

// row returns a connection's row. advised has the remedies of the rows above it, which are not repeated.
function row(c, d, words, advised) {
	const tr = document.createElement("tr");
	const round = (d.rtt_s != null ? trip(d.rtt_s) : "") + (d.rtt_min_s != null ? ` (${trip(d.rtt_min_s)})` : "");
	for (const [text, kind] of [[line(words.owner)], [`${d.direction === "up" ? "to" : "from"} ${line(c.remote)}`], [rate(d.goodput_bps), "n"],
		[round, "n"]]) tr.append(element("td", kind, text));
	const why = element("td", "", ""), advice = element("td", "", "");
	why.append(swatch(d.limiter), line(words.limited));
	const shares = Object.entries(d.shares ?? {});
	if (shares.length > 0) why.append(bar(shares));
	if (words.do) advice.append(advised.has(words.do) ? element("div", "facts", "as above") : element("div", "do", line(words.do)));
	advised.add(words.do);
	for (const e of (d.evidence ?? []).slice(0, 2)) advice.append(element("div", "facts", line(e.text)));
	tr.append(why, advice);
	return tr;
}

// sums shows all connections of the period by limiter, the one of most bytes first.
function sums(all) {
	const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
	if (!(bytes > 0)) return limited.replaceChildren();
	const names = element("p", "legend", "");
	for (const one of all) {
		const name = element("span", "name", "");
		name.append(swatch(one.limiter), `${line(one.limiter)} ${one.direction}: ${Math.round(100 * one.bytes / bytes)} % of the bytes, ` +
			`${one.connections} connection${one.connections === 1 ? "" : "s"}`);
		names.append(name, " ");
	}
	limited.replaceChildren(bar(all.map(one => [one.limiter, one.bytes / bytes])), names);
}

function show(doc) {
	const advised = new Set();
	rows.replaceChildren(...doc.connections.slice(0, 50).flatMap((c, i) =>
		c.directions.map((d, j) => row(c, d, doc.words[i][j], advised))));
	table.hidden = doc.connections.length === 0;
	sums(doc.limited ?? []);
	state.textContent = `${doc.standing} connections, ${doc.connections.length + (doc.left_out ?? 0)} of them moved data in the last ${+doc.length_s.toPrecision(2)} s.`;
	unread.textContent = doc.unread ? `Not seen: ${doc.unread.map(line).join("; ")}.` : "";
}

if (state.querySelector("noscript") || state.textContent.trim() === "") {
	const source = new EventSource(state.dataset.from);
	state.textContent = "Looking…";
	source.onmessage = e => show(JSON.parse(e.data));
	source.addEventListener("failed", e => {
		state.textContent = `Connections cannot be watched: ${line(JSON.parse(e.data).message)}`;
		source.close();
	});
	source.onerror = () => { if (source.readyState === EventSource.CLOSED) state.textContent = "The server has ended."; };
}
